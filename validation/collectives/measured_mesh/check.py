# SPDX-License-Identifier: GPL-2.0-only
from measured_times import compare_times, named

SOURCE = "Zhang et al. 2024 (LLMCompass), artifact, figure 5h"

# Time in us of bytes over 4 A100.
MEASURED = {
    8: 12.52, 1 << 10: 13.02, 16 << 10: 17.39, 64 << 10: 22.93, 256 << 10: 35.93, 1 << 20: 60.75, 4 << 20: 84.75, 16 << 20: 195.7,
    64 << 20: 532.3, 256 << 20: 1883.7, 1 << 30: 7219.2,
}  # fmt: skip
KERNEL = {"workload.kernel_device": "a100-sxm", "workload.latencies": "nccl"}
BLOCKS = {"workload.collective_kernel": "a100", "network.ack": "66 B", "network.window": "4 MiB",
          "topology.design.nvlink_framing": {"payload": "128 B", "overhead": "16 B", "answer": "16 B"}}  # fmt: skip
WAYS = (
    ("the network alone", {}),
    ("with NCCL's latencies and an A100's memory", KERNEL),
    ("as NCCL's thread blocks run it", BLOCKS),
    ("as NCCL's thread blocks run it, 12 channels", BLOCKS | {"workload.channels": 12}),
)


def check(case):
    sizes = ", ".join(map(named, MEASURED))
    for what, kernel in WAYS:
        compare_times(
            case,
            f"all_reduce of {sizes}, 4 A100: {what}",
            MEASURED,
            lambda size, kernel=kernel: {"workload.size": f"{size} B"} | kernel,
        )
