# SPDX-License-Identifier: GPL-2.0-only
from oracles.wire import Network, quantity, serialization

SOURCE = "Kim, Dally, Scott, Abts 2008"


def check(case):
    adversarial, throughput, lengths, classes = [], [], [], []
    for p, a, h in ((2, 4, 2), (3, 6, 3), (1, 4, 2)):
        groups = a * h + 1
        size = {"topology.p": p, "topology.a": a, "topology.h": h}
        run, experiment = case.run({**size, "workload.shift": a * p})
        network, topology = Network.of(experiment), experiment["topology"]
        rate = quantity(topology["link_rate"])
        frames = network.frames(quantity(experiment["workload"]["size"]))
        wire = sum(serialization(frame, rate) for frame in frames)
        # a p messages over one global link, behind at least a host's link and before another.
        adversarial.append((a * p * wire, run.messages["delivered"].max()))
        throughput.append((1 / (a * p), 0.02 / (a * p), wire / run.messages["delivered"].max()))

        run, experiment = case.run({**size, "workload": {"kind": "traffic", "pattern": "all_to_all", "size": "8192 B"}})
        message = network.wire(8192)
        # Any wiring with one link between two groups: each global link is used by p a times p a ordered pairs in each
        # direction, and a path has a local link at an end unless the router there has the global link.
        ordered = groups * (groups - 1) * a * a * p * p
        local = groups * a * (a - 1) * p * p + ordered * 2 * (a - 1) // a
        for name, pairs in (("global", ordered), ("local", local)):
            inside = run.links["link_class"] == name
            lengths.append((pairs * message, run.links["bytes"][inside].sum()))
            if name == "global":
                classes += [((a * p) ** 2 * message, each) for each in run.links["bytes"][inside]]
    case.at_least("group to next group, last byte: a p m / B", adversarial)
    case.within("the same: throughput 1/(a p)", throughput)
    case.exact_all("all-to-all: bytes on all local and all global links", lengths, "B")
    case.exact_all("all-to-all: bytes of each global link: (a p)^2 m", classes, "B")
