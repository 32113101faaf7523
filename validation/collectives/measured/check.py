# SPDX-License-Identifier: GPL-2.0-only
from measured_times import compare_times, named

SOURCE = "Azure/msccl, docs/performance-nd-h100-v5.md (NCCL)"

# Time in us of bytes on one Azure ND H100 v5 server of 8 GPUs, by nccl-tests.
MEASURED = {
    "all_reduce": {
        1 << 10: 13.12, 64 << 10: 20.0, 1 << 20: 31.94, 16 << 20: 116, 64 << 20: 317.4, 256 << 20: 1079, 1 << 30: 4028.7,
    },
    "all_gather": {
        1 << 10: 9.54, 64 << 10: 12.87, 1 << 20: 18.33, 16 << 20: 67.19, 64 << 20: 192.4, 256 << 20: 699.5, 1 << 30: 2663.8,
    },
}  # fmt: skip
KERNEL = {"workload.kernel_device": "h100-sxm", "workload.latencies": "nccl"}
WAYS = (
    ("the network alone", {"workload.collective_kernel": "none"}),
    ("with NCCL's latencies and an H100's memory", KERNEL),
    ("as NCCL's thread blocks run it", {}),
)


def check(case):
    for kind, table in MEASURED.items():
        sizes = ", ".join(named(size, "GMK") for size in table)
        for what, kernel in WAYS:
            compare_times(
                case,
                f"{kind} of {sizes}, 8 H100: {what}",
                table,
                lambda size, kind=kind, kernel=kernel: {"workload.collective": kind, "workload.size": f"{size} B"} | kernel,
            )
