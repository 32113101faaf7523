# SPDX-License-Identifier: GPL-2.0-only
"""A study, from its file to the table of its cases."""

import json
import os
import pathlib
import sys
import time

from . import nodes, pareto
from .errors import EnvironmentFailure, StudyError
from .identity import Identity, Program, digest_of
from .machines import check_equal, figures_of
from .processes import Processes
from .records import Records, write_whole
from .study_file import load_study

LOOK = 0.5  # s between looks at runs that other programs do


def name_of(case):
    return ", ".join(f"{key} {choice.label}" for key, choice in case.choices.items()) or "the only one"


def first_line(text):
    lines = [line for line in text.splitlines() if line.startswith("weft: ")] or text.splitlines()
    return lines[0].removeprefix("weft: ") if lines else ""


def summary_of(ended):
    """What a run printed as its summary; None if it has failed. mpirun may print lines of its own before."""
    if ended.code != 0:
        return None
    try:
        return json.loads(ended.out[max(0, ended.out.find("{")):])
    except ValueError:
        return None


class Progress:
    """Lines on standard error: how many cases are done, and how long the others will take."""

    def __init__(self, quiet, total):
        self.quiet, self.total, self.done, self.start = quiet, total, 0, time.monotonic()
        self.terminal, self.last = sys.stderr.isatty(), None

    def tell(self, text):
        if not self.quiet:
            print(f"{chr(13) if self.terminal and self.last else ''}weft sweep: {text}", file=sys.stderr, flush=True)

    def step(self, running):
        """One run has ended. The others take as long as those before, on average."""
        self.done += 1
        now = time.monotonic()
        left = self.total - self.done
        due = self.last is None or now - self.last >= (0.2 if self.terminal else 10) or left == 0
        if self.quiet or not due:
            return
        self.last = now
        seconds = (now - self.start) / self.done * left
        text = f"weft sweep: {self.done} of {self.total} runs, {running} under way, about {seconds:.0f} s left"
        end = "\n" if not self.terminal or left == 0 else ""
        print(f"{chr(13) if self.terminal else ''}{text:<78}", end=end, file=sys.stderr, flush=True)


class Sweep:
    """The study `path`, with its table in `output` and its runs in a folder beside that."""

    def __init__(self, path, output=None, quiet=False):
        self.study = load_study(path)
        self.output = pathlib.Path(output or pathlib.Path(path).stem + ".h5")
        self.program = Program()
        self.quiet = quiet
        self.records = Records(self.output.with_suffix(".runs"), self.study.outputs, self.study.keep_runs)
        identity = Identity(self.study, self.program)
        self.identities = [identity.of_case(case) for case in self.study.cases]
        self.machine_of = identity.of_machine
        self.errors = {}  # {identity: why it has failed}
        self.figures = {}  # {case number: {figure: value}}
        self.broken = {}  # {case number: the constraint that it breaks before it runs}
        self.elsewhere = set()  # identities that other programs were found to run
        self.reused = 0
        first = {}
        for case, name in zip(self.study.cases, self.identities):
            case.same_as = first.setdefault(name, case.number)

    def experiment(self):
        """The file that `weft` reads. A map of the study becomes one; names of files in it are then absolute."""
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
            words += ["--set", f"{path}={nodes.flow(data)}"]
        return words

    def prepare(self, jobs):
        """Machines, what is held equal, and constraints that are known before a run."""
        self.records.make_folder()
        study = self.study
        needs = study.needs_machines()
        machines = self.look_at_machines(jobs) if needs else {}
        early = [constraint for constraint in study.constraints if study.before_run(constraint)]
        for case in study.cases:
            self.figures[case.number] = machines.get(case.number, {})
            if needs and not self.figures[case.number]:
                continue  # weft refuses its machine: its run will say why
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
            cases.setdefault(self.machine_of(case), []).append(case)
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
                        found[identity] = json.loads(ended.out)
                        self.records.keep_machine(identity, ended.out)
        return {case.number: figures_of(found[identity]) for identity, all_cases in cases.items()
                for case in all_cases if found[identity] is not None}

    def to_run(self, numbers=None):
        """Numbers of the cases that run, each identity once."""
        chosen = {}
        for case in self.study.cases:
            if case.number not in self.broken and (numbers is None or case.number in numbers):
                chosen.setdefault(self.identities[case.number], case.number)
        return list(chosen.values())

    def run(self, jobs, numbers=None, fresh=False):
        """Runs what has no record yet, `jobs` at a time."""
        waiting = self.to_run(numbers)
        if fresh:
            for number in waiting:
                self.records.forget(self.identities[number])
        to_run = [number for number in waiting if self.records.find(self.identities[number]) is None]
        self.reused = len(waiting) - len(to_run)
        progress = Progress(self.quiet, len(to_run))
        progress.tell(f"{len(self.study.cases)} cases: {len(to_run)} to run, {self.reused} have been run before, "
                      f"{len(self.broken)} break a constraint")
        with Processes(jobs) as processes:
            elsewhere, looked = [], 0
            while to_run or elsewhere or processes.running:
                if not to_run and elsewhere and time.monotonic() - looked > LOOK:
                    to_run, elsewhere, looked = elsewhere, [], time.monotonic()
                while to_run and processes.has_room():
                    number = to_run.pop(0)
                    if not self.begin(number, processes, progress):
                        elsewhere.append(number)
                if not (processes.running or elsewhere):
                    continue  # others have run it in the meantime
                for (number, lock), ended in processes.wait(LOOK if elsewhere else 60):
                    self.end(number, lock, ended, progress)
                    progress.step(len(processes.running))

    def begin(self, number, processes, progress):
        """Starts a run, or finds that another program has done it. False if another program is about it."""
        identity = self.identities[number]
        lock = self.records.lock(identity)
        try:
            taken = lock.take()
        except OSError as error:
            raise EnvironmentFailure(f"cannot lock '{lock.path}': {error.strerror}") from None
        if not taken:
            if identity not in self.elsewhere:
                progress.tell(f"case {number} is being run by another process; waiting for it")
            self.elsewhere.add(identity)
            return False
        if self.records.find(identity) is not None:
            lock.give_back()
            progress.step(len(processes.running))
            return True
        words = self.words("run", self.study.cases[number])
        words += ["-o", str(self.records.results(identity)), "--summary", "json", "--quiet"]
        processes.start((number, lock), words, self.study.processes, (lock.descriptor,))
        return True

    def end(self, number, lock, ended, progress):
        identity = self.identities[number]
        summary = summary_of(ended)
        if summary:
            self.records.keep(identity, summary, ended.seconds, self.study.processes)
        else:
            how = f"exit code {ended.code}" if ended.code >= 0 else f"signal {-ended.code}"
            self.errors[identity] = f"{first_line(ended.err)} ({how})".strip()
            self.records.keep_error(identity, self.errors[identity])
            progress.tell(f"case {number} ({name_of(self.study.cases[number])}) failed: {self.errors[identity]}")
        lock.give_back()

    def rows(self):
        """What there is to tell about each case, in order."""
        return [self.row(case) for case in self.study.cases]

    def row(self, case):
        study, identity = self.study, self.identities[case.number]
        broken = self.broken.get(case.number, "")
        record = None if broken else self.records.find(identity)
        error = "" if record or broken else self.errors.get(identity) or self.records.error(identity)
        row = {"status": "excluded" if broken else "done" if record else "failed" if error else "missing",
               "error": error, "broken": broken, "record": record, "values": {}}
        values = {**case.inputs, **self.figures.get(case.number, {})}
        if record:
            values.update({name: output.value(record) for name, output in study.outputs.items()})
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
        """Reductions that no run has numbers for: a misspelt column, or one that these runs do not have."""
        records = [row["record"] for row in rows if row["record"]]
        return [output.text for output in self.study.outputs.values() if output.reduction and records and
                all(output.value(record) is None for record in records)]

    def front(self, rows):
        """Which rows are on the Pareto front of the objective, among those that are compared with each other."""
        groups = {}
        for i, row in enumerate(rows):
            groups.setdefault(tuple(row["values"].get(name) for name in self.study.within), []).append(i)
        best = [False] * len(rows)
        for numbers in groups.values():
            for i, on_front in zip(numbers, pareto.front([rows[i] for i in numbers], self.study.objective)):
                best[i] = on_front
        return best


def absolute(data, folder):
    """The same with names of files that exist in the folder made absolute; those without a dot or a slash may be names
    of something else."""
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
