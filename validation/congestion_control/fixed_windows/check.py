# SPDX-License-Identifier: GPL-2.0-only
from oracles.steady import Steady
from oracles.wire import quantity, serialization

SOURCE = "Mo, Walrand 2000"
SINCE = 5 * 10**9  # ps


def shares(window, long_trip, short_trip):
    """Rates of the long flow and of each short one. All in ps: the window's time on the wire, base round trips."""
    least, most = 0.0, 1e12  # the wait at each of the two queues
    while most - least > 1:
        wait = (least + most) / 2
        load = window / (long_trip + 2 * wait) + window / (short_trip + wait)
        least, most = (wait, most) if load > 1 else (least, wait)
    return window / (long_trip + 2 * least), window / (short_trip + least)


def check(case):
    for window in ("100 kB", "200 kB", "800 kB"):
        run, experiment = case.run({"network.window": window})
        network, links = experiment["network"], experiment["topology"]["links"]
        rate, delay = quantity(links[0]["rate"]), quantity(links[0]["delay"])
        packet = quantity(network["mtu"]) + quantity(network["header"])
        hop = serialization(packet, rate) + serialization(quantity(network["ack"]), rate) + 2 * delay
        packets = quantity(window) // quantity(network["mtu"])
        long, short = shares(packets * serialization(packet, rate), 4 * hop, 3 * hop)
        steady = Steady(run, experiment, SINCE)
        found = [steady.load(f"host{host}", "switch0" if host < 2 else "switch1") for host in (0, 1, 3)]
        case.within(f"window of {window}: long flow, short flows; proportional",
                    [(due, 1 / packets, share) for due, share in zip((long, short, short), found, strict=True)])
