# SPDX-License-Identifier: GPL-2.0-only
"""How flows share links: ECMP paths in a fat-tree, max-min fair rates, and the fluid equilibrium of fixed windows.

Rates are fractions of the rate of a link; all links have the same.
"""

import numpy

MASK = 2**64 - 1


def mix64(x):
    """Finalizer of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014, doi:10.1145/2660193.2660195)."""
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB & MASK
    return x ^ (x >> 31)


def ecmp_choice(source, destination, queue_pair, node, seed, choices):
    """The one of several equal ports that a switch uses: the hash that src/routing/algorithm/routing_algorithm.hpp
    documents."""
    x = (source << 32 | destination) * 0x9E3779B97F4A7C15 & MASK
    x ^= (queue_pair << 32 | node) + mix64(seed) & MASK
    return (mix64(x) >> 32) * choices >> 32


class FatTree:
    """k-ary fat-tree (Al-Fares et al. 2008): hosts and links by position."""

    def __init__(self, k):
        self.k, self.half = k, k // 2
        self.pod = self.half**2
        self.hosts = k * self.pod
        self.edges = k * self.half

    def path(self, source, destination, choose):
        """Directed links from host to host. choose(node) selects one of k/2 ports up at a switch (its node number)."""
        edge, other_edge = source // self.half, destination // self.half
        pod, other_pod = source // self.pod, destination // self.pod
        up, down = [("host up", source)], [("host down", destination)]
        if edge == other_edge:
            return up + down
        position = choose(self.hosts + edge)
        up.append(("edge up", edge, position))
        down.insert(0, ("edge down", other_edge, position))
        if pod == other_pod:
            return up + down
        aggregation = pod * self.half + position
        port = choose(self.hosts + self.edges + aggregation)
        up.append(("aggregation up", aggregation, port))
        down.insert(0, ("aggregation down", other_pod * self.half + position, port))
        return up + down

    def link(self, node, port, peer):
        """The name that path() gives to the link at a port of a node. Ports of a switch: down first, then up."""
        if node < self.hosts:
            return ("host up", node)
        if node < self.hosts + self.edges:
            edge = node - self.hosts
            return ("host down", peer) if port < self.half else ("edge up", edge, port - self.half)
        if node < self.hosts + 2 * self.edges:
            aggregation = node - self.hosts - self.edges
            if port < self.half:
                return ("edge down", peer - self.hosts, aggregation % self.half)
            return ("aggregation up", aggregation, port - self.half)
        core = node - self.hosts - 2 * self.edges
        return ("aggregation down", peer - self.hosts - self.edges, core % self.half)

    def hashed_path(self, source, destination, queue_pair, seed):
        return self.path(
            source, destination, lambda node: ecmp_choice(source, destination, queue_pair, node, seed, self.half)
        )


class Incidence:
    """Flows and the links they take, as index arrays: entry i says that flow[i] takes link[i]."""

    def __init__(self, paths, numbers=None):
        self.numbers = {} if numbers is None else numbers
        pairs = [(f, self.numbers.setdefault(link, len(self.numbers))) for f, path in enumerate(paths) for link in path]
        self.flow = numpy.array([f for f, _ in pairs], dtype=int)
        self.link = numpy.array([number for _, number in pairs], dtype=int)
        self.flows = len(paths)

    def per_link(self, of_flow):
        return numpy.bincount(self.link, of_flow[self.flow], len(self.numbers))

    def per_flow(self, of_link):
        return numpy.bincount(self.flow, of_link[self.link], self.flows)


def max_min_rates(paths):
    """Max-min fair rates by progressive filling (Bertsekas, Gallager: Data Networks, 2nd ed., 6.5.2): all flows grow at
    the same rate; flows on a full link stop growing."""
    takes = Incidence(paths)
    rate = numpy.zeros(takes.flows)
    room = numpy.ones(len(takes.numbers))
    growing = numpy.ones(takes.flows)
    while growing.any():
        count = takes.per_link(growing)
        step = numpy.min(room[count > 0] / count[count > 0])
        rate += step * growing
        room -= step * count
        full = (room <= 1e-12) & (count > 0)
        growing[takes.per_flow(full.astype(float)) > 0] = 0
    return rate


def share_of_sources(wanted, room):
    """A NIC serves its queue pairs one packet each in turn: each gets its demand, or the equal share if it demands more.

    `room`: for each source, the part of its link that is left for data.
    """
    wanted = wanted.reshape(len(room), -1)
    ascending = numpy.sort(wanted, axis=1)
    below = numpy.cumsum(ascending, axis=1) - ascending
    level = (room[:, None] - below) / (wanted.shape[1] - numpy.arange(wanted.shape[1]))
    first = numpy.argmax(level <= ascending, axis=1)
    limit = numpy.where(wanted.sum(axis=1) > room, level[numpy.arange(len(room)), first], numpy.inf)
    return numpy.minimum(wanted, limit[:, None]).reshape(-1)


def window_rates(forward, backward, receivers, window_time, base_time, ack_share, tolerance=2e-4):
    """Equilibrium of fixed windows on first-in-first-out links (Mo, Walrand 2000, doi:10.1109/90.879343, section 2):
    rate = window / (base + waits on the path), where the wait at a link is just long enough that it carries no more
    than its rate. Waits count on the path of the data and on that of the ACKs, which share the queues of the other
    direction.

    `forward`, `backward`: paths of data and ACKs, flows of a source one after another. The first link is the host's own,
    where queue pairs take turns instead of queueing and ACKs go first. `receivers`: host of each flow; `window_time`: of
    the window at full rate; `base_time`: round trip of each flow without waiting; `ack_share`: ACK bytes per data byte.
    """
    numbers = {}
    data = Incidence([path[1:] for path in forward], numbers)
    acks = Incidence([path[1:] for path in backward], numbers)
    sources = max(receivers) + 1
    waiting = numpy.zeros(len(numbers))
    rate = numpy.zeros(len(forward))
    for _ in range(20000):
        round_trip = base_time + data.per_flow(waiting) + acks.per_flow(waiting)
        room = 1 - ack_share * numpy.bincount(receivers, rate, sources)
        rate = share_of_sources(window_time / round_trip, room)
        excess = data.per_link(rate) + ack_share * acks.per_link(rate) - 1
        wrong = numpy.where(waiting > 0, numpy.abs(excess), numpy.maximum(excess, 0))
        if wrong.max() < tolerance:
            return rate
        slope = data.per_link(rate / round_trip) + 1e-12 / window_time
        waiting = numpy.maximum(0, waiting + 0.2 * excess / slope)
    raise ArithmeticError(f"no equilibrium: {wrong.max():.2g} of a link's rate are left over")
