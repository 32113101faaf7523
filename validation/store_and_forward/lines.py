# SPDX-License-Identifier: GPL-2.0-only
"""Lines of 1, 2, ... links that all differ: the experiment gives the rate and the delay of each."""

from oracles.wire import Network, quantity


def runs(case):
    """The run of each line, its network, rates and delays of its links, and the message sizes."""
    every_rate, every_delay = case.experiment["topology"]["link_rate"], case.experiment["topology"]["link_delay"]
    for links in range(1, len(every_rate) + 1):
        rates, delays = every_rate[:links], every_delay[:links]
        changes = {"topology.links": links, "topology.link_rate": rates, "topology.link_delay": delays}
        run, experiment = case.run(changes)
        sizes = [quantity(operation["send"]) for operation in experiment["workload"]["operations"] if "send" in operation]
        yield run, Network.of(experiment), list(map(quantity, rates)), list(map(quantity, delays)), sizes
