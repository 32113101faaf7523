# SPDX-License-Identifier: GPL-2.0-only
from math import ceil, floor

from oracles.dctcp import sawtooth
from oracles.steady import Steady
from oracles.wire import quantity, serialization

SOURCE = "Alizadeh et al. 2010; RFC 3168"
SINCE = 200 * 10**9  # ps


def check(case):
    for packets, gain in ((20, 1 / 16), (40, 1 / 16), (80, 1 / 16), (40, 1 / 64)):
        threshold = f"{packets * 1500} B"
        ecn = {**case.experiment["network"]["ecn"], "kmin": threshold, "kmax": threshold}
        run, experiment = case.run({"network.ecn": ecn, "network.dctcp.gain": gain})
        topology, network = experiment["topology"], experiment["network"]
        slow, fast = quantity(topology["link_rate"]), quantity(topology["links"][1]["rate"])
        packet = quantity(network["mtu"]) + quantity(network["header"])
        service = serialization(packet, slow)
        base = 4 * quantity(topology["link_delay"])
        base += sum(serialization(frame, rate) for frame in (packet, quantity(network["ack"])) for rate in (slow, fast))
        product = base / service

        marking = ceil(product + packets + 1)  # in flight: each then finds a queue of more than K packets
        periods, least = [], []
        for part in (0, 1):
            rounds, factor = sawtooth(marking + 1, gain, part)
            cut = (marking + 1) * factor
            for growth in (1 - 1 / cut, 1):  # packets in a round
                periods.append((marking + rounds / growth * (cut + marking + 1) / 2) * service / 10**6)
            least.append(floor(cut) - product)

        late = run.rates_series["time"] > SINCE
        times, windows = run.rates_series["time"][late], run.rates_series["window"][late]
        cuts = times[1:][windows[1:] < windows[:-1]]
        period = (cuts[-1] - cuts[0]) / (len(cuts) - 1) / 10**6
        queue = Steady(run, experiment, SINCE).queue("switch0", "host0") / packet
        name = f"K = {packets}, g = 1/{1 / gain:.0f}"
        case.within(f"{name}: period", [middle(periods) + (period,)], "us", 0)
        # Part of the packet in transmission has left.
        case.within(
            f"{name}: least and largest queue",
            [
                middle([min(least), max(least) + 1]) + (queue.min(),),
                middle([marking - product, marking - product + 1]) + (queue.max(),),
            ],
            "packets",
            2,
        )


def middle(values):
    """Centre and half the width of the range."""
    return (min(values) + max(values)) / 2, (max(values) - min(values)) / 2
