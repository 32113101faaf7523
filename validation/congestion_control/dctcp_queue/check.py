# SPDX-License-Identifier: GPL-2.0-only
from math import ceil
from statistics import mean

from oracles.dctcp import sawtooth
from oracles.steady import Steady
from oracles.wire import quantity, serialization

SOURCE = "Alizadeh et al. 2010; RFC 3168"
SINCE = 200 * 10**9  # ps
GAIN = 1 / 16


def check(case):
    for flows in (2, 10):
        run, experiment = case.run({"topology.hosts": flows + 1})
        topology, network = experiment["topology"], experiment["network"]
        rate = quantity(topology["link_rate"])
        packet = quantity(network["mtu"]) + quantity(network["header"])
        service = serialization(packet, rate)
        frames = packet, quantity(network["ack"])
        round_trip = 2 * sum(serialization(frame, rate) for frame in frames) + 4 * quantity(topology["link_delay"])
        product = round_trip / service
        threshold = quantity(network["ecn"]["kmin"]) / packet + 1  # the queue, and the packet in transmission
        marking = ceil(product + threshold)  # packets in flight: the next one finds a queue of more than K
        peak = marking / flows + 1
        rounds, factor = sawtooth(peak, GAIN)
        measured, cuts = cycles(run.rates_series, flows)
        steady = Steady(run, experiment, SINCE)
        queue = steady.queue("switch0", "host0") / packet
        largest = marking + flows - product
        falls = flows * sawtooth(peak, GAIN, part=1)[0], flows * sawtooth(peak, GAIN, part=0, cuts=cuts)[0]
        least = troughs(queue, threshold, largest - 0.75 * flows * rounds)
        case.within(
            f"largest queue, and mean of the least ones of {len(least)} periods, {flows} flows",
            [(largest, 1, queue.max()), (largest - sum(falls) / 2, (falls[1] - falls[0]) / 2 + 1, mean(least))],
            "packets",
            1,
        )
        twice = flows * sawtooth(peak, GAIN, part=0, cuts=2)[0]
        bound = round(largest - 1 - twice, 1)
        case.at_least(
            f"least queue, below which two cuts of each flow do not lead, {flows} flows",
            [(bound, round(queue.min(), 1))],
            "packets",
        )
        case.at_least(f"load of the port, {flows} flows", [(0.999, round(steady.load("switch0", "host0"), 4))], "")

        period = (peak - 1 + rounds * peak * (1 + factor) / 2) * flows * service / 10**6
        case.compare(
            f"period, and cuts of each flow in it, {flows} flows: synchronised flows beside these",
            f"{period:.0f} us, 1",
            f"{measured:.0f} us, {cuts:.2f}",
            f"{100 * (measured / period - 1):+.0f} %",
        )


def troughs(queue, high, low):
    """The least sample of each whole period. A period begins when the queue exceeds `high` after having been below `low`."""
    least, lowest = [], None
    fell = False
    for sample in queue:
        if fell and sample > high:
            least.append(lowest)
            fell, lowest = False, sample
        fell = fell or sample < low
        lowest = sample if lowest is None else min(lowest, sample)
    return least[1:]


def cycles(series, flows):
    """Mean time from one round of cuts to the next, in us, and cuts of a flow in it. Cuts within two round trips (300 us)
    of another cut of the same flow belong to the same round."""
    late = series["time"] > SINCE
    rounds = cuts = 0
    for host in range(1, flows + 1):
        own = late & (series["host"] == host)
        times, windows = series["time"][own], series["window"][own]
        times = times[1:][windows[1:] < windows[:-1]]
        cuts += len(times)
        rounds += 1 + (times[1:] - times[:-1] > 300 * 10**6).sum()
    return (series["time"].max() - SINCE) * flows / rounds / 10**6, cuts / rounds
