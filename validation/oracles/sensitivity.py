# SPDX-License-Identifier: GPL-2.0-only
"""Sensitivity of a predicted step to its constants: each one low and high, within its known range."""

import copy
import json
import math
import pathlib
import re

import yaml

from oracles.gpu_spread import HIGH_SPREAD, SPREAD, slow_down


def gemms(device, factor):
    for key in ("gemms", "fp8_gemms", "fp8_block_gemms", "grouped_gemms", "grouped_fp8_block_gemms"):
        for tile in device["sustained"].get(key, {}).get("tiles", []):
            tile[2] = min(1.0, tile[2] * factor)
        for point in device["sustained"].get(key, {}).get("columns", []):
            point[1] = min(1.0, point[1] * factor)


def attention(device, factor):
    for one in device["sustained"].get("attention", []):
        for point in one["peak_fraction"]:
            point[1] = min(1.0, point[1] * factor)


def memory(device, factor):
    for curve in device["sustained"].get("memory_kernels", {}).values():
        for point in curve:
            point[1] = min(1.0, point[1] * factor)


def split_accumulation(device, factor):
    """The rate relative to that of GEMMs that add up in one level; 1 where the device has none of it."""
    if "split_accumulation" in device["sustained"]:
        device["sustained"]["split_accumulation"] = min(1.0, device["sustained"]["split_accumulation"] * factor)


def launches(device, factor):
    number, unit = device["sustained"]["launch"].split()
    device["sustained"]["launch"] = f"{float(number) * factor:.4g} {unit}"


def clock(device, factor):
    device["sustained"]["clock"] = min(1.0, device["sustained"].get("clock", 1) * factor)


def beside(device, factor):
    """Changes the bandwidth that collectives take; at the slow end they take more."""
    if "collective_bandwidth" in device["sustained"]:
        device["sustained"]["collective_bandwidth"] = scaled(device["sustained"]["collective_bandwidth"], 1 / factor)


def units_beside(device, factor):
    """Changes the multiprocessors that collectives take; at the slow end they take more."""
    if "collective_units" in device["sustained"]:
        device["sustained"]["collective_units"] = round(device["sustained"]["collective_units"] / factor)


def persistence(device, factor):
    """At the fast end no GEMM waits for the multiprocessors of collectives."""
    if factor > 1:
        for gemms_of_kind in device["sustained"].values():
            if isinstance(gemms_of_kind, dict) and "persistent" in gemms_of_kind:
                gemms_of_kind["persistent"] = False


def scaled(text, factor):
    number, unit = re.fullmatch(r"([\d.eE+-]+)\s*(.*)", text).groups()
    return f"{float(number) * factor:.6g} {unit}"


# name: (of the device, of the catalogue, of the machine, or of its GPUs; low and high as factors of the slower and the faster end,
# for GPUs their standard deviation; the reason)
CONSTANTS = {
    "GEMMs' rate": ("device", gemms, 0.94, 1.06, "two stacks differ by 6 to 7 % on one shape"),
    # h100-sxm.yaml: one GEMM on two GPUs 1.050 and 1.067 times as fast without; a user reports up to 1.2 (pytorch/ao, issue 2377); whole
    # layers at least 1.016 (meta-pytorch/float8_experimental, pull request 144).
    "split accumulation": ("device", split_accumulation, 1 / 1.2 / 0.945, 1 / 1.016 / 0.945,
                           "GEMMs of fp8 without it are 1.016 to 1.2 times as fast in several sources, 1.058 here"),
    "attention's rate": ("device", attention, 0.9, 1.1, "mean error on shapes held out"),
    "memory kernels' rate": ("device", memory, 0.9, 1.1, "mean error of norms and softmax on shapes held out"),
    "launches": ("device", launches, 2.0, 0.5, "published launches of 1.5 to 3 us, ours 1.7 to 2.6 us"),
    "clock": ("device", clock, 0.945, 1.03,
              "the H100's and the H200's differ by 3 %; with another power its square root instead of the power of 0.41 is as much again"),
    "collectives' bandwidth": ("device", beside, 2 / 3, 2.0, "1 to 3 B of memory for a byte that arrives, of which 2 are counted"),
    "collectives' units": ("device", units_beside, 3 / 4, 3 / 2, "NCCL's search gives 16 to 32 channels, by machine and release"),
    "persistent GEMMs": ("device", persistence, 1.0, 2.0, "no source says which kernels of cuBLAS ran; at the fast end none is persistent"),
    "calls' latency": ("machine", "launch_latency", 1.38, 1 / 1.38, "calls of two kinds on one server take 33 and 63 us at no bytes"),
    "NVLink's rate": ("machine", "nvlink_rate", 0.92, 1.08, "mean error of the fit to calls of NCCL"),
    "links' rate": ("machine", "link_rate", 0.85, 1.0, "what other traffic and placement take"),
    "host": ("framework", None, 2.0, 0.5, "5 to 20 us of an operation in several sources"),
    "spread of GPUs": ("gpus", None, HIGH_SPREAD, 0.0,
                       f"deviations from GPU to GPU, {SPREAD:g} in the prediction: the highest of five systems, and GPUs that are alike"),
}


class Varied:
    """A case whose runs have one changed constant, for a row whose ranks wait for each other like that."""

    def __init__(self, case, constant, high, waiting):
        self._case, self._constant, self._high, self._waiting = case, constant, high, waiting

    def __getattr__(self, name):
        return getattr(self._case, name)

    def __copy__(self):
        return Varied(copy.copy(self._case), self._constant, self._high, self._waiting)

    @property
    def experiment(self):
        return self._case.experiment

    @experiment.setter
    def experiment(self, value):
        self._case.experiment = value

    def run(self, changes=None):
        where, how, low, high, _ = CONSTANTS[self._constant]
        factor = high if self._high else low
        changed = copy.copy(self._case)
        changed.experiment = copy.deepcopy(self._case.experiment)
        for path, value in (changes or {}).items():
            *parents, last = path.split(".")
            place = changed.experiment
            for key in parents:
                place = place.setdefault(key, {})
            place[last] = value
        workload, topology = changed.experiment["workload"], changed.experiment["topology"]
        if how == "launch_latency":
            for group in workload.get("collectives", {}).values():
                if "launch_latency" in group:
                    group["launch_latency"] = scaled(group["launch_latency"], factor)
        elif where == "machine":
            place = topology["server"] if how == "nvlink_rate" else topology
            place[how] = scaled(place[how], factor)
        elif where == "gpus":
            slower = self._waiting.factor(factor) / self._waiting.factor()
            self.rewrite(workload, "device", lambda data: slow_down(data, slower))
        elif where == "device":
            self.rewrite(workload, "device", lambda data: how(data, factor))
        else:
            self.rewrite(workload, "framework", lambda data: slower_host(data, factor))
        return changed.run()

    def rewrite(self, workload, key, change):
        data = yaml.safe_load(pathlib.Path(workload[key]).read_text())
        change(data)
        path = self._case.scratch / f"varied-{key}.yaml"
        path.write_text(json.dumps(data))  # JSON is YAML
        workload[key] = str(path)


def slower_host(catalogue, factor):
    host = catalogue.get("host", {})
    for key in ("kernel", "collective"):
        if key in host:
            host[key] = scaled(host[key], factor)


def sensitivity(row, case):
    """(seconds, {constant: (change with the slow end, with the fast end) in percent}, low, high): the ends of all
    constants together are root sums of squares, because the constants are independent."""
    middle, waiting = row.run(case), row.waiting(case)
    changes = {name: tuple(100 * (row.run(Varied(case, name, high, waiting)) / middle - 1) for high in (False, True))
               for name in CONSTANTS}  # fmt: skip
    slow = math.sqrt(sum(max(ends) ** 2 for ends in changes.values()))
    fast = math.sqrt(sum(min(ends) ** 2 for ends in changes.values()))
    return middle, changes, middle * (1 - fast / 100), middle * (1 + slow / 100)
