# SPDX-License-Identifier: GPL-2.0-only
"""A permutation on hashed paths of a fat-tree: the fluid ideals, and the rates in a run."""

import dataclasses
import random

import numpy

from oracles.sharing import FatTree, max_min_rates, window_rates
from oracles.wire import Network, quantity, serialization

MESSAGE = 10  # packets of each message


def experiment_changes(network, queue_pairs, packets, seed):
    """Every queue pair has as much data as it can send in `packets` packet times, in messages that all start at 0."""
    return {
        "workload.size": f"{queue_pairs * MESSAGE * network.mtu} B",
        "workload.queue_pairs": queue_pairs,
        "workload.start": ["0 ns"] * (packets // MESSAGE),
        "simulation.seed": seed,
    }


def random_ideal(k, queue_pairs, seeds):
    """Mean over hosts of the max-min fair rate, for random permutations and uniformly random paths: one per seed."""
    tree = FatTree(k)
    means = []
    for seed in range(seeds):
        draw = random.Random(seed)
        order = list(range(tree.hosts))
        while any(i == target for i, target in enumerate(order)):
            draw.shuffle(order)
        paths = [
            tree.path(source, target, lambda _: draw.randrange(tree.half))
            for source, target in enumerate(order)
            for _ in range(queue_pairs)
        ]
        means.append(max_min_rates(paths).sum() / tree.hosts)
    return numpy.array(means)


@dataclasses.dataclass
class Outcome:
    """Results of one run; rates are averages over hosts, as fractions of the line rate."""

    measured: float  # data packets
    occupied: float  # data packets and their ACKs
    slowest: float
    max_min: float
    window: float
    bytes: list  # (expected, measured) payload bytes and packets of each link


def link_bytes(tree, run, paths, backward, queue_pairs):
    """Payload and packets of every link, as expected from the hash and as counted."""
    payload, packets = {}, {}
    sources, sizes, counts = run.messages["source"], run.messages["bytes"], run.messages["packets"]
    bytes_of = numpy.bincount(sources, sizes).astype(int) // queue_pairs
    packets_of = numpy.bincount(sources, counts).astype(int) // queue_pairs
    for flow, (there, back) in enumerate(zip(paths, backward, strict=True)):
        source = flow // queue_pairs
        for link in there:
            payload[link] = payload.get(link, 0) + bytes_of[source]
            packets[link] = packets.get(link, 0) + packets_of[source]
        for link in back:
            packets[link] = packets.get(link, 0) + packets_of[source]
    pairs = []
    for start, port, end, size, count in zip(
        *(run.links[column] for column in ("from", "from_port", "to", "payload_bytes", "packets")), strict=True
    ):
        link = tree.link(int(start), int(port), int(end))
        pairs += [(payload.get(link, 0), size), (packets.get(link, 0), count)]
    return pairs


def outcome(case, k, queue_pairs, packets, seed):
    network = Network.of(case.experiment)
    run, experiment = case.run(experiment_changes(network, queue_pairs, packets, seed))
    tree = FatTree(k)
    rate, delay = quantity(experiment["topology"]["link_rate"]), quantity(experiment["topology"]["link_delay"])
    packet, ack = serialization(network.mtu + network.overhead, rate), serialization(network.control, rate)
    messages = run.messages
    target = dict(zip(messages["source"].tolist(), messages["destination"].tolist(), strict=True))
    flows = [(host, target[host], pair) for host in range(tree.hosts) for pair in range(queue_pairs)]
    forward = [tree.hashed_path(source, destination, pair, seed) for source, destination, pair in flows]
    backward = [tree.hashed_path(destination, source, pair, seed) for source, destination, pair in flows]
    base = numpy.array([len(path) * (2 * delay + packet + ack) for path in forward])
    window = network.window // network.mtu * packet
    receivers = numpy.array([destination for _, destination, _ in flows])
    # No queue pair can be finished before `end`; before `begin` the queues are still filling.
    begin, end = 0.4 * packets * packet, packets * packet
    inside = (messages["delivered"] > begin) & (messages["delivered"] <= end)
    hosts = numpy.bincount(messages["source"][inside], minlength=tree.hosts) * MESSAGE * packet / (end - begin)
    return Outcome(
        measured=hosts.mean(),
        occupied=hosts.mean() * (packet + ack) / packet,
        slowest=hosts.min(),
        max_min=max_min_rates(forward).sum() / tree.hosts,
        window=window_rates(forward, backward, receivers, window, base, ack / packet).sum() / tree.hosts,
        bytes=link_bytes(tree, run, forward, backward, queue_pairs),
    )


def check_permutations(case, k, packets, seeds, ideal_seeds):
    """Rows of the cases ecmp/permutation_k4 and _k8; `packets`: per queue pair, by number of queue pairs."""
    ideals, fluid, pairs = [], [], []
    network = Network.of(case.experiment)
    step = network.mtu / network.window
    for queue_pairs, count in packets.items():
        ideal = random_ideal(k, queue_pairs, ideal_seeds)
        outcomes = [outcome(case, k, queue_pairs, count, seed) for seed in seeds]
        error = ideal.std(ddof=1) * (1 / len(outcomes) + 1 / len(ideal)) ** 0.5
        ideals.append((ideal.mean(), 3 * error, numpy.mean([o.occupied for o in outcomes])))
        window = numpy.mean([o.window for o in outcomes])
        fluid.append((window, step * window, numpy.mean([o.measured for o in outcomes])))
        pairs += [pair for o in outcomes for pair in o.bytes]
    names = ", ".join(str(queue_pairs) for queue_pairs in packets)
    case.exact_all("payload and packets of each link, from the hash", pairs, "B or packets")
    case.within(f"mean share of line rate, {names} queue pairs; max-min ideal", ideals)
    case.within("the same; equilibrium of windows", fluid)
