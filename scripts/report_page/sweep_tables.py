# SPDX-License-Identifier: GPL-2.0-only
"""Tables about a sweep: the result of a search, the Pareto front, the inputs on which the outcomes depend, and the cases."""

import math

from report_page.elements import note, section, table, tag, text
from report_page.sensitivity import sensitivity as shares_of
from report_page.values import percent, value_text
from support.quantities import counted

MAX_ROWS, MAX_OUTCOMES, MAX_VALUES = 100, 4, 8
METER = 80  # pixels


def columns_of(sweep):
    return {column["name"]: column for column in sweep["columns"]}


def head(column):
    told = column["unit"] in ("", "1", "text", "id", "ps", "B", "bit/s", "J", "W", "g", "$", "s")
    return text(column["title"] if told else f"{column['title']} ({column['unit']})")


def cell(column, row):
    return text(value_text(column["values"][row], column["unit"]))


def case_name(sweep, row):
    inputs = [column for column in sweep["columns"] if column["role"] == "input"]
    return ", ".join(f"{column['title']} {value_text(column['values'][row], column['unit'])}" for column in inputs)


def search(sweep):
    """The best case, and the quality of the order from the ideal network."""
    found = sweep.get("search")
    if found is None:
        return ""
    if found["best"] < 0:
        return section("Search", "search", note("No case holds all constraints."))
    columns, best = columns_of(sweep), found["best"]
    ranked = sum(place > 0 for place in columns["ideal_place"]["values"])
    decided = sum(place > 0 for place in columns["place"]["values"])
    words = (f"The best by <code>{text(found['objective'])}</code> is case {best} ({text(case_name(sweep, best))}): "
             f"{cell(columns['objective'], best)}. The ideal network had it in place "
             f"{columns['ideal_place']['values'][best]} of {ranked}; packets decided among {decided}.")
    if found["order_correlation"] is not None:
        words += f" Order correlation (Spearman) of both among these: {found['order_correlation']:.3f}."
    return section("Search", "search", tag("p", words), data_best=best)


def titles(columns, names):
    return ", ".join(text(columns[name]["title"]) for name in names)


def front(sweep):
    """The cases that are best by the study's objective."""
    columns = columns_of(sweep)
    if "pareto" not in columns or not any(sweep["objective"][key] for key in ("minimize", "maximize")):
        return ""
    asked = [*sweep["objective"]["minimize"], *sweep["objective"]["maximize"]]
    within = sweep["objective"]["within"]
    inputs = [column for column in sweep["columns"] if column["role"] == "input"]
    outcomes = [column for column in sweep["columns"] if column["role"] == "output" and
                not (column["name"].startswith("machine_") and column["name"] not in asked)]
    outcomes.sort(key=lambda column: asked.index(column["name"]) if column["name"] in asked else len(asked))
    shown = [*(column for column in inputs if column["name"] in within),
             *(column for column in inputs if column["name"] not in within), *outcomes]
    first = columns[asked[0]]["values"]
    rows = [i for i, best in enumerate(columns["pareto"]["values"]) if best and columns["same_as"]["values"][i] == i]
    rows.sort(key=lambda i: [*((isinstance(columns[name]["values"][i], str), columns[name]["values"][i])
                               for name in within), first[i]])
    compared = f", of those with the same {titles(columns, within)}" if within else ""
    more = f"; the first {MAX_ROWS}" if len(rows) > MAX_ROWS else ""
    words = (f"No other case is as good in each of {titles(columns, asked)} and better in one{compared}. "
             f"{counted(len(rows), 'case')}{more}.")
    cells = [[tag("span", str(i), data_front=i), *(cell(column, i) for column in shown)] for i in rows[:MAX_ROWS]]
    numbers = [at for at, column in enumerate(shown, 1) if column["numeric"]]
    return section("The best (Pareto front)", "front", note(words),
                   tag("div", table(["case", *map(head, shown)], cells, numbers), class_="scroll"))


def outcomes_of(sweep, columns):
    """The objectives of the study, otherwise the first outcomes that differ. For a search, outcomes that all cases
    have: packets decide only among the best ones."""
    if sweep.get("search"):
        return [columns["ideal_objective"]]
    asked = [columns[name] for key in ("minimize", "maximize") for name in sweep["objective"][key]]
    found = asked or [column for column in sweep["columns"] if column["role"] == "output" and column["numeric"] and
                      not column["name"].startswith("machine_")]
    return [column for column in found if column["numeric"] and len(set(column["values"])) > 1][:MAX_OUTCOMES]


def meter(share):
    return tag("span", class_="meter", style=f"width:{max(METER * share, 1):.1f}px")


def effect_text(column, effect):
    def name(value):
        if isinstance(value, tuple):
            return " to ".join(value_text(one, column["unit"]) for one in value)
        return value_text(value, column["unit"])

    shown = sorted(effect, key=lambda pair: pair[1])[:MAX_VALUES]
    more = f" and {len(effect) - len(shown)} more" if len(effect) > len(shown) else ""
    return ", ".join(f"{text(name(value))} {factor:.3g}" for value, factor in shown) + more


def sensitivity(sweep):
    """For each outcome the inputs by their share of its variance, with the factors between their values."""
    columns = columns_of(sweep)
    inputs = {column["name"]: column["values"] for column in sweep["columns"] if column["role"] == "input" and
              column["name"] not in sweep["objective"]["within"] and len(set(column["values"])) > 1}
    groups = [tuple(columns[name]["values"][i] for name in sweep["objective"]["within"])
              for i in range(len(sweep["columns"][0]["values"]))]
    rows = []
    for outcome in outcomes_of(sweep, columns):
        for at, (name, share, effect) in enumerate(shares_of(inputs, outcome["values"], groups)):
            rows.append([head(outcome) if at == 0 else "", text(columns[name]["title"]),
                         tag("span", percent(share), data_input=name, data_outcome=outcome["name"], data_share=share),
                         meter(share), effect_text(columns[name], effect)])
    if not rows:
        return ""
    words = ("Share of the variance between an input's values, of logarithms, within groups of comparable cases; then "
             "the values with their geometric means as factors of the least. What is missing to 100 % is of inputs that "
             "act together.")
    return section("Sensitivity", "sensitivity", note(words), tag("div", table(
        ["outcome", "input", "share", "", "values"], rows, (2,)), class_="scroll"))


def names_of_cases(sweep):
    """The columns that name the cases of a sweep: inputs with another value in each case, such as a label. A number among
    many is none: the scatter plot shows it better."""
    if sweep["rows"] > MAX_ROWS:
        return []
    return [column for column in sweep["columns"] if column["role"] == "input" and sweep["rows"] > 1 and
            len(set(column["values"])) == sweep["rows"] == len(column["values"])]


def compared(column):
    """{heading: texts of all cases} of an outcome: values, factors of the least, meters. Of values that are 0 or less there
    are no factors, and no meters of values below 0."""
    values = [value if value is not None and math.isfinite(value) else None for value in column["values"]]
    known = [value for value in values if value is not None]
    parts = {head(column): [cell(column, row) for row in range(len(values))]}
    if min(known) > 0:
        parts["of the least"] = [tag("span", f"{value / min(known):.2f}", data_case=row, data_of=column["name"])
                                 if value is not None else "" for row, value in enumerate(values)]
    if min(known) >= 0:
        parts[""] = ["" if value is None else meter(value / max(known)) for value in values]
    return parts


def cases(sweep):
    """The outcomes of each case beside each other, if one input names the cases."""
    names = names_of_cases(sweep)
    outcomes = outcomes_of(sweep, columns_of(sweep))
    if not names or not outcomes or sweep.get("search"):
        return ""
    columns = [(head(column), [cell(column, row) for row in range(sweep["rows"])]) for column in names]
    for outcome in outcomes:
        columns += compared(outcome).items()
    heads, cells = zip(*columns)
    numbers = [at for at, title in enumerate(heads) if at >= len(names) and title]
    return section("Cases compared", "cases", note("Each outcome, as a factor of its least value, and as a bar."),
                   tag("div", table(heads, zip(*cells), numbers), class_="scroll"))
