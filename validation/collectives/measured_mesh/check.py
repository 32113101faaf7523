# SPDX-License-Identifier: GPL-2.0-only
from measured_times import add_errors, compare_times, named

SOURCE = "Zhang et al. 2024 (LLMCompass), artifact, figure 5h"

# Time in us of bytes over 4 A100.
MEASURED = {
    8: 12.52, 1 << 10: 13.02, 16 << 10: 17.39, 64 << 10: 22.93, 256 << 10: 35.93, 512 << 10: 47.27, 1 << 20: 60.75,
    2 << 20: 66.4, 4 << 20: 84.75, 8 << 20: 128.8, 16 << 20: 195.7, 64 << 20: 532.3, 256 << 20: 1883.7, 1 << 30: 7219.2,
}  # fmt: skip
KERNEL = {"workload.kernel_device": "a100-sxm", "workload.latencies": "nccl"}
BLOCKS = {"workload.collective_kernel": "a100", "network.ack": "66 B", "network.window": "4 MiB",
          "topology.design.nvlink_framing": {"payload": "128 B", "overhead": "16 B", "answer": "16 B"}}  # fmt: skip
EARLY = BLOCKS | {"workload.nccl_version": 2.18}
WAYS = (
    ("the network alone", {}),
    ("with NCCL's latencies and an A100's memory", KERNEL),
    ("as NCCL's thread blocks run it", BLOCKS),
    ("the same, as NCCL up to 2.20 chooses", EARLY),
    ("the same, 12 channels", EARLY | {"workload.channels": 12}),
    ("the same, constants at their most", EARLY | {"workload.kernel_constants": "high"}),
)
# Bytes from which LL uses one more channel: threads, threshold, ranks (NCCL src/enqueue.cc).
FULL_CHANNEL = 512 * 8 * 4
CHANNELS = 24


def channels_of(size):
    return max(1, min(CHANNELS, size // FULL_CHANNEL))


def check(case):
    sizes = ", ".join(map(named, MEASURED))
    for what, kernel in WAYS:
        compare_times(
            case,
            f"all_reduce of {sizes}, 4 A100: {what}",
            MEASURED,
            lambda size, kernel=kernel: {"workload.size": f"{size} B"} | kernel,
        )
    ours, left = {}, {}  # the rest of a measured time, per channel that takes part in it
    for size, us in MEASURED.items():
        if 16 << 10 <= size <= 16 << 20:
            ours[size] = case.run(EARLY | {"workload.size": f"{size} B"})[0].time / 1e6
            left[size] = (us - ours[size]) / channels_of(size)
    case.compare(
        f"measured time less ours as NCCL up to 2.20 chooses, by channel: {', '.join(map(named, left))}",
        "0 us",
        ", ".join(f"{us:.2f}" for us in left.values()) + " us",
        f"of {', '.join(str(channels_of(size)) for size in left)} channels",
    )
    by_ll = [us for size, us in left.items() if size <= 512 << 10]
    each = sum(by_ll) / len(by_ll)
    add_errors(
        case,
        f"1 to 16 MiB if each channel took {each:.2f} us more, as 16 to 512 KiB have it",
        [(MEASURED[size], ours[size] + each * channels_of(size)) for size in ours if size > 512 << 10],
    )
