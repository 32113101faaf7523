# SPDX-License-Identifier: GPL-2.0-only
from math import sqrt

from oracles.steady import Steady
from oracles.wire import quantity, serialization

SOURCE = "Alizadeh et al. 2010"
SINCE = 200 * 10**9  # ps


def check(case):
    for flows in (2, 10):
        run, experiment = case.run({"topology.hosts": flows + 1})
        topology, network = experiment["topology"], experiment["network"]
        rate = quantity(topology["link_rate"])
        packet = quantity(network["mtu"]) + quantity(network["header"])
        frames = packet, quantity(network["ack"])
        round_trip = 2 * sum(serialization(frame, rate) for frame in frames) + 4 * quantity(topology["link_delay"])
        product = rate * round_trip / 8e12 / packet
        threshold = quantity(network["ecn"]["kmin"]) / packet
        amplitude = sqrt(2 * flows * (product + threshold)) / 2
        steady = Steady(run, experiment, SINCE)
        queue = steady.queue("switch0", "host0") / packet
        case.within(
            f"least and largest queue, {flows} flows",
            [(threshold + flows - amplitude, flows + 1, queue.min()), (threshold + flows, flows + 1, queue.max())],
            "packets",
            1,
        )
        case.at_least(f"load of the port, {flows} flows", [(0.999, round(steady.load("switch0", "host0"), 4))], "")
