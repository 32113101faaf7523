# SPDX-License-Identifier: GPL-2.0-only
from oracles.wire import Network, quantity, serialization

SOURCE = "bandwidth of a link"


def check(case):
    pairs = []
    for spines in (8, 4, 2, 1):
        run, experiment = case.run({"topology.spines": spines})
        network, topology = Network.of(experiment), experiment["topology"]
        rate, delay = quantity(topology["link_rate"]), quantity(topology["link_delay"])
        frames = network.frames(quantity(experiment["workload"]["size"]))
        assert len(set(frames)) == 1
        packet = serialization(frames[0], rate)
        flows = topology["hosts_per_leaf"] // spines
        # The first packet over the host's link; all packets of all flows over the link up; the last one down and to its
        # host.
        pairs.append((packet + flows * len(frames) * packet + 2 * packet + 4 * delay, run.messages["delivered"].max()))
    case.exact_all("last byte, oversubscribed 1, 2, 4, 8 to 1", pairs)
