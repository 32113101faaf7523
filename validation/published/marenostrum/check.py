# SPDX-License-Identifier: GPL-2.0-only
import csv

from measured_times import LARGE, add_errors, larger_packets, named

SOURCE = "HLC-Lab/pico 413bc5d, MareNostrum 5"

SMALL = 16 << 10  # LL
SIZES = (256, 2 << 10, 16 << 10, 128 << 10, 1 << 20, 8 << 20, 64 << 20, 128 << 20)
CALIBRATED = (16, 32)  # GPUs


def sizes_of(gpus):
    """Large ones take long on many ranks."""
    return [size for size in SIZES if size <= (128 << 20) * 16 // gpus]


def check(case):
    with open(case.folder / "measured.csv", encoding="utf-8") as file:
        measured = {(int(row["gpus"]), int(row["bytes"])): float(row["time_us"])
                    for row in csv.DictReader(line for line in file if not line.startswith("#"))}
    pairs = {}  # (how it is known, size class) -> [(measured, ours)]
    for gpus in (16, 32, 64, 128, 256):
        row = {size: measured[gpus, size] for size in sizes_of(gpus)}
        ours = {}
        for size in row:
            changes = {"workload.ranks": gpus, "workload.size": f"{size} B"}
            changes |= larger_packets(case.experiment["network"]) if size >= LARGE // 8 else {}
            ours[size] = case.run(changes)[0].time / 1e6
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
