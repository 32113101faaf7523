# SPDX-License-Identifier: GPL-2.0-only
from oracles.dctcp import sawtooth
from oracles.steady import Steady
from oracles.wire import quantity, serialization

SOURCE = "Alizadeh et al. 2010; RFC 3168"
SINCE = 200 * 10**9  # ps


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
        threshold = quantity(network["ecn"]["kmin"]) / packet + 1  # what is waiting, and what is in transmission
        peak = (product + threshold) / flows + 1
        rounds, factor = sawtooth(peak, 1 / 16)
        steady = Steady(run, experiment, SINCE)
        queue = steady.queue("switch0", "host0") / packet
        largest = threshold + flows
        case.within(
            f"least and largest queue, {flows} flows",
            [(largest - flows * rounds, flows + 1, queue.min()), (largest, flows + 1, queue.max())],
            "packets",
            1,
        )
        case.at_least(f"load of the port, {flows} flows", [(0.999, round(steady.load("switch0", "host0"), 4))], "")

        period = (peak - 1 + rounds * peak * (1 + factor) / 2) * flows * service / 10**6
        measured, cuts = cycles(run.rates_series, flows)
        case.compare(
            f"period, and cuts of each flow in it, {flows} flows: synchronised flows beside these",
            f"{period:.0f} us, 1",
            f"{measured:.0f} us, {cuts:.2f}",
            f"{100 * (measured / period - 1):+.0f} %",
        )


def cycles(series, flows):
    """Mean time from one round of cuts to the next, in us, and cuts of a flow in it. Cuts that follow another of the same
    flow within two round trips (300 us) are of the same round."""
    late = series["time"] > SINCE
    rounds = cuts = 0
    for host in range(1, flows + 1):
        own = late & (series["host"] == host)
        times, windows = series["time"][own], series["window"][own]
        times = times[1:][windows[1:] < windows[:-1]]
        cuts += len(times)
        rounds += 1 + (times[1:] - times[:-1] > 300 * 10**6).sum()
    return (series["time"].max() - SINCE) * flows / rounds / 10**6, cuts / rounds
