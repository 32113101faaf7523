# SPDX-License-Identifier: GPL-2.0-only
import csv

from measured_times import add_times, larger_packets

SOURCE = "crazyguitar/aws-gpu-communication-benchmark a77f70d, 4fdb5a4, AWS p5.48xlarge"

MIB = 1 << 20
OF_A_SERVER = 8
PACKETS = 4  # times as large as in the experiment, and as few
PARTS = 2  # of a message: channels to a peer in NCCL 2.28


def chunk(mib, gpus):
    """Of sends with NCCL_P2P_NET_CHUNKSIZE 512 KiB: a quarter for parts below that, half below eight times that (src/enqueue.cc)."""
    part = mib * MIB // gpus // PARTS
    return 512 >> (2 if part < MIB // 2 else 1 if part < 4 * MIB else 0)


def check(case):
    with open(case.folder / "measured.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))

    def time(collective, gpus, mib, **more):
        changes = {"workload.collective": collective, "workload.ranks": gpus, "workload.size": f"{mib} MiB",
                   "topology.hosts_per_leaf": gpus // OF_A_SERVER}  # fmt: skip
        if collective == "all_to_all":
            changes["workload.chunk_size"] = f"{chunk(mib, gpus)} KiB"
        changes |= {f"workload.{key}": value for key, value in more.items()}
        return case.run(changes | larger_packets(case.experiment["network"], PACKETS))[0].time / 1e6

    for collective in ("all_to_all", "all_reduce"):
        for gpus in (16, 32, 64):
            measured = {int(row["mib"]): int(row["mib"]) * MIB / float(row["algbw_GBps"]) / 1e3 for row in rows
                        if (row["collective"], int(row["gpus"])) == (collective, gpus)}  # fmt: skip
            sizes = ", ".join(f"{mib} MiB" for mib in measured)
            add_times(case, f"{gpus} H100: {collective} of {sizes}", [round(us, 1) for us in measured.values()],
                      [time(collective, gpus, mib) for mib in measured])  # fmt: skip
    largest = {int(row["gpus"]): 512 * MIB / float(row["algbw_GBps"]) / 1e3 for row in rows
               if (row["collective"], int(row["mib"])) == ("all_to_all", 512)}  # fmt: skip
    add_times(case, f"one change, all_to_all of 512 MiB on {', '.join(map(str, largest))} H100: thread blocks take no time",
              [round(us, 1) for us in largest.values()], [time("all_to_all", gpus, 512, collective_kernel="none") for gpus in largest])  # fmt: skip
