# SPDX-License-Identifier: GPL-2.0-only
from halving_doubling.rounds import end_of_ranks, message_time, nic_time, path, rounds_of
from oracles.wire import Network, quantity

SOURCE = "Thakur, Rabenseifner, Gropp 2005"
HOSTS = (2, 4, 8, 16)


def run(case, **workload):
    """Time and bytes of each rank, as calculated from the rounds and as measured."""
    hosts = workload.pop("hosts")
    changes = {"topology.hosts": hosts, **{f"workload.{key}": value for key, value in workload.items()}}
    measured, experiment = case.run(changes)
    workload, network = experiment["workload"], Network.of(experiment)
    rounds = rounds_of(workload["collective"], workload["algorithm"], hosts, quantity(workload["size"]))
    rates, delays = path(experiment, network)
    ends = end_of_ranks(
        rounds,
        lambda size: message_time(size, network, rates, delays),
        lambda size: nic_time(size, network, rates[0]),
    )
    sent = [sum(exchange[rank][1] for exchange in rounds) for rank in range(hosts)]
    return measured, list(zip(ends, measured.ranks["finished"], strict=True)), list(
        zip(sent, measured.ranks["bytes_sent"], strict=True)
    )


def check(case):
    size = quantity(case.experiment["workload"]["size"])
    network = Network.of(case.experiment)
    rates, delays = path(case.experiment, network)
    time = lambda bytes_: message_time(bytes_, network, rates, delays)  # noqa: E731
    laws = {
        # P ranks: log2 P times S; S/2, S/4, ..., S/P and back
        "recursive_doubling": lambda levels: levels * time(size),
        "halving_doubling": lambda levels: 2 * sum(time(size >> level + 1) for level in range(levels)),
    }
    volumes = {
        "recursive_doubling": lambda levels: levels * size,
        "halving_doubling": lambda levels: 2 * (size - (size >> levels)),
    }
    sent = []
    for algorithm, law in laws.items():
        times = []
        for levels, hosts in enumerate(HOSTS, 1):
            measured, _, _ = run(case, hosts=hosts, algorithm=algorithm)
            times.append((law(levels), measured.collectives["time"][0]))
            sent += [(volumes[algorithm](levels), bytes_) for bytes_ in measured.ranks["bytes_sent"]]
        case.exact_all(f"all-reduce, {algorithm}, n = 2 to 16", times)
    case.exact_all("bytes of each rank: S log2 n; 2 S (n-1)/n", sent, "B")

    ends, sent = [], []
    for collective in ("all_reduce", "all_gather", "reduce_scatter"):
        for odd_size in ("1 B", "1000003 B"):
            for hosts in HOSTS:
                _, times, bytes_ = run(case, hosts=hosts, collective=collective, size=odd_size)
                ends += times
                sent += bytes_
    case.exact_all("end of each rank, sizes that do not divide, three kinds", ends)
    case.exact_all("bytes of each rank of the same", sent, "B")
