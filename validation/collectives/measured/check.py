# SPDX-License-Identifier: GPL-2.0-only
from measured_times import compare_times, named

SOURCE = "Azure/msccl, docs/performance-nd-h100-v5.md (NCCL)"

# Time in us of bytes on one Azure ND H100 v5 server of 8 GPUs, by nccl-tests.
MEASURED = {
    "all_reduce": {
        1 << 10: 13.12, 64 << 10: 20.0, 256 << 10: 20.5, 512 << 10: 29.89, 1 << 20: 31.94, 4 << 20: 49.28,
        16 << 20: 116, 64 << 20: 317.4, 256 << 20: 1079, 1 << 30: 4028.7,
    },
    "all_gather": {
        1 << 10: 9.54, 64 << 10: 12.87, 256 << 10: 13.23, 512 << 10: 13.39, 1 << 20: 18.33, 4 << 20: 33.66,
        16 << 20: 67.19, 64 << 20: 192.4, 256 << 20: 699.5, 1 << 30: 2663.8,
    },
}  # fmt: skip
KERNEL = {"workload.kernel_device": "h100-sxm", "workload.latencies": "nccl"}
LATER = {"workload.nccl_version": "2.30", "workload.channels": 24}
BLOCKS = {"workload.algorithm": "ring", "workload.collective_kernel": "h100", "workload.collective": "all_gather"}
MIDDLE_US = {512 << 10: 13.39, 1 << 20: 18.33, 2 << 20: 23.18}  # all-gathers
WAYS = (
    ("the network alone", {"workload.collective_kernel": "none"}),
    ("with NCCL's latencies and an H100's memory", KERNEL),
    ("as NCCL's thread blocks run it", {}),
    ("the same, as NCCL 2.30 chooses, with its 24 channels", LATER),
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
    for protocol, channels in (("ll", 16), ("ll", 24), ("ll", 32), ("ll128", 32), ("simple", 32)):
        sizes = ", ".join(named(size, "GMK") for size in MIDDLE_US)
        compare_times(
            case,
            f"all_gather of {sizes}, 8 H100: always {protocol}, {channels} channels",
            MIDDLE_US,
            lambda size, protocol=protocol, channels=channels: BLOCKS
            | {"workload.size": f"{size} B", "workload.protocol": protocol, "workload.channels": channels},
        )
