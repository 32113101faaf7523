# SPDX-License-Identifier: GPL-2.0-only
from math import sqrt

from oracles.steady import Steady, fairness
from oracles.wire import quantity, serialization

SOURCE = "Kumar et al. 2020; Zhu et al. 2016"
SINCE = 25 * 10**9  # ps
HOPS = 2


def swift_round_trip(flows, packet):
    """us at which `flows` windows w satisfy the target: w packet = target(w) / flows."""
    base, low_window, high_window = 20.0, 0.1, 100.0
    slope = 5 * base / (1 / sqrt(low_window) - 1 / sqrt(high_window))
    low, high = 1e-3, 1e4
    for _ in range(100):
        window = sqrt(low * high)
        scaled = min(max(slope / sqrt(window) - slope / sqrt(high_window), 0), 5 * base)
        target = base + HOPS * base / 6.55 + scaled
        if flows * window * packet < target:
            low = window
        else:
            high = window
    return target


def timely_round_trip(flows):
    """us, of the patched algorithm: T_low (1 + N delta / (beta C))."""
    return 50 * (1 + flows * 0.001 / 0.008)


def round_trip(case, algorithm, flows, **more):
    """us: the wait of a packet that finds the mean queue; and the time of a packet."""
    run, experiment = case.run({"topology.hosts": flows + 1, "network.congestion_control": algorithm, **more})
    network, topology = experiment["network"], experiment["topology"]
    rate, delay = quantity(topology["link_rate"]), quantity(topology["link_delay"])
    between = quantity(network["wire_overhead"])
    packet = serialization(quantity(network["mtu"]) + quantity(network["header"]) + between, rate)
    ack = serialization(quantity(network["ack"]) + between, rate)
    steady = Steady(run, experiment, SINCE)
    wait = steady.queue("switch0", "host0").sum() / steady.samples * 8e12 / rate
    shares = [steady.load(f"host{host}", "switch0") for host in range(1, flows + 1)]
    return (wait + HOPS * (packet + ack + 2 * delay)) / 10**6, packet / 10**6, round(fairness(shares), 5)


def check(case):
    swift, timely, fair = [], [], []
    for flows in (2, 8, 32):
        time, packet, equal = round_trip(case, "swift", flows)
        swift.append((swift_round_trip(flows, packet), flows * packet / 2, time))
        fair.append((0.999, equal))
    for flows in (8, 12, 16):
        time, packet, equal = round_trip(case, "timely", flows, **{"network.timely": {"variant": "patched"}})
        timely.append((timely_round_trip(flows), 2 * packet, time))
        fair.append((0.999, equal))
    case.within("Swift: round trip, 2, 8, 32 flows; target of their windows", swift, "us", 2)
    case.within("patched TIMELY: round trip, 8, 12, 16 flows; fixed point", timely, "us", 2)
    case.at_least("fairness (Jain) of all these", fair, "")
