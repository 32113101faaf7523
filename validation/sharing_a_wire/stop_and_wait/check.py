# SPDX-License-Identifier: GPL-2.0-only
from oracles.wire import Network, quantity, serialization

SOURCE = "by hand, see the case"


def check(case):
    pairs = []
    for links in (1, 2, 5):
        for size in ("1 B", "4096 B", "4097 B", "100 kB"):
            run, experiment = case.run({"topology.links": links, "workload.size": size})
            topology, network = experiment["topology"], Network.of(experiment)
            rate, delay = quantity(topology["link_rate"]), quantity(topology["link_delay"])
            way = links * delay + (links - 1) * network.latency
            *full, last = (links * serialization(frame, rate) + way for frame in network.frames(quantity(size)))
            back = links * serialization(network.control, rate) + way
            delivered = sum(there + back for there in full) + last
            pairs += [(delivered, run.messages["delivered"][0]), (delivered + back, run.time)]
    case.exact_all("delivery and last ACK, 1 to 5 links, 1 to 25 packets", pairs)
