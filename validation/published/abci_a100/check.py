# SPDX-License-Identifier: GPL-2.0-only
import csv

from measured_times import Cluster, add_errors, add_times, larger_packets

SOURCE = "aistabci/abci2.0benchmark 8b20e11, 7cbfa36, ABCI 2.0; NVIDIA/nccl-tests issue 119; NVIDIA/nccl issue 652"
SECONDS = 35

OF_A_SERVER = 8
SMALL = 32 << 10
SIZES = (8, 512, 4 << 10, 32 << 10, 256 << 10, 1 << 20, 2 << 20, 4 << 20, 8 << 20, 16 << 20, 32 << 20)
MEAN_WITHIN = 20  # percent: as planned, of small calls between servers
WITHIN = 15  # percent: calls of 24 GPUs whose bytes take nearly all of their time
NO_GPUDIRECT = {"topology.server": {"design": "dgx_a100", "nics": 4, "cpu": "intel", "gpudirect": False}}
# us by bytes, out of place, on 32 such servers of a third cluster (NVIDIA/nccl issue 652, 2022-03-18; the release is not told).
OF_256 = {8: 62.99, 32: 65.46, 128: 63.94}
LARGE = tuple(size for size in SIZES if size >= 2 << 20)  # of which the bytes take most of the time


def check(case):
    cluster = Cluster(case, "A100")
    pairs = {}  # (one server or several, size class) -> [(measured, ours)]
    for gpus in (4, 8, 16, 32, 64, 128):
        where = "one server" if gpus <= OF_A_SERVER else "several servers"
        for size, pair in cluster.add_sizes(gpus, SIZES).items():
            pairs.setdefault((where, "up to 32 KiB" if size <= SMALL else "larger"), []).append(pair)
    for (where, name), found in pairs.items():
        held = MEAN_WITHIN if (where, name) == ("several servers", "up to 32 KiB") else None
        add_errors(case, f"{name}, {where}, predicted", found, held)
    cluster.add_changes((size, (16, 32, 64, 128), "no GPUDirect", NO_GPUDIRECT) for size in LARGE)
    with open(case.folder / "another_cluster.csv", encoding="utf-8") as file:
        for row in csv.DictReader(line for line in file if not line.startswith("#")):
            gpus, size, measured = int(row["gpus"]), int(row["bytes"]), float(row["time_us"])
            changes = {"workload.ranks": gpus, "workload.size": f"{size} B"}
            ours = case.run(changes | larger_packets(case.experiment["network"]))[0].time / 1e6
            case.within(f"another cluster, {gpus} A100: all_reduce of {size:,} B", [(measured, measured * WITHIN / 100, ours)], "us", 0)
    if not case.compares:
        return
    add_times(case, f"a third cluster, 256 A100: all_reduce of {', '.join(map(str, OF_256))} B", OF_256.values(),
              [cluster.time(256, size, {"topology.leaves": 8}) for size in OF_256])  # fmt: skip
