# SPDX-License-Identifier: GPL-2.0-only
from measured_times import compare_times, named

SOURCE = "Zhang et al. 2024 (LLMCompass), artifact, figure 5h"

# Time in us of bytes over 4 A100.
MEASURED = {
    8: 12.52, 1 << 10: 13.02, 16 << 10: 17.39, 64 << 10: 22.93, 256 << 10: 35.93, 1 << 20: 60.75, 4 << 20: 84.75, 16 << 20: 195.7,
    64 << 20: 532.3, 256 << 20: 1883.7, 1 << 30: 7219.2,
}  # fmt: skip
COMMUNICATORS = "abcdef"
CHANNELS = 12
# NCCL src/graph/tuning.cc: us before the first step and of each, GB/s of S over a ring of Ampere GPUs of one server
# (20 GB/s per channel): LL min(87.7, 1/2), LL128 min(0.92, 20 per channel), Simple, each times n / (2(n-1)).
NCCL = {
    "ll": (6.6, 0.6, min(87.7, 0.5 * 20 * CHANNELS) * 4 / 6),
    "ll128": (14.0, 1.9, 0.92 * 20 * CHANNELS * 4 / 6),
    "simple": (8.4, 3.4, 20 * CHANNELS * 4 / 6),
}
MEMORY = 2039e9  # B/s, NVIDIA A100 SXM4 80 GB, data sheet


def protocol(size):
    """That of which NCCL expects the least."""
    return min(NCCL, key=lambda name: NCCL[name][0] + 6 * NCCL[name][1] + size / (1000 * NCCL[name][2]))


def kernel(name):
    launch, step, _ = NCCL[name]
    rate = MEMORY * 8 / CHANNELS
    return {"launch_latency": f"{launch} us", "step_latency": f"{step} us", "reduce_rate": f"{rate / 3:.0f} b/s",
            "copy_rate": f"{rate / 2:.0f} b/s"}  # fmt: skip


def parts(size):
    """Near-equal, in all the size."""
    return [(size * (i + 1)) // len(COMMUNICATORS) - size * i // len(COMMUNICATORS) for i in range(len(COMMUNICATORS))]


def changes(size, kernels):
    tuning = {"channels": 2, "protocol": protocol(size)}
    tuning |= kernel(protocol(size)) if kernels else {}
    operations = [
        {"id": name, "collective": "all_reduce", "size": f"{part} B", "communicator": name, "stream": "none", "tuning": "all"}
        for name, part in zip(COMMUNICATORS, parts(size), strict=True)
    ]
    return {"workload.operations": operations, "workload.tunings": {"all": tuning}}


def check(case):
    sizes = ", ".join(map(named, MEASURED))
    for what, kernels in (("the network alone", False), ("with NCCL's latencies and an A100's memory", True)):
        compare_times(
            case,
            f"all_reduce of {sizes}, 4 A100: {what}",
            MEASURED,
            lambda size, kernels=kernels: changes(size, kernels),
        )
