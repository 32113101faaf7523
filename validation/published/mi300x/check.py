# SPDX-License-Identifier: GPL-2.0-only
import csv

from measured_times import add_errors, add_times, larger_packets, named

SOURCE = "hisohara/ai-scripts 0780bb3, rccl-tests on MI300X and MI325X; Azure/AI-benchmarking-guide"

MIB = 1 << 20
# Sizes of which the time is compared, by GPUs; the two that give the rate are the last ones.
SIZES = {8: (64 * MIB, 128 * MIB, 256 * MIB, 512 * MIB, 1024 * MIB), 16: (64 * MIB, 256 * MIB, 512 * MIB, 1024 * MIB),
         32: (256 * MIB, 512 * MIB)}  # fmt: skip
LARGE = 256 * MIB
WITHIN = 10  # percent, of rates
OF_A_LINK = 48  # GB/s, the data of one of seven links (rocm.blogs.amd.com, mi300x-rccl-xgmi)


def bus_rate(gpus, first, second):
    """GB/s: the additional bytes over the additional time, without what each call takes once."""
    (size, us), (larger, more_us) = first, second
    return 2 * (gpus - 1) / gpus * (larger - size) / (more_us - us) / 1e3


def read(case):
    """{(gpu, gpus): {bytes: us}}"""
    measured = {}
    with open(case.folder / "measured.csv", encoding="utf-8") as file:
        for row in csv.DictReader(line for line in file if not line.startswith("#")):
            measured.setdefault((row["gpu"], int(row["gpus"])), {})[int(row["bytes"])] = float(row["time_us"])
    return measured


def as_rccl_runs_it(case, measured):
    """With the times of thread blocks: Azure's table, of which half calibrated them, and another server, which they have not seen."""

    def ours(gpus, size):
        changes = {"topology.hosts_per_leaf": gpus // 8, "workload.ranks": gpus, "workload.size": f"{size} B",
                   "workload.algorithm": "nccl"}  # fmt: skip
        return case.run(changes | larger_packets(case.experiment["network"]))[0].time / 1e6

    with open(case.folder / "azure.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    for fit, kind in (("1", "calibrated on"), ("0", "not calibrated on")):
        points = {int(row["bytes"]): (float(row["time_us"]), ours(8, int(row["bytes"]))) for row in rows if row["fit"] == fit}
        add_times(case, f"RCCL's thread blocks, Azure, {kind}: all_reduce of {', '.join(map(named, points))}",
                  [us for us, _ in points.values()], [found for _, found in points.values()])  # fmt: skip
        add_errors(case, f"RCCL's thread blocks, Azure, {kind}", list(points.values()))
    for gpus in (8, 16):
        known = {size: us for size, us in measured["MI300X", gpus].items() if size in SIZES[gpus]}
        found = [ours(gpus, size) for size in known]
        if gpus == 8:
            case.within(f"RCCL's thread blocks, another server: all_reduce of {', '.join(map(named, known))}",
                        [(us, 0.05 * us, time) for us, time in zip(known.values(), found)], "us")  # fmt: skip
        else:
            add_times(case, f"RCCL's thread blocks, {gpus} GPUs: all_reduce of {', '.join(map(named, known))}", known.values(), found)


def check(case):
    measured = read(case)
    as_rccl_runs_it(case, measured)

    def ours(gpus, size):
        changes = {"topology.hosts_per_leaf": gpus // 8, "workload.ranks": gpus, "workload.size": f"{size} B"}
        return case.run(changes | larger_packets(case.experiment["network"]))[0].time / 1e6

    found = {gpus: {size: ours(gpus, size) for size in sizes} for gpus, sizes in SIZES.items()}
    large = []
    for gpus in (8, 16):
        known = {size: us for size, us in measured["MI300X", gpus].items() if size in found[gpus]}
        add_times(case, f"{gpus} MI300X: all_reduce of {', '.join(map(named, known))}", known.values(),
                  [found[gpus][size] for size in known])
        large += [(us, found[gpus][size]) for size, us in known.items() if size >= LARGE]
    add_errors(case, f"{named(LARGE)} and more, predicted", large)
    for (gpu, gpus), times in measured.items():
        theirs = bus_rate(gpus, *sorted(times.items())[-2:])
        rate = bus_rate(gpus, *sorted(found[gpus].items())[-2:])
        case.add(f"{gpus} {gpu}: bus bandwidth of what a longer call has more", f"{theirs:.1f} GB/s ± {WITHIN} %",
                 f"{rate:.1f} GB/s", f"{100 * (rate / theirs - 1):+.1f} %", abs(rate / theirs - 1) <= WITHIN / 100)
    bound = 7 * OF_A_LINK
    rate = bus_rate(8, *sorted(found[8].items())[-2:])
    case.add(f"8 GPUs: all seven links of each in use, {OF_A_LINK} GB/s each", f"{bound} GB/s ± 1 %", f"{rate:.1f} GB/s",
             f"{100 * (rate / bound - 1):+.1f} %", abs(rate / bound - 1) <= 0.01)
