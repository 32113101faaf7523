# SPDX-License-Identifier: GPL-2.0-only
from fractions import Fraction
from math import ceil, log, sqrt

from oracles.wire import Network, quantity, serialization

SOURCE = "bandwidth of links; balls in bins"
LEAVES, EACH = 4, 8  # hosts per leaf
ALL = {"kind": "traffic", "pattern": "all_to_all", "size": "128 KiB"}


def fullest(balls, bins):
    """Balls above the mean in the fullest bin, except in one case in a thousand: the largest of binomials, and 3
    deviations."""
    return sqrt(balls / bins * (1 - 1 / bins)) * (sqrt(2 * log(bins)) + 3)


def run(case, spines, workload):
    """Least time, most time, and measured time."""
    run, experiment = case.run({"topology.spines": spines, **workload})
    network, rate = Network.of(experiment), quantity(experiment["topology"]["link_rate"])
    frames = network.frames(quantity(experiment["workload"]["size"]))
    # ACKs share the links of the other direction.
    message, packet = sum(frames) + len(frames) * network.control, frames[0] + network.control
    leave, of_host = ((LEAVES - 1) * EACH, LEAVES * EACH - 1) if workload else (1, 1)  # messages of a host
    over_uplinks = Fraction(EACH * leave, spines) * message
    least = max(of_host * message, over_uplinks)
    uneven = fullest(EACH * leave * len(frames), spines) * packet
    most = least + uneven  # in front of the last packets, or where these would have been on time
    idle = 4 * (serialization(packet, rate) + 2 * quantity(experiment["topology"]["link_delay"]))
    return serialization(ceil(least), rate), serialization(ceil(most), rate) + idle, run.time


def check(case):
    for name, law, workload in (("permutation of all leaves", "o m / B", {}),
                                ("all-to-all", "max(n-1, o (n-h)) m / B", {"workload": ALL})):  # fmt: skip
        rows = [run(case, spines, workload) for spines in (8, 4, 2)]
        case.add(f"{name}, oversubscribed o = 1, 2, 4: {law}, to that of the fullest uplink",
                 ", ".join(f"{least / 1e6:.1f} to {most / 1e6:.1f}" for least, most, _ in rows) + " us",
                 ", ".join(f"{time / 1e6:.1f}" for _, _, time in rows) + " us",
                 ", ".join(f"{100 * (time / least - 1):+.1f} %" for least, _, time in rows),
                 all(least <= time <= most for least, most, time in rows))  # fmt: skip
