# SPDX-License-Identifier: GPL-2.0-only
from math import sqrt

import numpy

from oracles.permutation import random_ideal
from oracles.wire import Network, quantity, serialization

SOURCE = "Dixit et al. 2013; Pollaczek, Khinchine"
PACKETS, MESSAGE = 1500, 10  # of each host, of each message
LINKS = 6  # of a path between pods; all but the first have a queue


def share(case, balancing, **more):
    """Share of the line rate for data and its ACKs, mean over hosts: from a quarter of the least possible time to its
    end."""
    run, experiment = case.run({
        "network.load_balancing": balancing,
        "workload.start": ["0 ns"] * (PACKETS // MESSAGE),
        **more,
    })  # fmt: skip
    if run.queue_pairs["repeated"].sum():
        raise ValueError(f"{balancing}: packets were sent again")
    packet, ack, _ = times(experiment)
    inside = (run.messages["delivered"] > 0.25 * PACKETS * packet) & (run.messages["delivered"] <= PACKETS * packet)
    hosts = len(numpy.unique(run.messages["source"]))
    return inside.sum() * MESSAGE * (packet + ack) / (0.75 * PACKETS * packet) / hosts


def times(experiment):
    """Times of a packet, of an ACK, and of a round trip on an idle path between pods."""
    network, rate = Network.of(experiment), quantity(experiment["topology"]["link_rate"])
    packet, ack = serialization(network.mtu + network.overhead, rate), serialization(network.control, rate)
    return packet, ack, LINKS * (packet + ack + 2 * quantity(experiment["topology"]["link_delay"]))


def random_queues(experiment, window):
    """Utilisation u at which the round-trip time of a window is: base + wait at LINKS - 1 queues of M/D/1, u/(2(1-u))
    packets each."""
    packet, _, base = times(experiment)
    low, high = 0.0, 1.0
    while high - low > 1e-6:
        u = (low + high) / 2
        if u * (base / packet + (LINKS - 1) * u / (2 * (1 - u))) < window / quantity(experiment["network"]["mtu"]):
            low = u
        else:
            high = u
    return low


def check(case):
    ideal = random_ideal(8, 1, 10)
    case.within(
        "mean share, ECMP; max-min ideal of single paths",
        [(ideal.mean(), 3 * ideal.std(ddof=1) * sqrt(1 + 1 / len(ideal)), share(case, "ecmp"))],
    )
    spray = []
    for kib in (128, 256):
        law = random_queues(case.experiment, kib * 1024)
        spray.append((round(law, 3), round(share(case, "spray", **{"network.window": f"{kib} KiB"}), 3)))
    case.at_least("spray, window of 128 and 256 KiB; queues of random arrivals", spray, "")
    others = [(0.9, round(share(case, balancing), 3)) for balancing in ("adaptive", "reps")]
    case.at_least("adaptive and REPS", others, "")
