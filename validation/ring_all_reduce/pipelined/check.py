# SPDX-License-Identifier: GPL-2.0-only
from oracles.ring import Tuning, all_reduce, pipelined_times
from oracles.wire import Network, quantity

SOURCE = "NCCL all_reduce.h (runRing)"
VARIANTS = [
    {},
    {"topology.hosts": 2},
    {"topology.hosts": 8, "workload.size": "6 MB"},
    {"topology.hosts": 5, "workload.size": "1000003 B", "workload.chunk_size": "64 KiB"},
    {"topology.hosts": 3, "workload.size": "300001 B", "workload.chunk_size": "10000 B", "workload.slices_per_chunk": 4},
    {"topology.hosts": 16, "workload.size": "1 MiB", "workload.chunk_size": "4096 B", "workload.slices_per_chunk": 1},
]


def check(case):
    ends, sent = [], []
    for changes in VARIANTS:
        run, experiment = case.run(changes)
        topology, workload = experiment["topology"], experiment["workload"]
        programs = all_reduce(topology["hosts"], quantity(workload["size"]), Tuning(workload))
        rate, delay = quantity(topology["link_rate"]), quantity(topology["link_delay"])
        times = pipelined_times(programs, Network.of(experiment), rate, delay)
        ends += zip(times, run.ranks["finished"], strict=True)
        for program, messages in zip(programs, run.ranks["messages_sent"], strict=True):
            sent.append((sum(sends for _, _, sends in program), messages))
    case.exact_all("end of each rank, n = 2 to 16, 6 tunings", ends)
    case.exact_all("slices sent by each rank", sent, "messages")
