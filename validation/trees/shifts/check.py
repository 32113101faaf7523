# SPDX-License-Identifier: GPL-2.0-only
from oracles.wire import Network, quantity, train

SOURCE = "Zahavi 2010"

TREES = [
    {"topology.m": [4, 4, 4], "topology.w": [1, 4, 4], "topology.p": [1, 1, 1]},
    {"topology.m": [8, 8], "topology.w": [1, 4], "topology.p": [1, 2]},
]


def links_between(source, destination, children):
    """Links from a host to another: up to their nearest common switch, and down."""
    below, level = 1, 0
    while source // below != destination // below:
        below *= children[level]
        level += 1
    return 2 * level


def check(case):
    pairs = []
    for tree in TREES:
        for shift in (1, 5, 16, 31, 60):
            run, experiment = case.run({**tree, "workload.shift": shift})
            network, topology = Network.of(experiment), experiment["topology"]
            rate, delay = quantity(topology["link_rate"]), quantity(topology["link_delay"])
            frames = network.frames(quantity(experiment["workload"]["size"]))
            messages = run.messages
            for source, destination, delivered in zip(messages["source"], messages["destination"], messages["delivered"]):
                links = links_between(source, destination, topology["m"])
                delays = [delay + network.latency] * (links - 1) + [delay]
                pairs.append((train([0] * len(frames), frames, [rate] * links, delays)[-1], delivered))
    case.exact_all("delivery of each message, 5 shifts on two trees of 64 hosts", pairs)
