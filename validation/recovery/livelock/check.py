# SPDX-License-Identifier: GPL-2.0-only
from math import ceil, sqrt

import numpy

from oracles.wire import Network, quantity, serialization

SOURCE = "Guo et al. 2016"
LOSS, LINKS = 1 / 256, 4


def check(case):
    topology, network = case.experiment["topology"], Network.of(case.experiment)
    rate, delay = quantity(topology["links"][0]["rate"]), quantity(topology["links"][0]["delay"])
    packet, ack = serialization(network.mtu + network.overhead, rate), serialization(network.control, rate)
    wasted = ceil((packet + LINKS * (packet + ack + 2 * delay)) / packet)

    stuck, experiment = case.run()
    sent = stuck.links["data_packets"][stuck.links["from_name"] == "host0"].sum()
    done = stuck.messages["delivered"]
    case.exact("4 MB delivered in 50 ms by go-back-0", 0, int((done >= 0).sum()), "messages")
    case.at_least("load of the link meanwhile", [(0.99, round(sent * packet / quantity("50 ms"), 4))], "")

    # Many short messages, one after another: the time of one message.
    size, count = 256, 1500
    run, _ = case.run({
        "workload.size": f"{size * network.mtu} B",
        "workload.start": ["0 ns"] * count,
        "simulation.until": "10 s",
    })  # fmt: skip
    times = numpy.diff(numpy.sort(run.messages["delivered"])) / packet
    through = (1 - LOSS) ** size
    law = (1 / through - 1) / LOSS + (wasted - 1) * (1 / through - 1)
    error = times.std(ddof=1) / sqrt(len(times))
    case.within("256 packets by go-back-0", [(law, 3 * error, times.mean())], "packet times", 1)
