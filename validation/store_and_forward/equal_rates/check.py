# SPDX-License-Identifier: GPL-2.0-only
from oracles.wire import Network, quantity, serialization

SOURCE = "Kermani, Kleinrock 1979"
LINKS = range(1, 7)


def law(network, size, links, rate, delay):
    """T = (P-1) s/C + (L-1) s/C + s_last/C + L d; one packet alone: L (s_last/C + d)."""
    *full, last = (serialization(frame, rate) for frame in network.frames(size))
    if not full:
        return links * (last + delay)
    return len(full) * full[0] + (links - 1) * full[0] + last + links * delay


def check(case):
    pairs = []
    for links in LINKS:
        run, experiment = case.run({"topology.links": links})
        network = Network.of(experiment)
        rate, delay = quantity(experiment["topology"]["link_rate"]), quantity(experiment["topology"]["link_delay"])
        sends = [operation for operation in experiment["workload"]["operations"] if "send" in operation]
        for i, send in enumerate(sends):
            expected = law(network, quantity(send["send"]), links, rate, delay)
            pairs.append((expected, run.messages["delivered"][i] - run.messages["issued"][i]))
            pairs.append((expected, run.messages["ideal"][i]))
    case.exact_all("delivery time and column `ideal`, 1 to 6 links, 0 B to 2 MB", pairs)
