# SPDX-License-Identifier: GPL-2.0-only
"""`weft what-if`: an experiment, and the same with one thing changed at a time, as the cases of a study."""

import json
import os
import pathlib
import shutil

import yaml
from studies.outputs import last_job
from studies.records import write_whole
from studies.runs import REFUSED
from studies.sweep import Sweep
from support import nodes
from support.errors import EnvironmentFailure, StudyError
from support.output_files import output_path
from support.quantities import readable

from .changes import Changes

AS_IT_IS = "as it is"


class WhatIf:
    """The experiment `path` with the settings `words` (`KEY.PATH=VALUE`) and its changes. run() first."""

    def __init__(self, path, words, factor, processes, output, quiet):
        self.path, self.factor, self.quiet = pathlib.Path(path), factor, quiet
        self.settings = dict(map(setting, words))
        self.processes = processes
        self.study = pathlib.Path(output or f"{self.path.stem}.what_if.yaml")
        if self.study.suffix not in (".yaml", ".yml"):
            raise StudyError(f"-o found '{self.study}'; expected the name of a study, such as study.yaml")
        nodes.load(path)  # a clear error for a file that cannot be read
        output_path(str(self.study), [str(path)])

    def run(self, jobs):
        made = [path for path in (self.study, self.study.with_suffix(".runs")) if not path.exists()]
        base = self.sweep({})
        base.prepare(1)
        base.run(1)
        self.base = self.record(base, 0)
        if self.base is None:
            self.give_up(base.row_of(0)["error"], made)
        results = base.records.results(base.identities[0])
        changes = Changes(base.identity.resolved(base.study.cases[0]), results, self.factor, self.path.parent).found
        all_cases = self.sweep(changes)
        all_cases.prepare(jobs)
        all_cases.run(jobs)
        self.job = last_job(self.base["summary"])["name"]
        self.time = self.time_of(self.base)
        self.rows, self.refused = [], {}
        for case, name in zip(all_cases.study.cases, [AS_IT_IS, *changes]):
            record = self.record(all_cases, case.number)
            if record is None:
                self.refused[name] = all_cases.row_of(case.number)["error"].removesuffix(REFUSED)
            elif name != AS_IT_IS:
                self.rows.append((name, self.time_of(record), changes[name]))
        self.rows.sort(key=lambda row: row[1])

    @staticmethod
    def give_up(error, made):
        """The experiment itself cannot be run: nothing stays of what was `made`."""
        for path in made:
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        raise StudyError(error.removesuffix(REFUSED)) if error.endswith(REFUSED) else EnvironmentFailure(error)

    @staticmethod
    def record(sweep, number):
        return sweep.records.find(sweep.identities[number])

    def time_of(self, record):
        jobs = {job["name"]: job for job in record["summary"]["jobs"]}
        return int(jobs.get(self.job, last_job(record["summary"]))["time_ps"])

    def sweep(self, changes):
        """Writes the study, and reads it."""
        folder = self.study.resolve().parent
        study = {"experiment": os.path.relpath(self.path.resolve(), folder)}
        if self.settings:
            study["set"] = self.settings
        study["grid"] = {"change": {AS_IT_IS: {}, **changes}}
        study["outputs"] = ["job_time"]
        if self.processes:
            study["processes"] = str(self.processes)
        text = "".join(f"{key}: {nodes.flow(value)}\n" for key, value in study.items() if key != "grid")
        text += "grid:\n  change:\n" + "".join(f"    {nodes.flow(name)}: {nodes.flow(value)}\n"
                                               for name, value in study["grid"]["change"].items())
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(self.study, f"# Made by `weft what-if {self.path}`; `weft sweep` runs it, too.\n{text}")
        sweep = Sweep(str(self.study), str(self.study.with_suffix(".h5")), self.quiet)
        sweep.runs.tells_errors = False  # the table has them
        sweep.runs.command = "weft what-if"
        return sweep

    def saved(self, time):
        return 1 - time / self.time if self.time else 0.0

    def as_text(self):
        width = max(len(name) for name in [AS_IT_IS, *(name for name, *_ in self.rows), *self.refused])
        whole = f"job {self.job}" if len(self.base["summary"]["jobs"]) > 1 else "the run"
        lines = [f"{self.path}: {whole} takes {readable(self.time, 'ps')}; with one change at a time:",
                 f"  {'':{width}}  {'time':>10}  {'saves':>7}"]
        for name, time, _ in self.rows:
            lines.append(f"  {name:{width}}  {readable(time, 'ps'):>10}  {100 * self.saved(time):>5.1f} %")
        for name, reason in self.refused.items():
            lines.append(f"  {name:{width}}  refused: {reason}")
        return "\n".join([*lines, f"study: {self.study}"])

    def as_json(self):
        rows = [{"change": name, "time_ps": time, "saves": self.saved(time), "settings": settings}
                for name, time, settings in self.rows]
        return json.dumps({"experiment": str(self.path), "job": self.job, "time_ps": self.time, "changes": rows,
                           "refused": self.refused, "study": str(self.study)}, indent=2)


def setting(word):
    """(path, data) of `KEY.PATH=VALUE`."""
    path, equals, value = word.partition("=")
    if not equals or not path:
        raise StudyError(f"--set found '{word}'; expected KEY.PATH=VALUE, such as topology.k=8")
    try:
        return path, yaml.load(value, yaml.BaseLoader)
    except yaml.YAMLError:
        raise StudyError(f"--set {path}: found '{value}', which is no YAML") from None
