# SPDX-License-Identifier: GPL-2.0-only
import csv

from measured_times import add_errors, add_times, named

SOURCE = "oracle-quickstart/oci-gpu-quickstarts 140fc62, GB200 NVL72; oracle-quickstart/oci-hpc-oke, branch gb200"

MIB = 1 << 20
LARGE, LARGEST = 4096 * MIB, 8192 * MIB  # bytes, of measurements
OF_A_RACK = 64
SMALL = 256 << 10  # bytes: the plan's two classes
# As that cluster's operator sets NCCL up (two_racks.csv). One NIC of 800 Gb/s for each GPU stands for its two of 400.
AS_SET_UP = {"topology.server.nvlink_sharp": False, "topology.link_rate": "800 Gb/s", "topology.server.pcie_rate": "1008 Gb/s",
             "workload.buffer_size": "16 MiB"}
# Two sizes in MiB that give our rate, by GPUs; and percent by which it may be off, None: shown beside the measured one.
# On 4 and 8 GPUs messages have 32 parts from the smaller one on, as with 8 GiB. The source names its release of NCCL.
LARGE_RAN = {"workload.nccl_version": "2.27"}
ALL_TO_ALL = {4: (2048, 4096, 10), 8: (4096, 8192, 10), 64: (512, 1024, 15), 128: (64, 128, 10), 192: (48, 96, None)}
ALL_REDUCE = {4: (1024, 2048, 10), 128: (128, 256, 10)}


def rate(first, second):
    """GB/s: the additional bytes over the additional time, without what each call takes once."""
    (size, us), (larger, more_us) = first, second
    return (larger - size) / (more_us - us) / 1e3


def racks(gpus):
    return f"{gpus} GB200" + ("" if gpus <= OF_A_RACK else f" of {gpus // OF_A_RACK} racks")


def add_two_racks(case):
    """All-reduces of small and middle sizes, which no constant was made for: as they were planned twice (README.md)."""
    with open(case.folder / "two_racks.csv", encoding="utf-8") as file:
        measured = {int(row["bytes"]): float(row["time_us"]) for row in csv.DictReader(line for line in file if not line.startswith("#"))}
    sizes = {"up to 256 KiB": [size for size in measured if size <= SMALL], "larger": [size for size in measured if size > SMALL]}

    def add(name, changes, least):
        changes = {"workload.collective": "all_reduce", "workload.ranks": 2 * OF_A_RACK} | changes
        held = [size for what in least for size in sizes[what]]
        ours = {size: case.run(changes | {"workload.size": f"{size} B"})[0].time / 1e6 for size in measured if case.compares or size in held}
        if case.compares:
            add_times(case, f"{name}: all_reduce of {', '.join(map(named, measured))}", measured.values(), ours.values())
        for what, chosen in sizes.items() if case.compares else ((what, sizes[what]) for what in least):
            add_errors(case, f"{name}, {what}, predicted", [(measured[size], ours[size]) for size in chosen], least.get(what))

    add(f"{racks(2 * OF_A_RACK)}, NCCL 2.29.2 as its operator sets it up", AS_SET_UP, dict.fromkeys(sizes, 20))
    add(f"one change, {racks(2 * OF_A_RACK)} with NVLink SHARP, NCCL's buffers and one NIC for each GPU, as planned first", {}, {})


def check(case):
    with open(case.folder / "measured.csv", encoding="utf-8") as file:
        measured = {(row["collective"], int(row["gpus"]), int(row["bytes"])): float(row["time_us"])
                    for row in csv.DictReader(line for line in file if not line.startswith("#"))}  # fmt: skip

    def ours(collective, gpus, sizes):
        def point(mib):
            changes = {"workload.collective": collective, "workload.ranks": gpus, "workload.size": f"{mib * MIB} B"} | LARGE_RAN
            return mib * MIB, case.run(changes)[0].time / 1e6

        return rate(*map(point, sizes))

    def add(name, theirs, found, within):
        error = f"{100 * (found / theirs - 1):+.1f} %"
        if within is None:
            case.compare(name, f"{theirs:.1f} GB/s", f"{found:.1f} GB/s", error)
        else:
            case.add(name, f"{theirs:.1f} GB/s ± {within} %", f"{found:.1f} GB/s", error, abs(found / theirs - 1) <= within / 100)

    for gpus, (small, large, within) in ALL_TO_ALL.items():
        if within is None and not case.compares:
            continue
        add(f"{racks(gpus)}: bytes of an all_to_all over time, {named(LARGEST)} measured",
            LARGEST / measured["all_to_all", gpus, LARGEST] / 1e3, ours("all_to_all", gpus, (small, large)), within)  # fmt: skip
    for gpus, (small, large, within) in ALL_REDUCE.items():
        theirs = rate(*((size, measured["all_reduce", gpus, size]) for size in (LARGE, LARGEST)))
        add(f"{racks(gpus)}: bytes of an all_reduce over time, what {named(LARGEST)} have more than {named(LARGE)}", theirs,
            ours("all_reduce", gpus, (small, large)), within)  # fmt: skip
    add_two_racks(case)
