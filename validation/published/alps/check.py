# SPDX-License-Identifier: GPL-2.0-only
from measured_times import Cluster, add_errors, named

SOURCE = "boeschf/nccl-benchmark-on-alps-2025 897cff4, Alps; NVIDIA/nccl issue 1272"

SIZES = (8, 512, 4 << 10, 32 << 10, 2 << 20, 8 << 20, 32 << 20, 256 << 20)
# One server, a mesh of 4 GPUs, does not use the plug-in: all sizes of NCCL's middle range.
MESH = tuple(256 << (10 + doubling) for doubling in range(7))
CALIBRATED = 8  # GPUs
# The effect of one change on sizes with errors above 15 %.
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
# sendrecv_perf of 512 MiB with NCCL 2.20.5 on nodes of four GH200 over Slingshot, GB/s of the bus, by GPUs (NVIDIA/nccl issue 1272: 4 nodes
# as with four channels to a peer).
SENDS = {16: 24.2, 32: 18.32}


def sizes_of(gpus):
    """Large sizes take long to simulate on many ranks."""
    if gpus == 4:
        return sorted({*SIZES, *MESH})
    return [size for size in SIZES if gpus <= 16 or size <= 32 << 20]


def tree_messages(nodes):
    """Links up and down the deepest path of NCCL's tree of `nodes` nodes, a power of two: log2 each
    (src/graph/trees.cc)."""
    return 2 * (nodes.bit_length() - 1)


def add_rest(case, cluster):
    size = 32 << 10
    left = {gpus: cluster.measured[gpus, size] - cluster.time(gpus, size) for gpus in (16, 32, 64)}
    left = {gpus: us / tree_messages(gpus // 4) for gpus, us in left.items()}
    case.compare(
        f"what is left of {named(size)} on 16, 32, 64 GH200, for each message on the way up and down the tree of nodes",
        "0 us",
        ", ".join(f"{us:.2f}" for us in left.values()) + " us",
        f"of {', '.join(str(tree_messages(gpus // 4)) for gpus in left)} messages",
    )


def check(case):
    cluster = Cluster(case, "GH200")
    pairs = {}  # calibrated or predicted -> [(measured, ours)]
    for gpus in (4, 8, 16, 32, 64) if case.compares else (4,):
        known = "calibrated on" if gpus == CALIBRATED else "one server, predicted" if gpus == 4 else "predicted"
        found = cluster.add_sizes(gpus, sizes_of(gpus))
        for size, pair in found.items():
            pairs.setdefault(f"{'up to 32 KiB' if size <= 32 << 10 else 'larger'}, {known}", []).append(pair)
        if gpus == 4:
            add_errors(case, "256 KiB to 16 MiB, one server, predicted", [found[size] for size in MESH])
    if not case.compares:
        return
    for name, times in pairs.items():
        add_errors(case, name, times)
    size = 512 << 20
    for gpus, rate in SENDS.items():
        us = cluster.time(gpus, size, {"workload.collective": "send_recv", "workload.nccl_version": "2.21"})
        ours = size / us / 1e3
        case.compare(f"{gpus} GH200, NCCL 2.20.5: bus bandwidth of send_recv of {named(size)}{', one channel' if gpus > 16 else ''}",
                     f"{rate:g} GB/s", f"{ours:.1f} GB/s", f"{100 * (ours / rate - 1):+.1f} %")  # fmt: skip
    cluster.add_changes(CHANGES)
    add_rest(case, cluster)
