# SPDX-License-Identifier: GPL-2.0-only
import csv

from measured_times import LARGE, add_errors, add_times, larger_packets, named

SOURCE = "NVIDIA/nccl-tests issue 309, H100 over InfiniBand"
SECONDS = 130

SMALL = 256 << 10
MEAN_WITHIN = 20  # percent: as planned
OF_A_SERVER = 8


def check(case):
    tables = {}  # (cluster, GPUs, NCCL_MIN_CTAS) -> {bytes: us}
    with open(case.folder / "measured.csv", encoding="utf-8") as file:
        for row in csv.DictReader(line for line in file if not line.startswith("#")):
            tables.setdefault((row["cluster"], int(row["gpus"]), row["ctas"]), {})[int(row["bytes"])] = float(row["time_us"])

    def time(gpus, ctas, size):
        changes = {"workload.ranks": gpus, "workload.size": f"{size} B", "topology.hosts_per_leaf": gpus // OF_A_SERVER}
        changes |= {"workload.channels": int(ctas)} if ctas else {}
        changes |= larger_packets(case.experiment["network"]) if size >= LARGE // 8 else {}
        return case.run(changes)[0].time / 1e6

    pairs, simulated = {}, {}
    for (cluster, gpus, ctas), measured in tables.items():
        for size in measured:
            if (gpus, ctas, size) not in simulated:
                simulated[gpus, ctas, size] = time(gpus, ctas, size)
        ours = [simulated[gpus, ctas, size] for size in measured]
        more = f", {ctas} channels" if ctas else ""
        add_times(case, f"cluster {cluster}, {gpus} H100{more}: all_reduce of {', '.join(map(named, measured))}", measured.values(), ours)
        for (size, us), mine in zip(measured.items(), ours, strict=True):
            pairs.setdefault("up to 256 KiB" if size <= SMALL else "larger", []).append((us, mine))
    for name, found in pairs.items():
        add_errors(case, f"{name}, predicted", found, MEAN_WITHIN)
