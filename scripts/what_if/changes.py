# SPDX-License-Identifier: GPL-2.0-only
"""What may make a run shorter, as settings of its experiment."""

import h5py
import numpy as np
from support import nodes
from support.quantities import parse_quantity

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
        for change in (self.contention, self.rates, self.latency, self.balancing, self.placement, self.window, self.work, self.faults,
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
            self.add("adaptive load balancing", network__load_balancing="adaptive")

    def placement(self):
        known = self.at("workload.placement")
        if known not in (None, "packed") and self.at("workload.kind") != "jobs":
            self.add("ranks packed on neighbouring hosts", workload__placement="packed")

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
