# SPDX-License-Identifier: GPL-2.0-only
import itertools

from oracles.wire import Network, quantity, serialization

SOURCE = "one message per link"


def neighbours(dims):
    """For each router its neighbours, downwards and upwards in each dimension."""
    steps = list(itertools.accumulate(dims, lambda a, b: a * b, initial=1))
    result = []
    for router in range(steps[-1]):
        mine = []
        for step, size in zip(steps, dims):
            x = router // step % size
            mine += [router + ((x + by) % size - x) * step for by in (-1, 1)]
        result.append(mine)
    return result


def check(case):
    times, queues = [], []
    for dims in ([4, 4, 4], [3, 5, 4]):
        everyone = neighbours(dims)
        pairs = [[i, j] for i, mine in enumerate(everyone) for j in mine]
        run, experiment = case.run({"topology.dims": dims, "workload.pairs": pairs})
        network, link = Network.of(experiment), experiment["topology"]
        rate, delay = quantity(link["link_rate"]), quantity(link["link_delay"])
        frames = network.frames(quantity(experiment["workload"]["size"]))
        ways = 2 * len(dims)
        assert len(set(frames)) == 1 and frames[0] * 8 * 10**12 % (ways * rate) == 0
        slow, fast = serialization(frames[0], rate), serialization(frames[0], ways * rate)
        # A host sends a packet of each message in turn, at the rate of all links of its router together.
        for number, delivered in enumerate(run.messages["delivered"]):
            last_sent = ((len(frames) - 1) * ways + number % ways + 1) * fast
            times.append((last_sent + delay + network.latency + slow + delay + network.latency + fast + delay, delivered))
        inside = run.links["link_class"] != "host"
        queues += [(frames[0], peak) for peak in run.links["peak_queue"][inside]]
        queues += [(0, waiting) for waiting in run.links["mean_queue"][inside]]
    case.exact_all("delivery of each message, 4 x 4 x 4 and 3 x 5 x 4", times)
    case.exact_all("longest queue of each link: one packet; bytes waiting: none", queues, "B")
