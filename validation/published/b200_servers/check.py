# SPDX-License-Identifier: GPL-2.0-only
import csv

from measured_times import add_times, larger_packets, named

SOURCE = "togethercomputer/together-nccl-tests 280e4df, 6fd65d1, 5fa38e7, B200 over InfiniBand"

MIB = 1 << 20
LARGE = 4 * MIB  # from this size on packets are larger, and fewer
OF_A_SERVER = 8
WITHIN = {"between servers": 8, "in a server": 12, "send_recv": 20}  # percent, of rates
ALGORITHMS = {"nccl": "", "nccl_ring": " by rings", "nccl_tree": " by trees", "nvls": " by NVLink SHARP", "nvls_tree": " by NVLink SHARP and trees"}
# Two sizes of which ours have a rate: what the larger one has more. The measured calls are so large that it is theirs.
SIZES = {"send_recv": (32, 64), "all_reduce": (512, 1024), "all_gather": (512, 1024), "reduce_scatter": (512, 1024)}
NVLS_SIZES = (2048, 4096)  # with the largest chunks


def rows_of(path):
    with open(path, encoding="utf-8") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def bus_share(collective, gpus):
    """Bytes of the bus for each byte of a call (nccl-tests, doc/PERFORMANCE.md)."""
    return {"send_recv": 1, "all_reduce": 2 * (gpus - 1) / gpus}.get(collective, (gpus - 1) / gpus)


def check(case):
    def time(collective, gpus, size, changes):
        changes = {"workload.collective": collective, "workload.ranks": gpus, "workload.size": f"{size} B",
                   "topology.hosts_per_leaf": max(2, gpus // OF_A_SERVER)} | changes  # fmt: skip
        return case.run(changes | (larger_packets(case.experiment["network"]) if size >= LARGE else {}))[0].time / 1e6

    rows = rows_of(case.folder / "sendrecv.csv")
    for gpus in sorted({int(row["gpus"]) for row in rows}):
        measured = {int(row["bytes"]): float(row["time_us"]) for row in rows if int(row["gpus"]) == gpus}
        ours = {size: time("send_recv", gpus, size, {}) for size in measured}
        add_times(case, f"{gpus} B200, NCCL 2.29.7: send_recv of {', '.join(map(named, measured))}", measured.values(), ours.values())
        rates = (256 * MIB / times[256 * MIB] / 1e3 for times in (measured, ours))
        add_rate(case, f"{gpus} B200, NCCL 2.29.7: send_recv of 256 MiB", *rates, WITHIN["send_recv"])
    for row in rows_of(case.folder / "rates.csv"):
        collective, algorithm, gpus = row["collective"], row["algorithm"], int(row["gpus"])
        changes = {"workload.algorithm": algorithm, "workload.nccl_version": "2.28", "workload.collective_kernel": "b200",
                   "topology.switch_reduction": {"at": ["nvswitch"]}}  # fmt: skip
        small, large = NVLS_SIZES if algorithm == "nvls" else SIZES[collective]
        times = [time(collective, gpus, mib * MIB, changes) for mib in (small, large)]
        rate = bus_share(collective, gpus) * (large - small) * MIB / (times[1] - times[0]) / 1e3
        within = WITHIN.get(collective, WITHIN["in a server" if gpus == OF_A_SERVER else "between servers"])
        add_rate(case, f"{gpus} B200, NCCL 2.28.9: {collective}{ALGORITHMS[algorithm]}", float(row["busbw_GBps"]), rate, within)


def add_rate(case, name, theirs, ours, within):
    case.add(f"{name}, bus bandwidth", f"{theirs:.1f} GB/s ± {within} %", f"{ours:.1f} GB/s", f"{100 * (ours / theirs - 1):+.1f} %",
             abs(ours / theirs - 1) <= within / 100)  # fmt: skip
