# SPDX-License-Identifier: GPL-2.0-only
import csv

from measured_times import LARGE, add_errors, add_times, larger_packets, named

SOURCE = "oracle-quickstart/oci-gpu-quickstarts 2631bee, GB300 NVL72"

MIB = 1 << 20
# The plan's classes: sizes up to this, and larger; percent by which the mean may be off. That of small all-reduces failed (README.md).
MIDDLE = {"all_reduce": (16 * MIB, None, 10), "all_to_all": (32 * MIB, 20, 10)}
LARGEST = {4: 2048 * MIB, 8: 1024 * MIB, 64: 256 * MIB}  # of all-to-alls that are simulated


def check(case):
    with open(case.folder / "measured.csv", encoding="utf-8") as file:
        measured = {(row["collective"], int(row["gpus"]), int(row["bytes"])): float(row["time_us"])
                    for row in csv.DictReader(line for line in file if not line.startswith("#"))}  # fmt: skip
    for collective, (middle, near, within) in MIDDLE.items():
        if near is None and within is None and not case.compares:
            continue
        pairs = []
        for gpus in (4, 8, 64):
            sizes = [size for kind, of, size in measured
                     if (kind, of) == (collective, gpus) and (collective == "all_reduce" or size <= LARGEST[gpus])]  # fmt: skip
            row = []
            for size in sizes:
                changes = {"workload.collective": collective, "workload.ranks": gpus, "workload.size": f"{size} B"}
                packets = larger_packets(case.experiment["network"]) if size >= LARGE else {}
                row.append((measured[collective, gpus, size], case.run(changes | packets)[0].time / 1e6))
            add_times(case, f"{gpus} GB300: {collective} of {', '.join(map(named, sizes))}", *zip(*row, strict=True))
            pairs += zip(sizes, row, strict=True)
        small = [pair for size, pair in pairs if size <= middle]
        large = [pair for size, pair in pairs if size > middle]
        add_errors(case, f"{collective} of up to {named(middle)}, predicted", small, near)
        add_errors(case, f"{collective} of more, predicted", large, within)
