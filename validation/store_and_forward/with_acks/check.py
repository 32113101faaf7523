# SPDX-License-Identifier: GPL-2.0-only
from oracles.wire import Network, quantity, train

SOURCE = "Kermani, Kleinrock 1979"


def check(case):
    completion = []
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
        delays = [quantity(delay) for delay in every_delay[:links]]
        there = [delay + network.latency for delay in delays[:-1]] + delays[-1:]
        back = [delay + network.latency for delay in delays[:0:-1]] + delays[:1]
        sends = [operation for operation in experiment["workload"]["operations"] if "send" in operation]
        mine = run.operations["rank"] == 0
        took = (run.operations["end"] - run.operations["start"])[mine]
        for send, measured in zip(sends, took, strict=True):
            frames = network.frames(quantity(send["send"]))
            arrivals = train([0] * len(frames), frames, rates, there)
            acks = train(arrivals, [network.control] * len(frames), rates[::-1], back)
            completion.append((acks[-1], measured))
    case.exact_all("time until the last ACK is back, 1 to 6 links, 0 B to 2 MB", completion)
