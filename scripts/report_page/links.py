# SPDX-License-Identifier: GPL-2.0-only
"""Links and nodes: their places in a picture of the machine, and the usage of links."""

import re

import numpy as np

from report_page.values import packed
from support.own_queues import IN_SERVERS, at_ends_of, own_queues
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

    def queues_own(self):
        """Links whose queues hold what the accelerators of a host or server send themselves."""
        return own_queues(self.link_class, self.source, self.target, self.source_name)

    def reaches_server(self):
        """Links to hosts, or from the network to the NIC of a server."""
        return self.reaches_host() | (self.link_class == "nic") & at_ends_of(self.target, self.source, np.isin(self.link_class, IN_SERVERS))

    def only_switches(self):
        """[nodes] True for switches to which hosts or NICs of servers are attached, all of which have no other one."""
        ends = self.reaches_server() & ~np.isin(self.link_class, IN_SERVERS)
        switches = np.bincount(self.to_node[ends], minlength=len(self.nodes))
        found = np.zeros(len(self.nodes), dtype=bool)
        found[self.from_node[ends]] = True
        found[self.from_node[ends & (switches[self.to_node] > 1)]] = False
        return found

    def of_ends(self):
        """Links of hosts and servers: no routing, and no placement of others, changes what goes over them."""
        return self.leaves_host() | self.reaches_host() | np.isin(self.link_class, (*IN_SERVERS, "nic"))


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


def hosts_of(links):
    """{switch: its hosts}"""
    up = links.leaves_host() & (links.tiers[links.to_node] > 0)
    found = {}
    for host, switch in sorted(dict(zip(links.from_node[up].tolist(), links.to_node[up].tolist())).items()):
        found.setdefault(switch, []).append(host)
    return found


def coordinates(links):
    """The coordinates of all switches, nodes x dimensions, where their names have such (tori, meshes, HyperX); else None."""
    names = [re.fullmatch(r"router(\d+(?:\.\d+)*)", links.node_names[node]) for node in np.flatnonzero(links.tiers > 0)]
    if not names or not all(names):
        return None
    found = [[int(part) for part in name[1].split(".")] for name in names]
    return np.array(found) if len({len(parts) for parts in found}) == 1 and len(found[0]) > 1 else None


def grid_layout(links, places):
    """Switches by their coordinates: the first two dimensions are a plane, planes of further dimensions are side by side. Rows and
    columns are bent, so that a link from the last switch of a line to the first one is not hidden by the links between them. Hosts
    are beside their switch."""
    sizes = places.max(axis=0) + 1
    plane = np.ravel_multi_index(places[:, 2:].T, sizes[2:]) if len(sizes) > 2 else np.zeros(len(places), dtype=np.int64)
    count = int(np.prod(sizes[2:]))
    wide = int(np.ceil(np.sqrt(count * sizes[1] / sizes[0])))
    bent = [0.4 * (1 - (2 * places[:, i] / max(sizes[i] - 1, 1) - 1) ** 2) for i in (0, 1)]
    x, y = np.zeros(len(links.nodes)), np.zeros(len(links.nodes))
    inner = np.flatnonzero(links.tiers > 0)
    x[inner] = places[:, 0] + bent[1] + (plane % wide) * (sizes[0] + 1) + 0.5
    y[inner] = places[:, 1] + bent[0] + (plane // wide) * (sizes[1] + 1) + 0.5
    for switch, hosts in hosts_of(links).items():
        for i, host in enumerate(hosts):
            x[host], y[host] = x[switch] + 0.25 + 0.2 * i / len(hosts), y[switch] - 0.3
    return x / (wide * (sizes[0] + 1)), y / (-(-count // wide) * (sizes[1] + 1))


def circle_layout(links):
    """Switches on a circle in the order of their numbers, hosts outside beside their switch."""
    inner = np.flatnonzero(links.tiers > 0)
    angles = np.zeros(len(links.nodes))
    angles[inner] = 2 * np.pi * np.arange(len(inner)) / len(inner)
    radius = np.where(links.tiers > 0, 0.36, 0.48)
    width = 2 * np.pi / len(inner)
    for switch, hosts in hosts_of(links).items():
        for i, host in enumerate(hosts):
            angles[host] = angles[switch] + width * ((i + 0.5) / len(hosts) - 0.5)
    return 0.5 + radius * np.cos(angles), 0.5 + radius * np.sin(angles)


def layout(links):
    between = (links.tiers[links.from_node] > 0) & (links.tiers[links.to_node] > 0)
    level = between & (links.tiers[links.from_node] == links.tiers[links.to_node])
    places = coordinates(links)
    if places is not None:
        return grid_layout(links, places)
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
