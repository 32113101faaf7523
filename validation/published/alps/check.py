# SPDX-License-Identifier: GPL-2.0-only
import csv

from measured_times import LARGE, add_errors, larger_packets, named

SOURCE = "boeschf/nccl-benchmark-on-alps-2025 897cff4, Alps"

SIZES = (8, 512, 4 << 10, 32 << 10, 2 << 20, 8 << 20, 32 << 20, 256 << 20)
CALIBRATED = 8  # GPUs


def sizes_of(gpus):
    """Large ones take long on many ranks."""
    return [size for size in SIZES if gpus <= 16 or size <= 32 << 20]


def check(case):
    with open(case.folder / "measured.csv", encoding="utf-8") as file:
        measured = {(int(row["gpus"]), int(row["bytes"])): float(row["time_us"])
                    for row in csv.DictReader(line for line in file if not line.startswith("#"))}
    pairs = {}  # how it is known -> [(measured, ours)]
    for gpus in (4, 8, 16, 32, 64):
        row = {size: measured[gpus, size] for size in sizes_of(gpus)}
        ours = {}
        for size in row:
            changes = {"workload.ranks": gpus, "workload.size": f"{size} B"}
            changes |= larger_packets(case.experiment["network"]) if size >= LARGE // 8 else {}
            ours[size] = case.run(changes)[0].time / 1e6
            known = "calibrated on" if gpus == CALIBRATED else "one server, predicted" if gpus == 4 else "predicted"
            pairs.setdefault(f"{'up to 32 KiB' if size <= 32 << 10 else 'larger'}, {known}", []).append(
                (row[size], ours[size]))
        case.compare(
            f"{gpus} GH200: all_reduce of {', '.join(map(named, row))}",
            ", ".join(f"{us:g}" for us in row.values()) + " us",
            ", ".join(f"{us:.4g}" for us in ours.values()) + " us",
            ", ".join(f"{100 * (ours[size] / row[size] - 1):+.0f}" for size in row) + " %",
        )  # fmt: skip
    for name, found in pairs.items():
        add_errors(case, name, found)
