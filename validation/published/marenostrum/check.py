# SPDX-License-Identifier: GPL-2.0-only
import csv

from measured_times import LARGE, add_errors, larger_packets, named

SOURCE = "HLC-Lab/pico 413bc5d, MareNostrum 5"

SMALL = 16 << 10  # LL
SIZES = (256, 2 << 10, 16 << 10, 128 << 10, 1 << 20, 8 << 20, 64 << 20, 128 << 20)
CALIBRATED = (16, 32)  # GPUs
# What one change does to sizes that are above 15 %.
RING = {"workload.algorithm": "ring", "workload.collective_kernel": "h100", "workload.collective_transport": "verbs"}
BEHIND_A_CPU = {"workload.nccl_version": 2.23, "topology.server": {"design": "marenostrum5", "nics_behind_cpu": True}}
CHANGES = (
    (256, (16, 32, 64, 128, 256), "constants at their least", {"workload.kernel_constants": "low"}),
    (1 << 20, (64,), "LL", RING | {"workload.protocol": "ll"}),
    (1 << 20, (64,), "LL128", RING | {"workload.protocol": "ll128"}),
    (1 << 20, (64,), "Simple", RING | {"workload.protocol": "simple"}),
    (1 << 20, (16, 32, 64), "NICs behind a CPU, NCCL 2.23", BEHIND_A_CPU),
    (8 << 20, (16, 32, 64, 128), "Simple", RING | {"workload.protocol": "simple"}),
    (8 << 20, (16, 32, 64, 128), "constants at their most", {"workload.kernel_constants": "high"}),
    (8 << 20, (16, 64), "as NCCL up to 2.20 chooses", {"workload.nccl_version": 2.18}),
    (64 << 20, (32,), "Simple", RING | {"workload.protocol": "simple"}),
)


def sizes_of(gpus):
    """Large ones take long on many ranks."""
    return [size for size in SIZES if size <= (128 << 20) * 16 // gpus]


def time_of(case, gpus, size, changes):
    changes = changes | {"workload.ranks": gpus, "workload.size": f"{size} B"}
    changes |= larger_packets(case.experiment["network"]) if size >= LARGE // 8 else {}
    return case.run(changes)[0].time / 1e6


def add_changes(case, measured):
    for size, counts, what, changes in CHANGES:
        ours = {gpus: time_of(case, gpus, size, changes) for gpus in counts}
        case.compare(
            f"one change, {named(size)} on {', '.join(map(str, counts))} H100: {what}",
            ", ".join(f"{measured[gpus, size]:g}" for gpus in counts) + " us",
            ", ".join(f"{us:.4g}" for us in ours.values()) + " us",
            ", ".join(f"{100 * (ours[gpus] / measured[gpus, size] - 1):+.0f}" for gpus in counts) + " %",
        )


def check(case):
    with open(case.folder / "measured.csv", encoding="utf-8") as file:
        measured = {(int(row["gpus"]), int(row["bytes"])): float(row["time_us"])
                    for row in csv.DictReader(line for line in file if not line.startswith("#"))}
    pairs = {}  # (how it is known, size class) -> [(measured, ours)]
    for gpus in (16, 32, 64, 128, 256):
        row = {size: measured[gpus, size] for size in sizes_of(gpus)}
        ours = {}
        for size in row:
            ours[size] = time_of(case, gpus, size, {})
            known = "calibrated on" if gpus in CALIBRATED else "predicted"
            pairs.setdefault((known, "up to 16 KiB" if size <= SMALL else "larger"), []).append((row[size], ours[size]))
        case.compare(
            f"{gpus} H100: all_reduce of {', '.join(map(named, row))}",
            ", ".join(f"{us:g}" for us in row.values()) + " us",
            ", ".join(f"{us:.4g}" for us in ours.values()) + " us",
            ", ".join(f"{100 * (ours[size] / row[size] - 1):+.0f}" for size in row) + " %",
        )  # fmt: skip
    for (known, name), found in pairs.items():
        add_errors(case, f"{name}, {known}", found)
    add_changes(case, measured)
