# SPDX-License-Identifier: GPL-2.0-only
"""Links and nodes: their places in a picture of the machine, and the usage of links."""

import numpy as np

from report_page.values import packed
from weft_results.nodes import is_host

NUMBERS = ("rate", "delay", "bytes", "packets", "busy", "utilization", "peak_queue", "mean_queue", "dropped", "lost")


class Links:
    """The table /links, nodes by number, and the tier of each node (its distance from the hosts)."""

    def __init__(self, run):
        self.count = run.rows("links") if run.has("links", "id", "from", "to") else 0
        self.id, self.source, self.target = (run.columns("links", "id", "from", "to") if self.count else
                                             [np.zeros(0, np.int64)] * 3)
        self.values = {name: run.column("links", name).astype(np.float64) if run.has("links", name) else
                       np.zeros(self.count) for name in NUMBERS}
        self.link_class = self.texts(run, "link_class", "links")
        self.source_name, self.target_name = self.texts(run, "from_name"), self.texts(run, "to_name")
        self.nodes = np.unique(np.concatenate((self.source, self.target)).astype(np.int64))
        self.from_node = np.searchsorted(self.nodes, self.source)
        self.to_node = np.searchsorted(self.nodes, self.target)
        self.node_names = self.names_of_nodes()
        self.tiers = self.find_tiers()

    def texts(self, run, column, default="?"):
        if self.count and run.has("links", column):
            return run.column("links", column).astype(str)
        return np.full(self.count, default)

    def names_of_nodes(self):
        names = np.full(len(self.nodes), "", dtype=object)
        names[self.from_node] = self.source_name
        names[self.to_node] = self.target_name
        return names

    def find_tiers(self):
        tiers = np.full(len(self.nodes), -1)
        tiers[[i for i, name in enumerate(self.node_names) if is_host(name)]] = 0
        if len(tiers) and tiers.max() < 0:
            tiers[:] = 0
        for tier in range(len(tiers)):
            reached = self.to_node[(tiers[self.from_node] == tier) & (tiers[self.to_node] < 0)]
            if len(reached) == 0:
                break
            tiers[reached] = tier + 1
        return np.maximum(tiers, 0)

    def rows_of(self, ids):
        """Row of each link id; -1 if there is no such link."""
        if self.count == 0:
            return np.full(len(ids), -1)
        rows = np.minimum(np.searchsorted(self.id, ids), self.count - 1)
        return np.where(self.id[rows] == ids, rows, -1)

    def name(self, row):
        return f"{self.source_name[row]} → {self.target_name[row]}"

    def missing(self):
        """Packets of each link that did not arrive: without room on their way to it, or lost on it."""
        return self.values["dropped"] + self.values["lost"]

    def slower(self, row):
        """The rate of the fastest link that feeds this one, if that is faster; else None."""
        feeding = (self.to_node == self.from_node[row]) & (self.from_node != self.to_node[row])
        fastest = max(self.values["rate"][feeding & (self.values["busy"] > 0)], default=0)
        return fastest if fastest > self.values["rate"][row] else None

    def leaves_host(self):
        return self.tiers[self.from_node] == 0

    def reaches_host(self):
        return self.tiers[self.to_node] == 0


def by_neighbours(links, tier, x):
    """Nodes of a tier in the order of the mean place of their neighbours below."""
    members = np.flatnonzero(links.tiers == tier)
    down = (links.tiers[links.from_node] == tier) & (links.tiers[links.to_node] == tier - 1)
    sums = np.bincount(links.from_node[down], weights=x[links.to_node[down]], minlength=len(x))
    counts = np.maximum(np.bincount(links.from_node[down], minlength=len(x)), 1)
    means = (sums / counts)[members]
    return members[np.lexsort((links.nodes[members], np.round(means, 6)))]


def tiers_layout(links):
    """Hosts at the bottom, each tier above the one that it joins."""
    x, y = np.zeros(len(links.nodes)), np.zeros(len(links.nodes))
    top = max(int(links.tiers.max()), 1)
    for tier in range(int(links.tiers.max()) + 1):
        order = np.flatnonzero(links.tiers == tier) if tier == 0 else by_neighbours(links, tier, x)
        x[order] = (np.arange(len(order)) + 0.5) / max(len(order), 1)
        y[order] = 1 - tier / top
    return x, y


def circle_layout(links):
    """Switches on a circle in the order of their numbers, hosts outside beside their switch."""
    inner = np.flatnonzero(links.tiers > 0)
    angles = np.zeros(len(links.nodes))
    angles[inner] = 2 * np.pi * np.arange(len(inner)) / len(inner)
    radius = np.where(links.tiers > 0, 0.36, 0.48)
    up = links.leaves_host() & (links.tiers[links.to_node] > 0)
    switch_of = dict(zip(links.from_node[up].tolist(), links.to_node[up].tolist()))
    hosts_of = {}
    for host, switch in switch_of.items():
        hosts_of.setdefault(switch, []).append(host)
    width = 2 * np.pi / len(inner)
    for switch, hosts in hosts_of.items():
        for i, host in enumerate(sorted(hosts)):
            angles[host] = angles[switch] + width * ((i + 0.5) / len(hosts) - 0.5)
    return 0.5 + radius * np.cos(angles), 0.5 + radius * np.sin(angles)


def layout(links):
    between = (links.tiers[links.from_node] > 0) & (links.tiers[links.to_node] > 0)
    level = between & (links.tiers[links.from_node] == links.tiers[links.to_node])
    if between.sum() and 2 * level.sum() > between.sum():
        return circle_layout(links)
    return tiers_layout(links)


def topology(links, delay):
    """The picture of the machine. `delay`: picoseconds of delay that each link has caused."""
    if links.count == 0:
        return None
    x, y = layout(links)
    classes, titles = np.unique(links.link_class, return_inverse=True)[1], np.unique(links.link_class).tolist()
    data = {name: packed(links.values[name], "float64") for name in NUMBERS}
    return data | {
        "count": links.count, "nodes": links.node_names.tolist(), "x": packed(x, "float32"), "y": packed(y, "float32"),
        "tier": packed(links.tiers, "uint8"), "id": packed(links.id, "uint32"),
        "from": packed(links.from_node, "uint32"), "to": packed(links.to_node, "uint32"),
        "class": packed(classes, "uint16"), "classes": titles, "caused": packed(delay, "float64"),
    }
