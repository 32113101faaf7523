#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Pictures of the times of algorithms over size, one per machine: plot.py WEFT [FOLDER]."""

import csv
import json
import pathlib
import subprocess
import sys
import tempfile

import matplotlib
import yaml

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))
sys.dont_write_bytecode = True

from collectives.crossovers.machines import MACHINES, changes  # noqa: E402


def sweep(weft, machine, algorithm, scratch):
    """[(bytes, us)] for 1 KiB to 16 MiB, as printed by `weft perf`."""
    experiment = yaml.safe_load((HERE / "experiment.yaml").read_text())
    experiment.update(changes(machine, algorithm, 0))
    config, table = pathlib.Path(scratch) / "experiment.yaml", pathlib.Path(scratch) / "table.csv"
    config.write_text(json.dumps(experiment))
    words = [weft, "perf", "all_reduce", "-b", "1K", "-e", "16M", "-f", "4", config, "--csv", table]
    subprocess.run([str(word) for word in words], check=True, stdout=subprocess.DEVNULL)
    with table.open() as lines:
        return [(int(row["size_bytes"]), float(row["time_us"])) for row in csv.DictReader(lines)]


def main():
    weft = sys.argv[1]
    folder = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else HERE
    with tempfile.TemporaryDirectory(prefix="weft-crossovers-") as scratch:
        machines = {name: one for name, one in MACHINES.items() if "title" in one}
        for machine, one in machines.items():
            figure, axes = plt.subplots(figsize=(7, 4.5))
            for algorithm, marker in zip(one["algorithms"], "os^D", strict=False):
                points = sweep(weft, machine, algorithm, scratch)
                axes.plot(*zip(*points, strict=True), marker=marker, label=algorithm.replace("_", " "))
            axes.set_xscale("log", base=2)
            axes.set_yscale("log")
            ticks = [1 << power for power in range(10, 25, 2)]
            axes.set_xticks(ticks, [f"{t >> 10} KiB" if t < 1 << 20 else f"{t >> 20} MiB" for t in ticks])
            axes.set_xlabel("all-reduce, bytes per rank")
            axes.set_ylabel("time, us")
            axes.set_title(one["title"])
            axes.grid(alpha=0.3)
            axes.legend()
            figure.tight_layout()
            figure.savefig(folder / f"{machine}.png", dpi=80)
            plt.close(figure)
    print(f"{len(machines)} pictures in {folder}")


main()
