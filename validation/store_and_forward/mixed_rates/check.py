# SPDX-License-Identifier: GPL-2.0-only
from oracles.wire import Network, quantity, train

SOURCE = "Kermani, Kleinrock 1979"


def check(case):
    pairs = []
    every_rate, every_delay = case.experiment["topology"]["link_rate"], case.experiment["topology"]["link_delay"]
    for links in range(1, len(every_rate) + 1):
        changes = {
            "topology.links": links,
            "topology.link_rate": every_rate[:links],
            "topology.link_delay": every_delay[:links],
        }
        run, experiment = case.run(changes)
        network = Network.of(experiment)
        rates = [quantity(rate) for rate in every_rate[:links]]
        delays = [quantity(delay) + network.latency for delay in every_delay[:links]]
        delays[-1] -= network.latency  # the last link ends at a host
        sends = [operation for operation in experiment["workload"]["operations"] if "send" in operation]
        for i, send in enumerate(sends):
            frames = network.frames(quantity(send["send"]))
            expected = train([0] * len(frames), frames, rates, delays)[-1]
            pairs.append((expected, run.messages["delivered"][i] - run.messages["issued"][i]))
            pairs.append((expected, run.messages["ideal"][i]))
    case.exact_all("delivery time and column `ideal`, 1 to 6 links, 0 B to 2 MB", pairs)
