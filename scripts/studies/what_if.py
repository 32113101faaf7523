# SPDX-License-Identifier: GPL-2.0-only
"""`weft what-if`: an experiment, and the same with one thing changed at a time, as the cases of a study."""

import json
import os
import pathlib
import shutil

import h5py
import numpy as np
import yaml
from support import nodes
from support.errors import EnvironmentFailure, StudyError
from support.output_files import output_path
from support.quantities import parse_quantity, readable

from .outputs import last_job
from .records import write_whole
from .runs import REFUSED
from .sweep import Sweep

AS_IT_IS = "as it is"
USUAL_WINDOW = "256 KiB"  # docs/reference/network.md
# Links of these classes are changed together: a GPU's crossbar has the rate of all its links, and a NIC that of its PCIe.
TOGETHER = {"nvlink": ["nvlink", "gpu"], "nic": ["nic", "pcie", "gpu"]}
NOT_ALONE = ("gpu", "pcie")
ONE_WAY = ("star", "line")  # networks with one path between two hosts


def number(value):
    return f"{value:g}"


class Changes:
    """What may make a run shorter: {name: {path of a key: value}}. `base` is the experiment as data, `results` its results
    file. Each change concerns one resource, or one cause of delay."""

    def __init__(self, base, results, factor):
        self.base, self.factor, self.found = base, factor, {}
        with h5py.File(results, "r") as file:
            self.links = self.busy_classes(file)
            ranks = file["ranks"]
            self.computes = bool((ranks["compute"][:] > 0).any())
            self.launches = bool("host" in ranks and (ranks["host"][:] > 0).any())
            jobs = file["jobs"]
            self.jobs = list(zip(jobs["name"].asstr()[:].tolist(), jobs["time"][:].tolist(),
                                 (jobs["background"][:] != 0).tolist()))
        self.packets = (self.at("network.fidelity") or "packet") == "packet"
        for change in (self.contention, self.rates, self.latency, self.balancing, self.window, self.work, self.faults,
                       self.others):
            change()

    @staticmethod
    def busy_classes(file):
        """Classes of links that carried something, the busiest first."""
        links = file["links"]
        names, busy = links["link_class"].asstr()[:], links["busy"][:]
        most = {name: int(busy[names == name].max()) for name in np.unique(names)}
        return sorted((name for name in most if most[name] > 0), key=lambda name: (-most[name], name))

    def at(self, path):
        return nodes.at_path(self.base, path)

    def add(self, name, **settings):
        self.found[name] = {path.replace("__", "."): value for path, value in settings.items()}

    def machine(self, name, **change):
        self.add(name, topology__what_if=[*(self.at("topology.what_if") or []), change])

    def transform(self, name, **change):
        self.add(name, workload__transform=[*(self.at("workload.transform") or []), {"scale": change}])

    def contention(self):
        if self.packets:
            self.add("no contention (ideal network)", network__fidelity="ideal")

    def rates(self):
        times = f"{number(self.factor)} times as fast"
        classes = [name for name in self.links if name not in NOT_ALONE]
        if classes:
            self.machine(f"all links {times}", rate=number(self.factor))
        for name in classes if len(classes) > 1 else []:
            links = [other for other in TOGETHER.get(name, [name]) if other == name or other in self.links]
            self.machine(f"{name} links {times}", links=links, rate=number(self.factor))

    def latency(self):
        if self.links:
            self.machine(f"links of 1/{number(self.factor)} the delay", delay=number(1 / self.factor))

    def balancing(self):
        known = self.at("network.load_balancing") or "ecmp"
        if self.packets and known == "ecmp" and self.at("topology.kind") not in ONE_WAY:
            self.add("packets sprayed over all paths", network__load_balancing="spray")

    def window(self):
        window = parse_quantity(str(self.at("network.window") or USUAL_WINDOW))
        if self.packets and window and window[0] and (self.at("network.congestion_control") or "none") == "none":
            self.add(f"a window {number(self.factor)} times as large",
                     network__window=f"{round(window[0] * self.factor)} B")

    def work(self):
        times = f"{number(self.factor)} times as fast"
        if self.computes:
            self.transform(f"devices {times}", kernels="*", by=number(1 / self.factor))
        if self.launches:
            self.transform(f"hosts launch {times}", host="*", by=number(1 / self.factor))
            if self.at("workload.framework"):
                self.add("CUDA graphs", workload__cuda_graphs="true")

    def faults(self):
        for key, name in (("failures", "no failures"), ("loss", "no losses on links")):
            if self.at(f"network.{key}"):
                self.add(name, **{f"network__{key}": []})

    def others(self):
        if self.at("background"):
            self.add("no background", background=[])
        names = [name for name, *_ in self.jobs]
        if self.at("workload.kind") == "jobs" and len(names) > 1:
            longest = max((job for job in self.jobs if not job[2]), key=lambda job: job[1])[0]
            self.add(f"job {longest} alone", workload__only=longest)


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
        changes = Changes(base.identity.resolved(base.study.cases[0]), results, self.factor).found
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
