# SPDX-License-Identifier: GPL-2.0-only
import csv
import functools

from measured_times import add_errors, add_times, larger_packets, named

SOURCE = ("hisohara/ai-scripts 0780bb3, rccl-tests on MI300X and MI325X; Azure/AI-benchmarking-guide; "
          "ROCm/rocm-systems pull request 3272")  # fmt: skip

MIB = 1 << 20
# Sizes of which the time is compared, by GPUs; the two that give the rate are the last ones.
SIZES = {8: (64 * MIB, 128 * MIB, 256 * MIB, 512 * MIB, 1024 * MIB), 16: (64 * MIB, 256 * MIB, 512 * MIB, 1024 * MIB),
         32: (256 * MIB, 512 * MIB), 64: (256 * MIB, 512 * MIB)}  # fmt: skip
# On two servers with the algorithm and protocol that RCCL's numbers choose: up to 8 MiB trees with LL and LL128, then with Simple, then rings.
LOW_LATENCY = (1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 512 << 10, MIB, 2 * MIB, 4 * MIB, 8 * MIB)
SIMPLE = (16 * MIB, 32 * MIB, 64 * MIB, 128 * MIB, 256 * MIB, 512 * MIB, 1024 * MIB)
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


def rows_of(path):
    with open(path, encoding="utf-8") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def time_of(case, gpus, size, changes=None):
    """Ours in us. No leaf has fewer links to spines than to servers."""
    changes = {"topology.hosts_per_leaf": gpus // 8, "topology.spines": max(4, gpus // 8), "workload.ranks": gpus,
               "workload.size": f"{size} B"} | (changes or {})  # fmt: skip
    return case.run(changes | larger_packets(case.experiment["network"]))[0].time / 1e6


def as_rccl_runs_it(case, measured):
    """With the times of thread blocks: Azure's table, of which half calibrated them, and other servers, which they have not seen."""

    @functools.cache
    def ours(gpus, size):
        return time_of(case, gpus, size, {"workload.algorithm": "nccl"})

    rows = rows_of(case.folder / "azure.csv")
    for fit, kind in (("1", "calibrated on"), ("0", "not calibrated on")):
        points = {int(row["bytes"]): (float(row["time_us"]), ours(8, int(row["bytes"]))) for row in rows if row["fit"] == fit}
        add_times(case, f"RCCL's thread blocks, Azure, {kind}: all_reduce of {', '.join(map(named, points))}",
                  [us for us, _ in points.values()], [found for _, found in points.values()])  # fmt: skip
        add_errors(case, f"RCCL's thread blocks, Azure, {kind}", list(points.values()))
    known = {size: us for size, us in measured["MI300X", 8].items() if size in SIZES[8]}
    case.within(f"RCCL's thread blocks, another server: all_reduce of {', '.join(map(named, known))}",
                [(us, 0.05 * us, ours(8, size)) for size, us in known.items()], "us")  # fmt: skip
    if not case.compares:
        return
    other = {int(row["bytes"]): float(row["time_us"]) for row in rows_of(case.folder / "two_servers.csv")}
    for of, times, sizes in (("RCCL 2.28.3", other, other), ("RCCL 2.22.3", measured["MI300X", 16], SIMPLE),
                             ("RCCL 2.22.3, where 8 B take 256 us", measured["MI300X", 16], LOW_LATENCY)):  # fmt: skip
        add_times(case, f"RCCL's thread blocks, 16 GPUs, {of}: all_reduce of {', '.join(map(named, sizes))}",
                  [times[size] for size in sizes], [ours(16, size) for size in sizes])  # fmt: skip
    # What is left of the second pair's times without what its smallest calls take more than those of the first pair.
    more = measured["MI300X", 16][1024] - other[1024]
    sizes = (*LOW_LATENCY[4:], *SIMPLE)
    add_times(case, f"RCCL's thread blocks, 16 GPUs, RCCL 2.22.3, all less {more:.0f} us: all_reduce of {', '.join(map(named, sizes))}",
              [measured["MI300X", 16][size] - more for size in sizes], [ours(16, size) for size in sizes])  # fmt: skip
    by_trees = time_of(case, 16, 128 * MIB, {"workload.algorithm": "double_binary_tree", "workload.protocol": "simple",
                                             "workload.chunk_size": "64 KiB", "workload.collective_kernel": "mi300x"})  # fmt: skip
    add_times(case, f"the same of 128 MiB by trees, which RCCL 2.22.3 has there, less {more:.0f} us",
              [measured["MI300X", 16][128 * MIB] - more], [by_trees])


def check(case):
    measured = read(case)
    as_rccl_runs_it(case, measured)

    found = {gpus: {size: time_of(case, gpus, size) for size in sizes} for gpus, sizes in SIZES.items()}
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
