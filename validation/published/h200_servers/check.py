# SPDX-License-Identifier: GPL-2.0-only
import csv

from measured_times import LARGE, add_errors, add_times, larger_packets, named

SOURCE = "schmaustech/nvidia-tools-image, argonne-lcf/oci-howto 166a300, nebius/ml-cookbook 95f6aaa, H200 over RoCE and InfiniBand"
SECONDS = 30

SMALL = 256 << 10
MEAN_WITHIN = 20  # percent: as planned


def check(case):
    tables = {}  # (cluster, NCCL, NCCL_MIN_NCHANNELS) -> {bytes: us}
    with open(case.folder / "measured.csv", encoding="utf-8") as file:
        for row in csv.DictReader(line for line in file if not line.startswith("#")):
            tables.setdefault((row["cluster"], row["nccl"], row["channels"]), {})[int(row["bytes"])] = float(row["time_us"])

    def time(nccl, channels, size):
        changes = {"workload.size": f"{size} B", "workload.nccl_version": nccl}
        changes |= {"workload.channels": int(channels)} if channels else {}
        changes |= larger_packets(case.experiment["network"]) if size >= LARGE // 8 else {}
        return case.run(changes)[0].time / 1e6

    pairs = {}
    for (cluster, nccl, channels), measured in tables.items():
        ours = [time(nccl, channels, size) for size in measured]
        add_times(case, f"cluster {cluster}: all_reduce of {', '.join(map(named, measured))}", measured.values(), ours)
        for (size, us), mine in zip(measured.items(), ours, strict=True):
            pairs.setdefault("up to 256 KiB" if size <= SMALL else "larger", []).append((us, mine))
    add_errors(case, "up to 256 KiB, predicted", pairs["up to 256 KiB"])
    add_errors(case, "larger, predicted", pairs["larger"], MEAN_WITHIN)
    if not case.compares:
        return
    (nccl, channels), measured = next((key[1:], table) for key, table in tables.items() if key[2])
    add_times(case, f"one change, channels as NCCL has them, as planned: all_reduce of {', '.join(map(named, measured))}", measured.values(),
              [time(nccl, "", size) for size in measured])  # fmt: skip
