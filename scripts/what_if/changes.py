# SPDX-License-Identifier: GPL-2.0-only
"""What may make a run shorter, as settings of its experiment."""

from support import nodes
from support.quantities import parse_quantity
from support.routings import BY_THEMSELVES, alternatives

from .algorithms import Algorithms
from .results import NOTEWORTHY, Results

USUAL_WINDOW = "256 KiB"  # docs/reference/network.md
# Links of these classes are changed together: a GPU's crossbar has the rate of all its links, and a NIC that of its PCIe.
TOGETHER = {"nvlink": ["nvlink", "gpu"], "nic": ["nic", "pcie", "gpu"]}
NOT_ALONE = ("gpu", "pcie")
ONE_WAY = ("star", "line")  # networks with one path between two hosts
FAULTS = {"failures": "no failures", "loss": "no losses on links"}  # keys of `network`
CONTROLS = ("dcqcn", "dctcp", "hpcc", "swift", "none")
DCQCN_PRESETS = ("paper", "connectx")  # the first one is the default


def number(value):
    return f"{value:g}"


class Changes:
    """What may make a run shorter: {name: {path of a key: value}}. `base` is the experiment as data, `results` its results
    file, `folder` that of the experiment. Each change concerns one resource, or one cause of delay."""

    def __init__(self, base, results, factor, folder):
        self.base, self.factor, self.found, self.folder = base, factor, {}, folder
        self.results = Results(results)
        self.links = self.results.links
        self.packets = (self.at("network.fidelity") or "packet") == "packet"
        for change in (self.contention, self.rates, self.latency, self.slow_links, self.balancing, self.routing, self.placement, self.window,
                       self.control, self.buffers, self.work, self.slow_ranks, self.collectives, self.faults, self.others):
            change()

    def at(self, path):
        return nodes.at_path(self.base, path)

    def add(self, name, **settings):
        self.found[name] = {path.replace("__", "."): value for path, value in settings.items()}

    def machine(self, name, **change):
        self.add(name, topology__what_if=[*(self.at("topology.what_if") or []), change])

    def transform(self, name, **change):
        self.add(name, workload__transform=[*(self.at("workload.transform") or []), {"scale": change}])

    def contention(self):
        """An ideal network has no faults, which are what slows it otherwise."""
        faults = {f"network__{key}": [] for key in FAULTS if self.at(f"network.{key}")}
        if self.packets:
            self.add(f"no contention{', no faults' if faults else ''} (ideal network)", network__fidelity="ideal", **faults)

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
            if self.results.attributes.get("routing") not in BY_THEMSELVES:
                self.add("adaptive load balancing", network__load_balancing="adaptive")

    def routing(self):
        for routing in alternatives(self.results.attributes.get("routing")) if self.packets else []:
            self.add(f"routing {routing}", network__routing=routing)

    def placement(self):
        known = self.at("workload.placement")
        if known not in (None, "packed") and self.at("workload.kind") != "jobs":
            self.add("ranks packed on neighbouring hosts", workload__placement="packed")

    def window(self):
        window = parse_quantity(str(self.at("network.window") or USUAL_WINDOW))
        if self.packets and window and window[0] and (self.at("network.congestion_control") or "none") == "none":
            self.add(f"a window {number(self.factor)} times as large",
                     network__window=f"{round(window[0] * self.factor)} B")

    def control(self):
        known = self.at("network.congestion_control") or "none"
        if self.packets and known != "none":
            for name in CONTROLS:
                if name != known:
                    self.add(f"congestion control {name}", network__congestion_control=name)
        if self.packets and known == "dcqcn":
            other = next(name for name in DCQCN_PRESETS if name != (self.at("network.dcqcn.preset") or DCQCN_PRESETS[0]))
            self.add(f"dcqcn with preset {other}", network__dcqcn__preset=other)

    def buffers(self):
        for path in ("network.buffer.size", "network.credit.buffer"):
            size = parse_quantity(str(self.at(path)))
            if self.packets and size and size[0] and (self.results.drops or self.results.paused):
                self.found[f"buffers {number(self.factor)} times as large"] = {path: f"{round(size[0] * self.factor)} B"}

    def slow_links(self):
        """Links that are slower than all others of their class, as fast as these."""
        for name, slow in self.results.slow_links.items():
            changes = [{"link": [a, b], "rate": number(times)} for a, b, times in slow]
            which = " - ".join(slow[0][:2]) + (f" and {len(slow) - 1} more" if len(slow) > 1 else "")
            self.add(f"{which} as fast as other {name} links", topology__what_if=[*(self.at("topology.what_if") or []), *changes])

    def work(self):
        times = f"{number(self.factor)} times as fast"
        if self.results.computes:
            self.transform(f"devices {times}", kernels="*", by=number(1 / self.factor))
        if self.results.launches:
            self.transform(f"hosts launch {times}", host="*", by=number(1 / self.factor))
            if self.at("workload.framework"):
                self.add("CUDA graphs", workload__cuda_graphs="true")

    def slow_ranks(self):
        """Few ranks that compute longer than the others of their job, as long as the median."""
        slow = self.results.slow_ranks
        if slow:
            changes = [{"scale": {"kernels": "*", "ranks": [str(rank)], "by": number(1 / times)}} for rank, times in slow]
            which = f"rank {slow[0][0]}" + (f" and {len(slow) - 1} more" if len(slow) > 1 else "")
            self.add(f"{which} no slower than the median", workload__transform=[*(self.at("workload.transform") or []), *changes])
        noise = self.at("workload.compute_noise")
        if isinstance(noise, dict) and set(noise) - {"slow_ranks"}:
            self.add("no compute noise", workload__compute_noise={})

    def collectives(self):
        if self.results.communicates < NOTEWORTHY:
            return
        path, workload = self.job()
        for name, settings in Algorithms(workload, self.results, self.factor).found.items():
            if path is None:
                self.found[name] = {f"workload.{key}": value for key, value in settings.items()}
            else:
                words = [f"{key}={value}" for key, value in settings.items()]
                self.found[name] = {path: [*(self.at(path) or []), *words]}

    def job(self):
        """(path of the settings of the longest job, None if there is one job, and its workload with these settings)."""
        jobs = self.at("workload.jobs")
        if self.at("workload.kind") != "jobs" or not isinstance(jobs, list):
            workload = self.at("workload")
            return None, workload if isinstance(workload, dict) else {}
        wanted = self.results.jobs[self.results.job]
        place = next((i for i, job in enumerate(jobs) if (job.get("name") or f"job{i}") == wanted), 0)
        workload = jobs[place].get("workload")
        workload = self.workload_in(workload) if isinstance(workload, str) else workload
        for word in jobs[place].get("set") or []:
            path, _, value = word.partition("=")
            workload = nodes.with_value(workload, path, value)
        return f"workload.jobs.{place}.set", workload if isinstance(workload, dict) else {}

    def workload_in(self, path):
        """That of a job's file, which has a workload alone or an experiment."""
        data = nodes.load(self.folder / path)[1].data()
        return data.get("workload", data)

    def faults(self):
        for key, name in FAULTS.items():
            if self.at(f"network.{key}"):
                self.add(name, **{f"network__{key}": []})

    def others(self):
        if self.at("background"):
            self.add("no background", background=[])
        if self.at("workload.kind") == "jobs" and len(self.results.jobs) > 1:
            longest = self.results.jobs[self.results.job]
            self.add(f"job {longest} alone", workload__only=longest)
