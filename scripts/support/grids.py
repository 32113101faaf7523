# SPDX-License-Identifier: GPL-2.0-only
"""Which delayed messages of a run on a torus or a grid have a choice between shortest paths, and which links they share."""

import re

import numpy as np

# Evenly spaced slices represent larger tables.
SAMPLE = 1 << 20
ROUTER = re.compile(r"router(\d+(?:\.\d+)*)$")


class Grid:
    """Coordinates of hosts, by the names of their routers; `known` is False where hosts are not at routers of one grid."""

    def __init__(self, links):
        up = np.flatnonzero(links.leaves_host() & (links.tiers[links.to_node] > 0)) if links.count else []
        found = {int(links.source[row]): ROUTER.search(str(links.target_name[row])) for row in up}
        self.known = bool(found) and all(found.values())
        if self.known:
            of_host = {host: [int(word) for word in match[1].split(".")] for host, match in found.items()}
            self.known = len({len(place) for place in of_host.values()}) == 1
        if self.known:
            self.place = np.full((max(of_host) + 1, len(next(iter(of_host.values())))), -1)
            self.place[list(of_host)] = list(of_host.values())
            self.sizes = self.place.max(axis=0) + 1
            self.ring = self.rings(links)

    def rings(self, links):
        """Whether each dimension is a ring, in which the first router is joined to the last one and to no other one."""
        joined = set()
        for a, b in zip(links.source_name.tolist(), links.target_name.tolist()):
            first, second = ROUTER.search(a), ROUTER.search(b)
            if first and second:
                one, other = ([int(word) for word in match[1].split(".")] for match in (first, second))
                differ = [d for d, (x, y) in enumerate(zip(one, other)) if x != y]
                if len(differ) == 1 and one[differ[0]] == 0:
                    joined.add((differ[0], other[differ[0]]))
        return np.array([size > 2 and (d, size - 1) in joined and not any((d, x) in joined for x in range(2, size - 1))
                         for d, size in enumerate(self.sizes)])

    def step(self, source, target):
        """(dimension, 1 or -1) of the link between two neighbouring routers; None for other links."""
        first, second = ROUTER.search(source), ROUTER.search(target)
        if not first or not second:
            return None
        one, other = ([int(word) for word in match[1].split(".")] for match in (first, second))
        differ = [d for d, (x, y) in enumerate(zip(one, other)) if x != y]
        if len(differ) != 1:
            return None
        d = differ[0]
        by = other[d] - one[d]
        if self.ring[d] and abs(by) == self.sizes[d] - 1:
            by = -by // abs(by)
        return (d, by) if abs(by) == 1 else None

    def choices(self, source, target):
        """Of pairs of hosts: whether they differ in several dimensions, and whether a ring may be taken either way."""
        distance = np.abs(self.place[source] - self.place[target])
        opposite = self.ring & (2 * distance == self.sizes)
        return (distance > 0).sum(axis=1) > 1, opposite.any(axis=1)


def same_way(links, row):
    """Which links of the class of a link go the same way along a ring or a line; all of the class elsewhere."""
    of_class = links.link_class == links.link_class[row]
    grid = Grid(links)
    if not grid.known:
        return of_class
    steps = [grid.step(a, b) for a, b in zip(links.source_name.tolist(), links.target_name.tolist())]
    mine = steps[row]
    return of_class & np.array([step == mine for step in steps]) if mine is not None else of_class


def choices(run, links):
    """Shares of the delay of messages: of those for which routing may choose between dimensions, and of those that may take a ring
    either way. (1, 1) if that is unknown."""
    names = ("source", "destination", "issued", "delivered", "ideal")
    if not run.has("messages", *names) or not run.has("ranks", "rank", "node") or run.rows("ranks") == 0:
        return 1.0, 1.0
    grid = Grid(links)
    if not grid.known:
        return 1.0, 1.0
    rank, node = (column.astype(np.int64) for column in run.columns("ranks", "rank", "node"))
    host = np.full(int(rank.max()) + 1, -1)
    host[rank] = node
    whole = turning = either = 0.0
    for block in run.blocks("messages", list(names), SAMPLE):
        delay = np.maximum(block["delivered"] - block["issued"] - block["ideal"], 0).astype(np.float64)
        turns, opposite = grid.choices(host[block["source"]], host[block["destination"]])
        whole, turning, either = whole + delay.sum(), turning + delay[turns].sum(), either + delay[opposite].sum()
    return (turning / whole, either / whole) if whole else (0.0, 0.0)
