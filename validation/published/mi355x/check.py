# SPDX-License-Identifier: GPL-2.0-only
import csv

from measured_times import add_errors, add_times, larger_packets, named

SOURCE = "hisohara/ai-scripts 0780bb3, rccl-tests on MI355X; ROCm/rocm-systems pull request 9406, MI350X"

GPUS = 16
MIB = 1 << 20
WITHIN = 10  # percent, of the rate
WHAT = {"launch": "launch calibrated on", "": "predicted"}
ALGORITHMS = {"double_binary_tree": "trees", "ring": "rings"}
CHUNKS = {("double_binary_tree", "ll128"): "50176 B", ("ring", "ll128"): "50176 B", ("double_binary_tree", "simple"): "64 KiB"}


def bus_rate(first, second):
    """GB/s: the additional bytes over the additional time."""
    (size, us), (larger, more_us) = first, second
    return 2 * (GPUS - 1) / GPUS * (larger - size) / (more_us - us) / 1e3


def rows_of(path):
    with open(path, encoding="utf-8") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def time_of(case, size, changes=None):
    """Ours in us."""
    changes = {"workload.algorithm": "nccl", "workload.ranks": GPUS, "workload.size": f"{size} B"} | (changes or {})
    return case.run(changes | larger_packets(case.experiment["network"]))[0].time / 1e6


def check(case):
    rows = [row | {"bytes": int(row["bytes"]), "time_us": float(row["time_us"])} for row in rows_of(case.folder / "measured.csv")]
    rows = [row for row in rows if 1024 <= row["bytes"] <= 1024 * MIB]
    for row in rows:
        row["ours"] = time_of(case, row["bytes"])
    parts = (("LL", 0, 131071), ("LL128", 131071, 17660227), ("Simple", 17660227, 1024 * MIB))  # collectives/tuners/rccl_mi355x.yaml
    for protocol, more_than, up_to in parts:
        for fit, what in WHAT.items():
            some = [row for row in rows if more_than < row["bytes"] <= up_to and row["fit"] == fit]
            if not some:
                continue
            name = f"{protocol}, {what}"
            add_times(case, f"16 MI355X, {name}: all_reduce of {', '.join(named(row['bytes']) for row in some)}",
                      [row["time_us"] for row in some], [row["ours"] for row in some])  # fmt: skip
            if len(some) > 2:
                add_errors(case, f"16 MI355X, {name}", [(row["time_us"], row["ours"]) for row in some])
    # The same by algorithm and protocol, on another pair of servers.
    for row in rows_of(case.folder / "chosen.csv"):
        size, algorithm, protocol = int(row["bytes"]), row["algorithm"], row["protocol"]
        measured = 2 * (GPUS - 1) / GPUS * size / float(row["busbw_gbps"]) / 1e3
        changes = {"algorithm": algorithm, "protocol": protocol, "channels": int(row["channels"]), "collective_kernel": "mi355x"}
        if (algorithm, protocol) in CHUNKS:
            changes["chunk_size"] = CHUNKS[algorithm, protocol]
        ours = time_of(case, size, {f"workload.{key}": value for key, value in changes.items()})
        add_times(case, f"16 MI350X, {ALGORITHMS[algorithm]} with {protocol}, {row['channels']} channels"
                  f"{', calibrated on' if row['fit'] else ''}: all_reduce of {named(size)}", [measured], [ours])  # fmt: skip
    large = {int(row["bytes"]): float(row["time_us"]) for row in rows_of(case.folder / "measured.csv")}
    theirs = bus_rate(*[(size, large[size]) for size in (4096 * MIB, 8192 * MIB)])
    found = {row["bytes"]: row["ours"] for row in rows}
    rate = bus_rate(*[(size, found[size]) for size in (512 * MIB, 1024 * MIB)])
    case.add("16 MI355X: bus bandwidth of what a longer call has more", f"{theirs:.1f} GB/s ± {WITHIN} %", f"{rate:.1f} GB/s",
             f"{100 * (rate / theirs - 1):+.1f} %", abs(rate / theirs - 1) <= WITHIN / 100)
