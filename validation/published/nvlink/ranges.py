#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""The range in which each constant of collectives/kernels still fits the rows on which it was calibrated.

validation/published/nvlink/ranges.py [KERNEL...] [--constant NAME...]

For each constant alone, with the others at their mid values: the range in which the mean |log(ours / measured)| over
its rows stays within 10 % of its value at mid, or within 1.5 %, the difference of repeated runs of a row in the source.
Times between simulated ones are interpolated. Prints [low, mid, high] in the notation of the files; a person copies
them there. A kernel takes some minutes. The program is $WEFT, or build/weft."""

import argparse
import csv
import json
import math
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import yaml

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path[:0] = [str(ROOT / "validation"), str(ROOT / "scripts")]
sys.dont_write_bytecode = True

from check import SERVERS, VERSIONS  # noqa: E402
from measured_times import LARGE, larger_packets  # noqa: E402
from support import open_mpi  # noqa: E402

WORSE, NOISE = 1.10, 0.015
MIN_SCALE = 0.5  # us: the step of a constant that is nearly 0
STEPS = (-1.0, -0.5, -0.2, 0.0, 0.25, 0.6, 1.0)  # relative to the mid value: of a time, or of the time of a byte
RINGS = ("all_reduce", "all_gather", "reduce_scatter")
SMALL, MIDDLE, MOST = 512 << 10, 1 << 20, 1 << 40
#            collectives       GPUs       least bytes  most
LOW_LATENCY = (RINGS, (2,), 0, SMALL)
SIMPLE = (RINGS, (2,), MIDDLE, MOST)
SIMPLE_B200 = (RINGS + ("all_to_all",), (2,), 4 << 20, MOST)
PAIRS = (("all_to_all",), (2,), MIDDLE, MOST)
ROWS = {
    "launch": LOW_LATENCY, "second_channel": LOW_LATENCY,
    "ll.message": LOW_LATENCY, "ll.trip": LOW_LATENCY, "ll.full_trip": LOW_LATENCY,
    "large_buffers": SIMPLE, "simple.message": SIMPLE, "simple.step": SIMPLE, "store_rate": SIMPLE,
    "ll128.message": (("all_reduce",), (4,), 2 << 20, 8 << 20), "ll128.trip": (("all_reduce",), (4,), 2 << 20, 8 << 20),
    "ll128.full_trip": (("all_reduce",), (4,), 2 << 20, 8 << 20),
    "nvls_loop": (("all_reduce",), (8,), 64 << 20, MOST),
    "link_rate": (("all_gather",), (2, 4, 8), 64 << 20, MOST),
    "pair_buffers": PAIRS, "warp_rate": PAIRS,
}  # fmt: skip
# Of the MI300X all together are fitted to ten all-reduces, and these constants take part in them.
MI300X = HERE.parent / "mi300x"
ROWS_OF_MI300X = ("launch", "large_buffers", "simple.message", "simple.step", "ll.message", "ll.trip", "ll.full_trip", "link_rate")


def measured_rows(gpu, wanted):
    """(collective, GPUs) -> {bytes: us}"""
    collectives, counts, least, most = wanted
    rows = {}
    if gpu == "MI300X":
        with open(MI300X / "azure.csv", encoding="utf-8") as file:
            fitted = [r for r in csv.DictReader(line for line in file if not line.startswith("#")) if r["fit"] == "1"]
        return {("all_reduce", 8): {int(r["bytes"]): float(r["time_us"]) for r in fitted}}
    with open(HERE / "measured.csv", encoding="utf-8") as file:
        for r in csv.DictReader(line for line in file if not line.startswith("#")):
            key, size = (r["collective"], int(r["gpus"])), int(r["bytes"])
            if r["gpu"] == gpu and key[0] in collectives and key[1] in counts and least <= size <= most:
                rows.setdefault(key, {})[size] = float(r["time_us"])
    return rows


class Installed:
    """A copy of the program with a kernel file that can be changed."""

    def __init__(self, weft, folder, kernel):
        self.program = folder / "bin" / "weft"
        self.folder = folder
        self.program.parent.mkdir()
        shutil.copy2(weft, self.program)
        data = folder / "share" / "weft"
        data.mkdir(parents=True)
        for room in ("topologies", "workloads"):
            (data / room).symlink_to(ROOT / room)
        shutil.copytree(ROOT / "collectives", data / "collectives")
        self.file = data / "collectives" / "kernels" / f"{kernel}.yaml"
        self.mid = yaml.safe_load(self.file.read_text())

    def mid_value(self, name):
        """Number and unit."""
        *parents, last = name.split(".")
        place = self.mid
        for key in parents:
            place = place[key]
        if last not in place:
            return None
        text = place[last][1] if isinstance(place[last], list) else place[last]
        number, unit = text.split()
        return float(number), unit

    def set(self, name, text):
        changed = json.loads(json.dumps(self.mid))
        *parents, last = name.split(".")
        place = changed
        for key in parents:
            place = place[key]
        place[last] = text
        self.file.write_text(json.dumps(changed))

    def times(self, gpu, rows):
        """The same rows as measured_rows, simulated."""
        experiment = (MI300X if gpu == "MI300X" else HERE) / "experiment.yaml"
        network = yaml.safe_load(experiment.read_text())["network"]
        found = {}
        for (collective, gpus), sizes in rows.items():
            for large in (False, True):
                some = [size for size in sizes if (size >= LARGE) == large]
                if not some:
                    continue
                changes = {"topology.design": SERVERS[gpu], "workload.ranks": gpus,
                           "workload.nccl_version": VERSIONS[gpu]} if gpu in SERVERS else {
                               "topology.hosts_per_leaf": 1, "workload.algorithm": "nccl"}  # fmt: skip
                changes |= larger_packets(network) if large else {}
                words = [self.program, "perf", collective, experiment, "-b", min(some), "-e", max(some),
                         "-f", 4, "-d", "half", "--json"]  # fmt: skip
                for key, value in changes.items():
                    words += ["--set", f"{key}={value}"]
                settings = open_mpi.environment(self.folder, OMPI_MCA_ess_singleton_isolated="1")
                done = subprocess.run(
                    [str(word) for word in words], env=settings, capture_output=True, text=True, check=False
                )
                if done.returncode != 0:
                    raise RuntimeError(done.stderr)
                for row in json.loads(done.stdout)["rows"]:
                    found[collective, gpus, row["size_bytes"]] = row["time_us"]
        return found


def mean_error(times, rows):
    errors = [abs(math.log(times[*key, size] / us)) for key, sizes in rows.items() for size, us in sizes.items()]
    return sum(errors) / len(errors)


def between(low, high, share):
    return {key: low[key] + share * (high[key] - low[key]) for key in low}


def ends(grid, rows):
    """Positions below and above 0 up to which the error stays within the limit. grid: [(position, times)], by
    position."""
    limit = max(WORSE * mean_error(dict(grid)[0.0], rows), NOISE)
    found = []
    for side in (-1, 1):
        points = sorted(((abs(at), times) for at, times in grid if at * side >= 0), key=lambda point: point[0])
        last = 0.0
        for (a, low), (b, high) in zip(points, points[1:]):
            shares = [i / 40 for i in range(1, 41)]
            good = [share for share in shares if mean_error(between(low, high, share), rows) <= limit]
            unbroken = 0
            while unbroken < len(good) and good[unbroken] == shares[unbroken]:
                unbroken += 1
            last = a + (b - a) * unbroken / 40
            if unbroken < len(shares):
                break
        found.append(side * last)
    return found


def range_of(installed, gpu, name, rows):
    mid, unit = installed.mid_value(name)
    is_time = unit.endswith("s") and "/" not in unit
    scale = max(mid, MIN_SCALE) if is_time else 1 / mid
    grid = []
    for step in STEPS:
        value = mid + step * scale if is_time else 1 / (1 / mid + step * scale) if step > -1 else None
        if value is None or value < 0:
            continue
        value = max(value, 0.01) if name.endswith("full_trip") else value  # 0 is refused
        installed.set(name, f"{value:.6g} {unit}")
        grid.append((step, installed.times(gpu, rows)))
    low, high = ends(grid, rows)
    value_at = (lambda at: max(0.0, mid + at * scale)) if is_time else (lambda at: 1 / (1 / mid + at * scale))
    return value_at(low), mid, value_at(high), unit, mean_error(dict(grid)[0.0], rows), (low, high)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kernels", nargs="*", default=["a100", "h100", "h200", "b200", "mi300x"])
    parser.add_argument("--constant", action="append")
    options = parser.parse_args()
    weft = pathlib.Path(os.environ.get("WEFT", ROOT / "build" / "weft")).resolve()
    for kernel in options.kernels:
        gpu = kernel.upper()
        with tempfile.TemporaryDirectory() as folder:
            installed = Installed(weft, pathlib.Path(folder), kernel)
            for name, wanted in ROWS.items():
                if (options.constant and name not in options.constant) or installed.mid_value(name) is None:
                    continue
                if gpu == "MI300X" and name not in ROWS_OF_MI300X:
                    continue
                if gpu == "B200" and wanted in (SIMPLE, PAIRS):
                    wanted = SIMPLE_B200
                low, mid, high, unit, error, (a, b) = range_of(installed, gpu, name, measured_rows(gpu, wanted))
                print(f"{kernel} {name}: [{low:.3g} {unit}, {mid:g} {unit}, {high:.3g} {unit}]  "
                      f"# error {100 * error:.1f} %, at {a:+.2f} and {b:+.2f}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
