# SPDX-License-Identifier: GPL-2.0-only
from oracles.wire import Network, quantity, serialization

SOURCE = "by hand, see the case"


def check(case):
    pairs = []
    for ranks in (2, 3, 4, 8):
        for chunk in (4096, 512):
            changes = {"topology.hosts": ranks, "workload.size": f"{ranks * chunk} B", "workload.chunk_size": f"{chunk} B"}
            run, experiment = case.run(changes)
            topology, network = experiment["topology"], Network.of(experiment)
            rate, d = quantity(topology["link_rate"]), quantity(topology["link_delay"])
            s, a = serialization(network.frames(chunk)[0], rate), serialization(network.control, rate)
            steps = 2 * (ranks - 1)
            end = steps * (2 * s + 2 * d + network.latency) + (steps - 1) * 2 * a
            pairs += [(end, time) for time in run.ranks["finished"]]
            pairs.append((end + 3 * a + 2 * d + network.latency, run.time))
    case.exact_all("end of each rank, last credit, n = 2 to 8", pairs)
