# SPDX-License-Identifier: GPL-2.0-only
from halving_doubling.rounds import message_time, path
from oracles.wire import Network, quantity

SOURCE = "Thakur, Rabenseifner, Gropp 2005"
HOSTS = (5, 6, 7, 9, 12, 15)


def check(case):
    size = quantity(case.experiment["workload"]["size"])
    network = Network.of(case.experiment)
    rates, delays = path(case.experiment, network)

    def time(parts):
        return sum(message_time(part, network, rates, delays) for part in parts)

    run, _ = case.run({"topology.hosts": 3})
    case.exact("all-reduce, n = 3", time([size + size // 2, size // 2, size // 2, size]), run.collectives["time"][0])
    times, sent = [], []
    for hosts in HOSTS:
        levels = hosts.bit_length() - 1
        rest = hosts - (1 << levels)
        run, _ = case.run({"topology.hosts": hosts})
        halves = [size >> level + 1 for level in range(levels)]
        times.append((time([size, *halves, *halves, size]), run.collectives["time"][0]))
        exchanged = 2 * (size - (size >> levels))
        volumes = [size, exchanged + size] * rest + [exchanged] * (hosts - 2 * rest)
        sent += zip(volumes, run.ranks["bytes_sent"], strict=True)
    case.exact_all("bytes of each rank, n = 5 to 15", sent, "B")
    case.at_least("all-reduce: time of its rounds", times)
