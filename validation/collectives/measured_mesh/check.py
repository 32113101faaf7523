# SPDX-License-Identifier: GPL-2.0-only
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


def named(size):
    return next((f"{size >> shift} {unit}B" for shift, unit in ((30, "Gi"), (20, "Mi"), (10, "Ki")) if size >> shift), f"{size} B")


def parts(size):
    """Near-equal, in all the size."""
    return [(size * (i + 1)) // len(COMMUNICATORS) - size * i // len(COMMUNICATORS) for i in range(len(COMMUNICATORS))]


def check(case):
    for what in ("the network alone", "with NCCL's latencies and an A100's memory"):
        ours = []
        for size in MEASURED:
            tuning = {"channels": 2, "protocol": protocol(size)}
            tuning |= {} if what == "the network alone" else kernel(protocol(size))
            operations = [
                {"id": name, "collective": "all_reduce", "size": f"{part} B", "communicator": name, "stream": "none", "tuning": "all"}
                for name, part in zip(COMMUNICATORS, parts(size), strict=True)
            ]
            changes = {"workload.operations": operations, "workload.tunings": {"all": tuning}}
            if size >= 64 << 20:  # fewer, larger packets; the same overhead per byte
                changes |= {"network.mtu": "32768 B", "network.header": "496 B", "network.wire_overhead": "160 B"}
            ours.append(case.run(changes)[0].time / 1e6)
        errors = [f"{100 * (us / measured - 1):+.0f}" for us, measured in zip(ours, MEASURED.values(), strict=True)]
        case.compare(
            f"all_reduce of {', '.join(map(named, MEASURED))}, 4 A100: {what}",
            ", ".join(f"{us:g}" for us in MEASURED.values()) + " us",
            ", ".join(f"{us:.4g}" for us in ours) + " us",
            ", ".join(errors) + " %",
        )
