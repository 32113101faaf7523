# SPDX-License-Identifier: GPL-2.0-only
import csv

from measured_times import LARGE, add_times, larger_packets, named

SOURCE = "lessizzmore/create-a3mega-ztan-fork 5f9e1dd, dstackai/dstack, Google's a3-megagpu-8g; apple/axlearn 4da5d0e"
SECONDS = 20

MIB = 1 << 20
CALIBRATED = (16, 64)  # `ll128` of collectives/transports/fastrak.yaml
SIZES = {"all_reduce": (512, 4 << 10, 32 << 10, 256 << 10, MIB, 4 * MIB, 8 * MIB, 16 * MIB, 32 * MIB, 64 * MIB, 128 * MIB, 256 * MIB, 1024 * MIB),
         "all_gather": (8 * MIB, 32 * MIB, 64 * MIB, 128 * MIB, 256 * MIB, 512 * MIB, 1024 * MIB)}  # fmt: skip
ALGORITHMS = {"all_reduce": "double_binary_tree", "all_gather": "ring"}
BUFFERS = "8 MiB"  # NCCL_BUFFSIZE
PLANNED = (256 * MIB, 1024 * MIB)
AFTER_THE_CHUNK = (8 * MIB, 16 * MIB, 32 * MIB, 64 * MIB, 128 * MIB, 256 * MIB, 1024 * MIB)
HELD = {("all_reduce", 256 * MIB), ("all_reduce", 1024 * MIB), ("all_gather", 1024 * MIB)}
WITHIN = 15  # percent: as planned


def check(case):
    measured = {}
    with open(case.folder / "measured.csv", encoding="utf-8") as file:
        for row in csv.DictReader(line for line in file if not line.startswith("#")):
            measured[row["collective"], int(row["bytes"])] = float(row["time_us"])

    def time(collective, size, algorithm, own_buffers):
        changes = {"workload.collective": collective, "workload.size": f"{size} B", "workload.algorithm": algorithm}
        changes |= {} if own_buffers else {"workload.buffer_size": BUFFERS}
        changes |= larger_packets(case.experiment["network"]) if size >= LARGE // 8 else {}
        return case.run(changes)[0].time / 1e6

    def add(name, collective, sizes, algorithm, own_buffers=False):
        ours = {size: time(collective, size, algorithm, own_buffers) for size in sizes}
        add_times(case, f"{name}: {collective} of {', '.join(map(named, sizes))}", [measured[collective, size] for size in sizes], ours.values())
        return ours

    add("16 H100, trees, calibrated on", "all_reduce", CALIBRATED, "double_binary_tree")
    for collective, sizes in SIZES.items():
        algorithm = ALGORITHMS[collective]
        ours = add(f"16 H100, {'rings' if algorithm == 'ring' else 'trees'}, predicted", collective, sizes, algorithm)
        for size in sizes:
            if (collective, size) not in HELD:
                continue
            us = measured[collective, size]
            case.within(f"16 H100: {collective} of {named(size)}", [(us, us * WITHIN / 100, ours[size])], "us", 0)
    if not case.compares:
        return
    add("16 H100, rings, as was planned", "all_reduce", PLANNED, "ring")
    add("one change, 16 H100, trees: NCCL's own buffers of 4 MiB", "all_reduce", AFTER_THE_CHUNK, "double_binary_tree", own_buffers=True)
