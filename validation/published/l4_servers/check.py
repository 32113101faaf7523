# SPDX-License-Identifier: GPL-2.0-only
import csv

from measured_times import compare_times

SOURCE = "uccl-project/uccl da914a2, L4 over InfiniBand without GPUDirect"


def check(case):
    with open(case.folder / "measured.csv", encoding="utf-8") as file:
        measured = {int(row["bytes"]): float(row["time_us"]) for row in csv.DictReader(line for line in file if not line.startswith("#"))}
    compare_times(case, "2 L4, without GPUDirect: send_recv of 8 B, 1, 32, 64, 256, 512 KiB, 1, 4 MiB", measured,
                  lambda size: {"workload.size": f"{size} B"})  # fmt: skip
