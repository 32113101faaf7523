# SPDX-License-Identifier: GPL-2.0-only
from oracles.packets import RingRun, Simulator
from oracles.ring import Tuning, all_reduce
from oracles.wire import Network, quantity

SOURCE = "second simulator (oracles/packets.py)"
VARIANTS = [
    {"topology.hosts": 2},
    {"topology.hosts": 4, "workload.size": "2 MB"},
    {"topology.hosts": 3, "workload.size": "300 kB", "workload.chunk_size": "20000 B", "network.window": "8192 B"},
    {"topology.hosts": 2, "workload.size": "200 kB", "workload.chunk_size": "1000 B", "topology.link_delay": "3 ns"},
    {"topology.hosts": 2, "workload.size": "400 kB", "workload.chunk_size": "8192 B", "workload.credits": 3},
]


def check(case):
    times = []
    for changes in VARIANTS:
        run, experiment = case.run(changes)
        topology, workload = experiment["topology"], experiment["workload"]
        tuning = Tuning(workload)
        rate, delay = quantity(topology["link_rate"]), quantity(topology["link_delay"])
        simulator = Simulator(Network.of(experiment), topology["hosts"], rate, delay)
        ring = RingRun(simulator, all_reduce(topology["hosts"], quantity(workload["size"]), tuning), tuning.credits)
        times.append((ring.run(), run.time))
        times += zip(ring.finished, run.ranks["finished"], strict=True)
        # Rows are in ascending order of source and number at the source.
        messages = sorted(simulator.messages, key=lambda message: message.source)
        times += zip([message.delivered for message in messages], run.messages["delivered"], strict=True)
    case.exact_all("delivery of each slice, end of each rank and of the run", times)
