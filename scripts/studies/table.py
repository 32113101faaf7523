# SPDX-License-Identifier: GPL-2.0-only
"""The HDF5 file of a study: /cases has a row per case, /timing the measured times, /runs links to the results."""

import os

import h5py
import numpy

from support.errors import EnvironmentFailure

from .machines import FIGURES
from .records import remove

FORMAT_VERSION = 1
TIMING = {
    "wall_seconds": ("s", numpy.float64, "of the whole run, with start and end of its program"),
    "simulation_seconds": ("s", numpy.float64, "of the simulation alone"),
    "build_seconds": ("s", numpy.float64, "of building its network"),
    "peak_memory": ("B", numpy.int64, "largest resident set of one of its processes"),
    "processes": ("1", numpy.int64, "MPI processes"),
}
STATUS = ("done, failed (`error` says why), excluded (breaks a constraint before it runs), ranked (by a search, on the "
          "ideal network only), or missing")


def column(group, name, values, unit, description, key=None):
    """One column: whole numbers, numbers, or texts of fixed length."""
    if unit == "text":
        texts = [str(value).encode("utf-8", "surrogateescape") for value in values]  # names of files are bytes
        kind = h5py.string_dtype("utf-8", max([1, *map(len, texts)]))
        data = group.create_dataset(name, data=numpy.array(texts, dtype=kind))
    else:
        data = group.create_dataset(name, data=numpy.array(values))
    data.attrs["unit"], data.attrs["description"] = unit, description
    if key:
        data.attrs["key"] = key


def numbers(values):
    """Whole numbers if all values exist and are whole, otherwise floating point with not-a-number for missing ones."""
    if all(isinstance(value, (int, bool)) and abs(value) < 2**63 for value in values):
        return numpy.array(values, numpy.int64)
    return numpy.array([numpy.nan if value is None else value for value in values], numpy.float64)


def write_cases(file, sweep, rows):
    study, cases = sweep.study, file.create_group("cases")
    cases.attrs["rows"], cases.attrs["description"] = len(rows), "one row per case, in the order of the study"
    column(cases, "case", numpy.arange(len(rows), dtype=numpy.int64), "id", "number of the case")
    for name, (key, values, unit) in study.inputs.items():
        column(cases, f"in_{name}", values if unit == "text" else numbers(values), unit, key, key)
    if study.needs_machines():
        for name, (unit, description) in FIGURES.items():
            values = numbers([row["values"].get(name) for row in rows])
            column(cases, f"machine_{name}", values, unit, description)
    for name, output in study.outputs.items():
        unit, description = unit_of(output, rows), output.description or output.text
        values = [row["values"].get(name) for row in rows]
        column(cases, f"out_{name}", ["" if value is None else value for value in values] if unit == "text" else
               numbers(values), unit, description)
    for name, expression in study.derived.items():
        values = [row["values"].get(name) for row in rows]
        text = any(isinstance(value, str) for value in values)
        column(cases, f"derived_{name}", ["" if value is None else value for value in values] if text else
               numbers(values), "text" if text else study.unit_of_derived(name), expression.text)
    column(cases, "status", [row["status"] for row in rows], "text", STATUS)
    column(cases, "error", [row["error"] for row in rows], "text", "why it failed")
    column(cases, "broken", [row["broken"] for row in rows], "text", "the first constraint that it breaks")
    column(cases, "feasible", numpy.array([row["feasible"] for row in rows], numpy.uint8), "1",
           "done, and all constraints hold")
    if study.objective:
        column(cases, "pareto", numpy.array(sweep.front(rows), numpy.uint8), "1",
               "feasible, and no other such case is as good in every objective and better in one")
    write_search(cases, sweep.result(rows), study.search, len(rows))
    column(cases, "same_as", numpy.array([case.same_as for case in study.cases], numpy.int64), "id",
           "the first case that runs the same; its own number if there is none before it")
    column(cases, "identity", sweep.identities, "text", "digest of the resolved experiment, its files and the program")
    links = [link_of(sweep, case) if row["record"] else "" for case, row in zip(study.cases, rows)]
    column(cases, "run", links, "text", "results file, relative to the folder of this file; empty if it was not kept")


def write_search(cases, result, search, count):
    """The result of a search for each case."""
    if result is None:
        return
    for name, values, description in (
            ("ideal_objective", result.ideal, "the search's objective on the ideal network"),
            ("ideal_place", result.place, "place by it, the best is 1; 0 for cases that break a constraint"),
            ("objective", result.decided, "the search's objective by packets"),
            ("place", result.place_by_packets, "place by it, the best is 1; 0 without packets, or infeasible")):
        rows = [values.get(i, 0 if name.endswith("place") else None) for i in range(count)]
        column(cases, name, numbers(rows), "1" if name.endswith("place") else search.unit, description)


def unit_of(output, rows):
    """A reduction has the unit of its column, from a results file."""
    if not output.reduction:
        return output.unit
    units = [row["record"]["reductions"][output.text]["unit"] for row in rows if row["record"]]
    return next((unit for unit in units if unit != "1"), "1")


def link_of(sweep, case):
    if not sweep.study.keep_runs:
        return ""
    results = sweep.records.results(sweep.identities[case.number])
    return os.path.join(sweep.records.folder.name, results.name)


def write_table(sweep, rows):
    """Writes the whole file or nothing."""
    study, path = sweep.study, sweep.output
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with h5py.File(partial, "w") as file:
            file.attrs["format"], file.attrs["format_version"] = "weft-study", FORMAT_VERSION
            file.attrs["complete"] = numpy.uint8(all(row["status"] in ("done", "excluded", "ranked") for row in rows))
            manifest = file.create_group("manifest")
            manifest.attrs["version"], manifest.attrs["git_revision"] = sweep.program.version, sweep.program.revision
            manifest.attrs["study_file"] = study.path.name.encode("utf-8", "replace").decode()
            manifest.attrs["objective"] = ", ".join(
                f"{'minimize' if least else 'maximize'} {name}" for name, least in study.objective)
            manifest.attrs["within"] = ", ".join(study.within)
            manifest.create_dataset("study_text", data=study.text)
            write_search_facts(manifest, sweep, rows)
            if not study.inline:
                manifest.create_dataset("experiment_text", data=study.base_text)
            write_cases(file, sweep, rows)
            write_runs(file, sweep, rows)
            write_timing(file, rows)
        os.replace(partial, path)
    except OSError as error:
        raise EnvironmentFailure(f"cannot write '{path}': {error.strerror or error}") from None
    finally:
        remove(partial)


def write_search_facts(manifest, sweep, rows):
    result = sweep.result(rows)
    if result is None:
        return
    manifest.attrs["search_objective"] = sweep.study.search.expression.text
    manifest.attrs["search_best"] = numpy.int64(-1 if result.best is None else result.best)
    manifest.attrs["search_order_correlation"] = result.correlation


def write_runs(file, sweep, rows):
    """Links by the number of the case: file["runs/3/messages/slowdown"]."""
    runs = file.create_group("runs")
    for case, row in zip(sweep.study.cases, rows):
        if row["record"] and sweep.study.keep_runs:
            runs[str(case.number)] = h5py.ExternalLink(link_of(sweep, case), "/")


def write_timing(file, rows):
    timing = file.create_group("timing")
    timing.attrs["rows"] = len(rows)
    timing.attrs["description"] = "measured, and different in each run: not part of what is compared"
    for name, (unit, kind, description) in TIMING.items():
        missing = numpy.nan if kind is numpy.float64 else -1
        values = [row["record"]["timing"][name] if row["record"] else missing for row in rows]
        column(timing, name, numpy.array(values, kind), unit, description)
