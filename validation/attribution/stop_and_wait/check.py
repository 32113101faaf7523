# SPDX-License-Identifier: GPL-2.0-only
from oracles.wire import Network, quantity, serialization

SOURCE = "by hand, see the case"
EXPERIMENT = "validation/sharing_a_wire/stop_and_wait/experiment.yaml"
OTHERS = ("queueing", "nic", "ahead", "pacing", "paused", "retransmission", "reordering")


def check(case):
    pairs, rest = [], []
    for links in (1, 2, 5):
        for size in ("1 B", "4096 B", "4097 B", "100 kB"):
            run, experiment = case.run({"topology.links": links, "workload.size": size, "output.attribution": "full"})
            topology, network = experiment["topology"], Network.of(experiment)
            rate, delay = quantity(topology["link_rate"]), quantity(topology["link_delay"])
            way = links * delay + (links - 1) * network.latency
            *full, last = (serialization(frame, rate) for frame in network.frames(quantity(size)))
            back = links * serialization(network.control, rate) + way
            pairs.append((sum((links - 1) * there + way + back for there in full), run.messages["part_window"][0]))
            pairs.append((sum(full) + links * last + way, run.messages["part_transfer"][0]))
            rest += [(0, run.messages[f"part_{name}"][0]) for name in OTHERS]
    case.exact_all("window and transfer, 1 to 5 links, 1 to 25 packets", pairs)
    case.exact_all("all other parts", rest)
