# SPDX-License-Identifier: GPL-2.0-only
import csv

from measured_times import add_times, named

SOURCE = "coreweave/nccl-tests, pull request 43, GB200 NVL72"

GIB = 1 << 30
SIZES = (GIB // 2, GIB)
CALIBRATED = 4 * GIB  # `nvls_rate` of collectives/kernels/b200.yaml
WITHIN = 10  # percent


def check(case):
    with open(case.folder / "measured.csv", encoding="utf-8") as file:
        measured = {int(row["bytes"]): float(row["time_us"])
                    for row in csv.DictReader(line for line in file if not line.startswith("#"))}  # fmt: skip
    runs = {size: case.run({"workload.size": f"{size} B"}) for size in SIZES}
    ours = {size: run.time / 1e6 for size, (run, _) in runs.items()}
    add_times(case, f"72 GB200: all_reduce of {', '.join(map(named, SIZES))}", [measured[size] for size in SIZES], ours.values())

    def rate(times, small, large):
        """GB/s: the additional bytes over the additional time, without what each call takes once."""
        return (large - small) / (times[large] - times[small]) / 1e3

    found = rate(ours, *SIZES)
    for small, large in ((GIB, 2 * GIB), (CALIBRATED, 8 * GIB)):
        theirs = rate(measured, small, large)
        case.add(f"bytes of an all_reduce over time: what {named(large)} have more than {named(small)}",
                 f"{theirs:.1f} GB/s ± {WITHIN} %", f"{found:.1f} GB/s", f"{100 * (found / theirs - 1):+.1f} %",
                 abs(found / theirs - 1) <= WITHIN / 100)
    # NCCL_MAX_NVLS_ARITY: 32 of 72 GPUs are heads, and have the sums of their part to publish: S + S/32 upwards, others S.
    links = runs[GIB][0].links
    up = links["payload_bytes"][(links["link_class"].astype(str) == "nvlink")]
    heads = int((up > GIB * (1 + 1 / 64)).sum())
    case.add("directions of links between a GPU and the NVSwitches that carry S + S/32", "64", f"{heads}", "", heads == 64)
