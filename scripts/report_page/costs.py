# SPDX-License-Identifier: GPL-2.0-only
"""Cost, energy and emissions of a run whose experiment asks for them (`accounting:`)."""

from accounting.account import FIGURES
from accounting.settings import ESTIMATES, settings_of
from accounting.text import TITLES, accounts_of, bill_rows
from accounting.usage import experiment_of, usage_of_file
from report_page.elements import note, section, table, tag, text
from report_page.reading import ReportError
from report_page.values import percent, value_text
from support.errors import StudyError


def costs_of(run):
    """{bill: [(part, number)], groups: [(title, [(name, description, values)])], energy: [(part, share)]}, or None."""
    if "manifest/run/effective_experiment" not in run.file or not run.has("jobs", "steps"):
        return None
    try:
        data = run.guarded(lambda: experiment_of(run.file)).get("accounting")
        if data is None:
            return None
        settings = settings_of(data, run.path)
        accounts = accounts_of(run.guarded(lambda: usage_of_file(run.file)), settings)
    except StudyError as error:
        raise ReportError(str(error)) from None
    groups = []
    for title, names in TITLES.items():
        rows = [(name, FIGURES[name][1], [accounts[estimate].figures[name] for estimate in ESTIMATES])
                for name in names]
        groups.append((title, [row for row in rows if row[2][1] is not None]))
    parts = accounts["mid"].energy_parts
    whole = sum(parts.values()) or 1
    return {"bill": bill_rows(accounts["mid"].bill, settings), "groups": [group for group in groups if group[1]],
            "energy": [(part, joules / whole) for part, joules in parts.items() if joules]}


def figure_row(name, what, values):
    unit = FIGURES[name][0]
    shown = [value_text(value, unit) + ("" if unit in ("J", "W", "g", "$", "s") else f" {unit}") for value in values]
    middle = tag("span", text(shown[1]), data_figure=name, data_value=values[1])
    return [text(name.replace("_", " ")), text(what), text(shown[0]), middle, text(shown[2])]


def body(run):
    """The section of the page."""
    data = run["costs"]
    if data is None:
        return ""
    bill = table(["part", "number"], [[text(part), f"{count:,}"] for part, count in data["bill"]], (1,))
    parts = table(["energy at the plugs", "share"], [[text(part), percent(share)] for part, share in data["energy"]],
                  (1,))
    rows = [figure_row(*row) for _, group in data["groups"] for row in group]
    words = ("Three estimates: with the low values of all figures, the middle ones, the high ones. What stands in "
             "<code>accounting</code> replaces them in all three. CO2 stands for all greenhouse gases.")
    return section("Cost, energy, emissions", "costs", note(words),
                   tag("div", table(["figure", "what", "low", "mid", "high"], rows, (2, 3, 4)), class_="scroll"),
                   tag("div", bill, parts, class_="columns"))
