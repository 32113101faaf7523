# SPDX-License-Identifier: GPL-2.0-only
import csv

from measured_times import LARGE, add_errors, larger_packets, named

SOURCE = "boeschf/nccl-benchmark-on-alps-2025 897cff4, Alps"

SIZES = (8, 512, 4 << 10, 32 << 10, 2 << 20, 8 << 20, 32 << 20, 256 << 20)
# No plug-in has part in one server, a mesh of 4 GPUs: all sizes of NCCL's middle range.
MESH = tuple(256 << (10 + doubling) for doubling in range(7))
CALIBRATED = 8  # GPUs
# What one change does to sizes that are above 15 %.
TRANSPORT = {"workload.collective_kernel": "h100", "workload.collective_transport": "slingshot"}
RING = TRANSPORT | {"workload.algorithm": "ring"}
TREE = TRANSPORT | {"workload.algorithm": "double_binary_tree"}
CHANGES = (
    (8 << 20, (8, 16, 32, 64), "trees of LL128", TREE | {"workload.protocol": "ll128"}),
    (8 << 20, (8, 16, 32, 64), "trees of Simple", TREE | {"workload.protocol": "simple"}),
    (8 << 20, (8, 16, 32, 64), "rings of Simple", RING | {"workload.protocol": "simple"}),
    (32 << 20, (32, 64), "rings of Simple", RING | {"workload.protocol": "simple"}),
    (32 << 20, (32, 64), "trees of Simple", TREE | {"workload.protocol": "simple"}),
    (32 << 10, (16, 32, 64), "constants at their most", {"workload.kernel_constants": "high"}),
)


def sizes_of(gpus):
    """Large ones take long on many ranks."""
    if gpus == 4:
        return sorted({*SIZES, *MESH})
    return [size for size in SIZES if gpus <= 16 or size <= 32 << 20]


def time_of(case, gpus, size, changes):
    changes = changes | {"workload.ranks": gpus, "workload.size": f"{size} B"}
    changes |= larger_packets(case.experiment["network"]) if size >= LARGE // 8 else {}
    return case.run(changes)[0].time / 1e6


def add_changes(case, measured):
    for size, counts, what, changes in CHANGES:
        ours = {gpus: time_of(case, gpus, size, changes) for gpus in counts}
        case.compare(
            f"one change, {named(size)} on {', '.join(map(str, counts))} GH200: {what}",
            ", ".join(f"{measured[gpus, size]:g}" for gpus in counts) + " us",
            ", ".join(f"{us:.4g}" for us in ours.values()) + " us",
            ", ".join(f"{100 * (ours[gpus] / measured[gpus, size] - 1):+.0f}" for gpus in counts) + " %",
        )
    size = 32 << 10
    left = {gpus: measured[gpus, size] - time_of(case, gpus, size, {}) for gpus in (16, 32, 64)}
    left = {gpus: us / tree_messages(gpus // 4) for gpus, us in left.items()}
    case.compare(
        f"what is left of {named(size)} on 16, 32, 64 GH200, for each message on the way up and down the tree of nodes",
        "0 us",
        ", ".join(f"{us:.2f}" for us in left.values()) + " us",
        f"of {', '.join(str(tree_messages(gpus // 4)) for gpus in left)} messages",
    )


def tree_messages(nodes):
    """Up and down the deeper way of NCCL's tree of so many nodes, a power of two: log2 each (src/graph/trees.cc)."""
    return 2 * (nodes.bit_length() - 1)


def check(case):
    with open(case.folder / "measured.csv", encoding="utf-8") as file:
        measured = {(int(row["gpus"]), int(row["bytes"])): float(row["time_us"])
                    for row in csv.DictReader(line for line in file if not line.startswith("#"))}
    pairs = {}  # how it is known -> [(measured, ours)]
    for gpus in (4, 8, 16, 32, 64):
        row = {size: measured[gpus, size] for size in sizes_of(gpus)}
        ours = {}
        for size in row:
            ours[size] = time_of(case, gpus, size, {})
            known = "calibrated on" if gpus == CALIBRATED else "one server, predicted" if gpus == 4 else "predicted"
            pairs.setdefault(f"{'up to 32 KiB' if size <= 32 << 10 else 'larger'}, {known}", []).append(
                (row[size], ours[size]))
        case.compare(
            f"{gpus} GH200: all_reduce of {', '.join(map(named, row))}",
            ", ".join(f"{us:g}" for us in row.values()) + " us",
            ", ".join(f"{us:.4g}" for us in ours.values()) + " us",
            ", ".join(f"{100 * (ours[size] / row[size] - 1):+.0f}" for size in row) + " %",
        )  # fmt: skip
        if gpus == 4:
            add_errors(case, "256 KiB to 16 MiB, one server, predicted", [(row[size], ours[size]) for size in MESH])
    for name, found in pairs.items():
        add_errors(case, name, found)
    add_changes(case, measured)
