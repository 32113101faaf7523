# SPDX-License-Identifier: GPL-2.0-only
from math import ceil, sqrt

from oracles.wire import quantity, serialization

SOURCE = "renewal; Mittal et al. 2018"
LINKS = 4  # of the path


def one(case, recovery, probability, delay):
    """Goodput over the link's rate, its base time, the packets per round trip, and the run."""
    topology = case.experiment["topology"]
    run, experiment = case.run({
        "network.recovery": recovery,
        "network.loss": [{"link": ["switch0", "switch1"], "probability": probability}],
        "topology.links": [{**link, "delay": f"{delay} ns"} for link in topology["links"]],
    })  # fmt: skip
    network, rate = experiment["network"], quantity(topology["links"][0]["rate"])
    packet = serialization(quantity(network["mtu"]) + quantity(network["header"]), rate)
    ack = serialization(quantity(network["ack"]), rate)
    round_trip = LINKS * (packet + ack + 2000 * delay)
    first = LINKS * (packet + 1000 * delay) - packet  # time until the first packet could be complete, minus the packet
    packets = int(run.messages["packets"][0])
    goodput = packets * packet / (int(run.messages["delivered"][0]) - first)
    lost = run.links["lost"][(run.links["from_name"] == "switch0") & (run.links["to_name"] == "switch1")]
    if lost.sum() != run.links["lost"].sum() or run.queue_pairs["timeouts"].sum():
        raise ValueError("ACKs were lost as well, or timers ran out")
    return goodput, packets, packet, round_trip, run


def check(case):
    back, selective, repeated = [], [], []
    for probability in (0.0001, 0.001, 0.01):
        p, odds = probability, probability / (1 - probability)
        for delay in (250, 2500):
            goodput, packets, packet, round_trip, _ = one(case, "go_back_n", p, delay)
            wasted = ceil((packet + round_trip) / packet)
            law = 1 / (1 + odds * wasted)
            back.append((law, 3 * law**2 * wasted * sqrt(odds * (1 + odds) / packets), goodput))
        goodput, packets, packet, round_trip, run = one(case, "selective_repeat", p, 250)
        tail = (packet + round_trip) / (packets * packet)  # if one of the last packets is lost
        selective.append((1 - p, 3 * (1 - p) * sqrt(p / packets) + tail, goodput))
        repeated.append((run.links["lost"].sum(), run.queue_pairs["repeated"].sum()))
    case.within("go-back-N; loss 0.0001, 0.001, 0.01, W = 30 and 244 each", back)
    case.within("selective repeat; loss 0.0001, 0.001, 0.01", selective, digits=4)
    case.exact_all("packets that it sends again, from those lost", repeated, "packets")
