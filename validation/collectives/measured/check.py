# SPDX-License-Identifier: GPL-2.0-only
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


def named(size):
    return next(f"{size >> shift}{unit}" for shift, unit in ((30, "G"), (20, "M"), (10, "K")) if size >> shift)


def check(case):
    for kind, table in MEASURED.items():
        for what, kernel in (("the network alone", {}), ("with NCCL's latencies and an H100's memory", KERNEL)):
            ours = []
            for size in table:
                changes = {"workload.collective": kind, "workload.size": f"{size} B", **kernel}
                if size >= 64 << 20:  # fewer, larger packets; the same overhead per byte
                    changes |= {"network.mtu": "32768 B", "network.header": "496 B", "network.wire_overhead": "160 B"}
                ours.append(case.run(changes)[0].time / 1e6)
            errors = [f"{100 * (us / measured - 1):+.0f}" for us, measured in zip(ours, table.values(), strict=True)]
            case.compare(
                f"{kind} of {', '.join(map(named, table))}, 8 H100: {what}",
                ", ".join(f"{us:g}" for us in table.values()) + " us",
                ", ".join(f"{us:.4g}" for us in ours) + " us",
                ", ".join(errors) + " %",
            )
