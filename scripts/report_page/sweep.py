# SPDX-License-Identifier: GPL-2.0-only
"""Files of sweeps: cases with inputs and outputs."""

import re

import numpy as np
import yaml

from report_page.reading import ReportError
from report_page.values import plain

MAX_CASES = 20_000
INPUT, OUTPUTS = "in_", ("out_", "derived_", "machine_")
TITLE = re.compile("^(in|out|derived|machine)_")


def case_columns(file):
    """{name: (unit, values)} of /cases: a group of columns, or one table with fields."""
    cases = file.file["cases"]
    if getattr(cases, "dtype", None) is not None and cases.dtype.names:
        values = file.guarded(lambda: cases[:])
        return {name: ("", [plain(value) for value in values[name].tolist()]) for name in cases.dtype.names}
    file.rows("cases")
    return {name: (file.unit("cases", name), [plain(value) for value in file.column("cases", name).tolist()])
            for name in file.names("cases")}


def is_number(values):
    return all(isinstance(value, (int, float, type(None))) and not isinstance(value, bool) for value in values)


def role(name):
    if name.startswith(INPUT):
        return "input"
    return "output" if name.startswith(OUTPUTS) else "note"


def place(name, asked):
    """The number of the case first, then inputs, outputs, derived columns, and notes; outputs in the order of the study."""
    order = ("case", INPUT, *OUTPUTS)
    first = next((i for i, prefix in enumerate(order) if name.startswith(prefix)), len(order))
    title = TITLE.sub("", name)
    return first, asked.index(title) if title in asked else len(asked)


def asked_of(file):
    """Names of the outputs and derived columns that the study asks for, in its order."""
    study = study_of(file)
    outputs, derived = study.get("outputs"), study.get("derived")
    names = [name for entry in (outputs if isinstance(outputs, list) else []) for name in (entry if isinstance(entry, dict) else [entry])]
    return [str(name) for name in (*names, *(derived if isinstance(derived, dict) else []))]


def study_of(file):
    """The study's text as data, {} if there is none."""
    try:
        study = yaml.safe_load(file.text("manifest/study_text") or "")
    except yaml.YAMLError:
        study = None
    return study if isinstance(study, dict) else {}


def equal_of(file):
    """Names of the figures of machines that are held equal, with their allowed differences."""
    equal = study_of(file).get("equal")
    if isinstance(equal, dict):
        return [f"{name} ({share})" if share != "exact" else str(name) for name, share in equal.items()]
    return [str(name) for name in equal] if isinstance(equal, list) else []


def objective_of(file, names):
    """The objectives of the study, as columns of /cases: {"minimize": [...], "maximize": [...], "within": [...]}."""
    asked = study_of(file).get("objective")
    found = {"minimize": [], "maximize": [], "within": []}
    for key, columns in found.items():
        words = asked.get(key, []) if isinstance(asked, dict) else []
        for word in words if isinstance(words, list) else [words]:
            bare = str(word).replace(".", "_")
            columns += [name for name in (f"{prefix}{bare}" for prefix in (INPUT, *OUTPUTS)) if name in names][:1]
    return found


def search_of(file):
    """The result of a search, from the study's file; None without a search."""
    if file.attribute("manifest", "search_objective") is None:
        return None
    return {name: plain(file.attribute("manifest", f"search_{name}")) for name in ("objective", "best",
                                                                                    "order_correlation")}


def lacking(columns):
    """How many cases failed, and how many have not been run."""
    status = np.asarray(columns["status"][1] if "status" in columns else [], dtype=str)
    counts = [(int((status == word).sum()), text) for word, text in (("failed", "failed"), ("missing", "not run"))]
    return ", ".join(f"{count:,} {'case' if count == 1 else 'cases'} {text}" for count, text in counts if count) or (
        "cases are missing")


def sweep_report(file):
    columns = case_columns(file)
    rows = len(next(iter(columns.values()))[1]) if columns else 0
    if rows == 0:
        raise ReportError(f"'{file.path}' has no cases: /cases is empty")
    described = []
    for name, (unit, values) in columns.items():
        if role(name) == "note" and all(value in ("", None) for value in values):
            continue  # such as `error`, if no case failed
        described.append({"name": name, "title": TITLE.sub("", name), "unit": unit, "role": role(name),
                          "numeric": is_number(values), "values": values[:MAX_CASES]})
    asked = asked_of(file)
    described.sort(key=lambda column: place(column["name"], asked))
    attributes = [(name, str(plain(value))) for name, value in sorted(file.attributes.items())]
    complete = bool(file.attributes.get("complete", True))
    return {"sweep": True, "name": file.name, "path": str(file.path), "rows": rows, "complete": complete,
            "lacking": lacking(columns),
            "columns": described, "attributes": attributes, "objective": objective_of(file, columns),
            "search": search_of(file), "equal": equal_of(file)}


def pareto(first, second):
    """Rows that no other row beats in both columns; smaller is better."""
    order = np.lexsort((second, first))
    best, front = np.inf, []
    for row in order.tolist():
        if second[row] < best:
            front.append(row)
            best = second[row]
    return front
