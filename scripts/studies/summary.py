# SPDX-License-Identifier: GPL-2.0-only
"""The output of `weft sweep`."""

import json
import math

from support.nodes import at_path
from support.quantities import counted, readable

from .runs import name_of
from .search import told

MAX_LINES = 40
SIMPLER = {"ideal": "messages without contention inside the network, so that oversubscription costs nothing",
           "loggp": "processors, NICs and messages, no links; the topology makes no difference"}


def aligned(lines):
    """Columns of texts, padded."""
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    padded = (["", *(text.ljust(width) for text, width in zip(line, widths))] for line in lines)
    return "\n".join("  ".join(line).rstrip() for line in padded)


def value_text(value, unit):
    if isinstance(value, str):
        return value
    return "" if value is None or value != value else readable(value, unit)


def labels(sweep, case):
    return [case.choices[key].label if key in case.choices else "" for key in sweep.study.axes.keys]


def listing(sweep):
    lines = [["case", *sweep.study.axes.keys, "status"]]
    for case in sweep.study.cases:
        if case.number in sweep.broken:
            status = f"excluded: {sweep.broken[case.number]}"
        elif case.same_as != case.number:
            status = f"as case {case.same_as}"
        else:
            status = "done" if sweep.records.find(sweep.identities[case.number]) else "to run"
        lines.append([str(case.number), *labels(sweep, case), status])
    return aligned(lines)


def counts(sweep, rows):
    def of(status):
        return sum(row["status"] == status for row in rows)

    chosen = sweep.best_on_ideal_network() if sweep.ideal else None
    return {"cases": len(rows), "done": of("done"), "failed": of("failed"), "missing": of("missing"),
            "excluded": of("excluded"), "ranked": of("ranked"), "runs": len(sweep.runs.to_run(chosen)),
            "reused": sweep.runs.reused,
            "infeasible": sum(row["status"] == "done" and not row["feasible"] for row in rows)}


def unlike(sweep, numbers):
    """Without cases that are equal to an earlier one, with the same run and the same accounting."""
    seen = {}
    for i in numbers:
        seen.setdefault((sweep.identities[i], id(sweep.accounting[i])), i)
    return list(seen.values())


def fidelities(sweep, rows):
    """A line for each fidelity simpler than packets that done cases have."""
    found = [str(at_path(sweep.identity.resolved(sweep.study.cases[i]), "network.fidelity"))
             for i, row in enumerate(rows) if row["status"] == "done"]
    return "".join(f"  fidelity {name} in {found.count(name)} of {counted(len(found), 'case')}: {meaning}\n"
                   for name, meaning in SIMPLER.items() if name in found)


def as_table(sweep, rows):
    study = sweep.study
    number = counts(sweep, rows)
    text = (f"\n  {counted(number['cases'], 'case')}, {counted(number['runs'], 'run')}: {number['done']} done, {number['failed']} failed, "
            f"{number['missing']} missing, {number['excluded']} excluded, {number['infeasible']} break a constraint")
    text += f", {number['ranked']} ranked on the ideal network only\n" if sweep.ideal else "\n"
    front = sweep.front(rows)
    shown = [i for i, row in enumerate(rows) if (front[i] if study.objective else row["status"] == "done")]
    shown = unlike(sweep, shown)
    result = sweep.result(rows)
    if result:
        text += f"  {told(result, study.search, lambda i: name_of(study.cases[i]))}\n"
    if study.objective:
        first, least = study.objective[0]

        def order(i):
            values = rows[i]["values"]
            return [*(values[name] for name in study.within), values[first] if least else -values[first], i]

        shown.sort(key=order)
        text += "  the best (Pareto front) by " + ", ".join(name for name, _ in study.objective)
        text += f", for each of {', '.join(study.within)}\n" if study.within else "\n"
    if shown:
        names = [*study.outputs, *study.derived]
        lines = [["case", *study.axes.keys, *names]]
        units = {name: output.unit for name, output in study.outputs.items()}
        units.update((name, study.unit_of_derived(name)) for name in study.derived)
        for i in shown[:MAX_LINES]:
            values = rows[i]["values"]
            lines.append([str(i), *labels(sweep, study.cases[i]),
                          *(value_text(values.get(name), units.get(name, "1")) for name in names)])
        text += "\n" + aligned(lines) + "\n"
        if len(shown) > MAX_LINES:
            text += f"  (the first {MAX_LINES} of {len(shown)})\n"
    hidden = sum(row["status"] == "done" for row in rows) - len(shown)
    if study.objective and shown and hidden:
        text += f"  {hidden} further {'case is' if hidden == 1 else 'cases are'} in the table: `weft report {sweep.output}` shows all\n"
    for i, row in enumerate(rows):
        if row["status"] == "failed":
            text += f"  case {i} failed: {row['error']}\n"
    return text + fidelities(sweep, rows) + f"  results  {sweep.output}"


def as_json(sweep, rows):
    def tidy(values):
        return {name: None if isinstance(value, float) and not math.isfinite(value) else value
                for name, value in values.items()}

    front, result = sweep.front(rows), sweep.result(rows)
    found = {"search": tidy({"objective": sweep.study.search.text, "best": result.best,
                             "order": [number for _, number in result.order], "simulated": len(result.decided),
                             "correlation": result.correlation})} if result else {}
    cases = [{"case": i, "status": row["status"], "feasible": row["feasible"], "same_as": sweep.study.cases[i].same_as,
              **{name: row[name] for name in ("error", "broken") if row[name]}, "values": tidy(row["values"])}
             for i, row in enumerate(rows)]
    return json.dumps({"study": str(sweep.study.path), "output": str(sweep.output), **counts(sweep, rows),
                       **found, "pareto": [i for i, best in enumerate(front) if best], "case_list": cases}, indent=2)
