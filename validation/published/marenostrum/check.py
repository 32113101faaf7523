# SPDX-License-Identifier: GPL-2.0-only
from measured_times import Cluster, add_errors

SOURCE = "HLC-Lab/pico 413bc5d, MareNostrum 5"

SMALL = 16 << 10  # LL
SIZES = (256, 2 << 10, 16 << 10, 128 << 10, 1 << 20, 8 << 20, 64 << 20, 128 << 20)
CALIBRATED = (16, 32)  # GPUs
# The effect of one change on sizes with errors above 15 %.
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
    """Large sizes take long to simulate on many ranks."""
    return [size for size in SIZES if size <= (128 << 20) * 16 // gpus]


def check(case):
    cluster = Cluster(case, "H100")
    pairs = {}  # (calibrated or predicted, size class) -> [(measured, ours)]
    for gpus in (16, 32, 64, 128, 256) if case.compares else (16,):
        known = "calibrated on" if gpus in CALIBRATED else "predicted"
        for size, pair in cluster.add_sizes(gpus, sizes_of(gpus)).items():
            pairs.setdefault((known, "up to 16 KiB" if size <= SMALL else "larger"), []).append(pair)
    if not case.compares:
        return
    for (known, name), found in pairs.items():
        add_errors(case, f"{name}, {known}", found)
    cluster.add_changes(CHANGES)
