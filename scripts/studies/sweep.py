# SPDX-License-Identifier: GPL-2.0-only
"""A study, from its file to the table of its cases."""

import json
import os
import pathlib

from accounting.settings import settings_of
from accounting.usage import device_of
from support import nodes
from support.errors import StudyError
from support.output_files import results_path

from . import columns, pareto, search
from .identity import Identity, Program, digest_of, printed_object
from .machines import check_equal, figures_of
from .processes import Processes
from .records import Records, write_whole
from .runs import REFUSED, Runs, name_of
from .study_file import Case, Study


OTHER_KINDS = (".csv", ".json", ".html", ".txt", ".png")


class Sweep:
    """The study `path`, with its table in `output` and its runs in a folder beside that."""

    def __init__(self, path, output=None, quiet=False):
        self.study = Study(path)
        if output and pathlib.Path(output).suffix in OTHER_KINDS:
            raise StudyError(f"-o found '{output}'; expected the name of an HDF5 file, such as {pathlib.Path(output).stem}.h5, of "
                             "which `weft export FILE.h5 --csv DIR` makes CSV and `weft report FILE.h5` a page")
        self.output = results_path(output or pathlib.Path(path).stem + ".h5", [path, self.study.base_path])
        self.program = Program()
        self.quiet = quiet
        self.records = Records(self.output.with_suffix(".runs"), self.study.outputs, self.study.keep_runs)
        self.identity = Identity(self.study, self.program)
        self.identities = [self.identity.of_case(case) for case in self.study.cases]
        self.accounting = self.read_accounting()
        self.figures = {}  # {case number: {figure: value}}
        self.broken = {}  # {case number: the constraint that it violates before it runs}
        self.runs = self.runs_of(self.study.cases, self.identities, "cases")
        self.ideal = self.runs_on_ideal_network() if self.study.search else None
        self.ranked = None  # rows of the cases on the ideal network
        first = {}
        for case, name in zip(self.study.cases, self.identities):
            case.same_as = first.setdefault(name, case.number)

    def read_accounting(self):
        """The accounting settings of each case; equal maps are read once."""
        known, settings = {}, []
        for case in self.study.cases:
            data = self.identity.accounting(case)
            text = json.dumps(data)
            if text not in known:
                known[text] = settings_of(data, self.study.path)
            settings.append(known[text])
        return settings

    def runs_of(self, cases, identities, what):
        return Runs(cases, identities, lambda case: self.words("run", case), self.records,
                    (self.study.processes, self.quiet, self.broken, what))

    def runs_on_ideal_network(self):
        cases = [Case(case.number, case.choices,
                      [*case.settings, *search.on_ideal_network(self.identity.resolved(case))])
                 for case in self.study.cases]
        return self.runs_of(cases, [self.identity.of_case(case) for case in cases], "cases on the ideal network")

    def experiment(self):
        """The file that `weft` reads. A map of the study is written to one, with absolute names of files."""
        if not self.study.inline:
            return str(self.study.base_path)
        text = nodes.flow(absolute(self.study.base, self.study.folder.resolve())) + "\n"
        path = self.records.folder / f"experiment-{digest_of(text)[:20]}.yaml"
        if not path.exists():
            write_whole(path, text)
        return str(path)

    def words(self, command, case):
        words = [self.program.path, command, self.experiment()]
        for path, data in case.settings:
            if path.split(".")[0] == "accounting":
                continue  # no run needs it, and cases that differ only in it share one run
            words += ["--set", f"{path}={nodes.flow(data)}"]
        return words

    def prepare(self, jobs):
        """Checks columns of outputs, machines, figures that are held equal, and constraints that are known before a
        run."""
        self.records.make_folder()
        study = self.study
        columns.check(study.outputs, self.program, self.records.folder)
        needs = study.needs_machines()
        machines = self.look_at_machines(jobs) if needs else {}
        early = [constraint for constraint in study.constraints if study.before_run(constraint)]
        for case in study.cases:
            self.figures[case.number] = machines.get(case.number, {})
            if needs and not self.figures[case.number]:
                continue  # weft refuses its machine: its run will report the error
            values = self.known_before(case)
            broken = next((constraint for constraint in early if not constraint.value(values)), None)
            if broken:
                self.broken[case.number] = broken.text
        compared = [(case, self.figures[case.number]) for case in study.cases
                    if case.number not in self.broken and self.figures[case.number]]
        if study.equal:
            check_equal(study, compared, name_of)

    def known_before(self, case):
        values = {**case.inputs, **self.figures[case.number]}
        for name, expression in self.study.derived.items():
            if self.study.before_run(expression):
                values[name] = expression.value(values)
        return values

    def look_at_machines(self, jobs):
        """{case number: figures} of `weft topology`, each machine once."""
        cases, found = {}, {}
        for case in self.study.cases:
            cases.setdefault(self.identity.of_machine(case), []).append(case)
        for identity in cases:
            found[identity] = self.records.find_machine(identity)
        missing = [identity for identity in cases if found[identity] is None]
        with Processes(jobs) as processes:
            while missing or processes.running:
                while missing and processes.has_room():
                    identity = missing.pop(0)
                    words = self.words("topology", cases[identity][0])
                    processes.start(identity, [*words, "--json", "--processes", "1"])
                for identity, ended in processes.wait(60):
                    if ended.code == 0:
                        found[identity] = printed_object(ended.out, "topology --json")
                        self.records.keep_machine(identity, json.dumps(found[identity]))
        return {case.number: figures_of(found[identity], self.accounting[case.number],
                                        device_of(self.identity.resolved(case)))
                for identity, all_cases in cases.items() for case in all_cases if found[identity] is not None}

    def run(self, jobs, numbers=None, fresh=False):
        """Runs the cases without a record, `jobs` at a time. In a search the ideal network ranks the cases first; if
        `numbers` are given, only these are ranked."""
        if self.ideal is None:
            self.runs.run(jobs, numbers, fresh)
            return
        self.ideal.run(jobs, numbers, fresh)
        self.ranked = None
        if numbers is None:
            self.runs.run(jobs, self.best_on_ideal_network(), fresh)

    def expect_some_accepted(self):
        """StudyError for a path for which weft has refused every case, such as a misspelt one."""
        runs = self.ideal or self.runs
        cases = [case for case in self.study.cases if case.number not in self.broken]
        for path, _ in cases[0].settings if cases else ():
            if all(refusal(runs.error(case.number), path, dict(case.settings)) for case in cases):
                reason = refusal(runs.error(cases[0].number), path, dict(cases[0].settings))
                raise self.study.place_of(path).error(f"every case was refused for '{path}': {reason}")

    def best_on_ideal_network(self):
        """Numbers of the cases to run packet by packet: the best ones, as many different runs as requested."""
        chosen = {}
        for _, number in search.ranking(self.ideal_rows(), self.study.search.expression):
            chosen.setdefault(self.identities[number], number)
        return set(list(chosen.values())[:self.study.search.simulated])

    def result(self, rows):
        """The result of a search, otherwise None."""
        return search.Result(self.study.search.expression, self.ideal_rows(), rows) if self.study.search else None

    def rows(self):
        """The outcome of each case, in order. In a search, cases that the ideal network has ranked behind those among
        which packets decide are `ranked`."""
        if self.ideal is None:
            return [self.row(case, self.runs) for case in self.study.cases]
        ideal, chosen = self.ideal_rows(), self.best_on_ideal_network()
        identities = {self.identities[number] for number in chosen}
        rows = []
        for case, ranked in zip(self.study.cases, ideal):
            if self.identities[case.number] in identities or ranked["status"] != "done":
                rows.append(self.row(case, self.runs if ranked["status"] == "done" else self.ideal))
                continue
            rows.append({**self.row(case, None), "status": "ranked", "broken": ranked["broken"]})
        return rows

    def row_of(self, number):
        """The outcome of a case that was run alone; in a search, on the ideal network."""
        return self.row(self.study.cases[number], self.ideal or self.runs)

    def ideal_rows(self):
        if self.ranked is None:
            self.ranked = [self.row(case, self.ideal) for case in self.study.cases]
        return self.ranked

    def row(self, case, runs):
        """The outcome from the record in `runs`; `runs` may be None."""
        study = self.study
        broken = self.broken.get(case.number, "")
        record = None if broken or runs is None else self.records.find(runs.identities[case.number])
        error = "" if record or broken or runs is None else runs.error(case.number)
        row = {"status": "excluded" if broken else "done" if record else "failed" if error else "missing",
               "error": error, "broken": broken, "record": record, "values": {}}
        values = {**case.inputs, **self.figures.get(case.number, {})}
        if record:
            settings = self.accounting[case.number]
            values.update({name: output.value(record, settings) for name, output in study.outputs.items()})
            values = {name: float("nan") if value is None else value for name, value in values.items()}
        for name, expression in study.derived.items():
            if all(used in values or used not in study.taken for used in expression.names):
                values[name] = expression.value(values)
        if record:
            late = (one for one in study.constraints if not one.value(values))
            row["broken"] = next((one.text for one in late), "")
        row["values"] = values
        row["feasible"] = bool(record) and not row["broken"]
        return row

    def empty_outputs(self, rows):
        """Reductions for which no run has numbers: a misspelt column, or one that these runs do not have."""
        records = [row["record"] for row in rows if row["record"]]
        return [output.text for output in self.study.outputs.values() if output.reduction and records and
                all(output.value(record) is None for record in records)]

    def front(self, rows):
        """For each row, True if it is on the Pareto front of the objective, among the rows that are compared with each
        other."""
        groups = {}
        for i, row in enumerate(rows):
            groups.setdefault(tuple(row["values"].get(name) for name in self.study.within), []).append(i)
        best = [False] * len(rows)
        for numbers in groups.values():
            for i, on_front in zip(numbers, pareto.front([rows[i] for i in numbers], self.study.objective)):
                best[i] = on_front
        return best


def refusal(error, path, settings):
    """What weft said of the setting of a path if it refused a case with these settings for it, otherwise nothing."""
    if path not in settings or not error.startswith(f"--set {path}=") or not error.endswith(REFUSED):
        return ""
    return error.removeprefix(f"--set {path}={nodes.flow(settings[path])}: ").removesuffix(REFUSED)


def absolute(data, folder):
    """The same with absolute names for files that exist in the folder; names without a dot or a slash may be other
    names."""
    if isinstance(data, dict):
        return {key: absolute(value, folder) for key, value in data.items()}
    if isinstance(data, list):
        return [absolute(item, folder) for item in data]
    if isinstance(data, str) and data and len(data) < 1000 and not os.path.isabs(data) and "\n" not in data:
        path = folder / data
        if ("." in data or "/" in data) and (path.exists() or ("/" in data and any(path.parent.glob(path.name + "*")))):
            return str(path)
    return data


def require_case(study, number):
    if not 0 <= number < len(study.cases):
        raise StudyError(f"--case found {number}; '{study.path}' has the cases 0 to {len(study.cases) - 1}")
