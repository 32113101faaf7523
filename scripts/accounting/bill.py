# SPDX-License-Identifier: GPL-2.0-only
"""The bill of materials of a machine, counted from its links."""

import math
from dataclasses import asdict, dataclass, field

import numpy

from weft_results.nodes import are_hosts

SERVER_LINKS = ("gpu", "nvlink", "pcie", "smp")  # classes of links inside servers
UNIT_LINKS = "reduction"  # class of links of units inside switches: no cables
RATE = 100e9  # bit/s: unit of prices and powers of ports and cables
ACCELERATORS_PER_SERVER = 8  # if the machine does not say: as on the HGX boards in the sources of prices
# Kinds of cables: the longest, in metres. The classes are those of `weft topology`
# (src/app/analysis/topology_report.cpp).
LENGTHS = (("copper", 3), ("active", 30), ("optical", 100), ("long", math.inf))


@dataclass
class Bill:
    """`switches` {ports: number}, outside servers. `cables` [(class, rate in bit/s, delay in ps, number, ends at such
    switches)]."""

    accelerators: int
    storage: int
    servers: int  # 0 if the machine does not say
    nics: int
    switches: dict = field(default_factory=dict)
    cables: list = field(default_factory=list)

    def as_data(self):
        return asdict(self)

    def switch_rate(self):
        """Rate of all ports of switches together, in units of RATE."""
        return sum(rate * ends for _, rate, _, _, ends in self.cables) / RATE

    def link_classes(self):
        """Those of cables, and if there are servers, those of links inside them."""
        return sorted({name for name, *_ in self.cables} | set(SERVER_LINKS if self.servers else ()))

    def cables_by_kind(self, lengths):
        """{kind: (number, rate of all in units of RATE)}. `lengths` {class: metres} replaces lengths from delays. A
        link without a length is no cable."""
        found = {kind: (0, 0.0) for kind, _ in LENGTHS}
        for name, rate, delay, count, _ in self.cables:
            kind = kind_of(lengths[name] if name in lengths else metres(delay))
            if kind:
                found[kind] = (found[kind][0] + count, found[kind][1] + count * rate / RATE)
        return found

    def server_count(self, per_server=None):
        return self.servers or math.ceil(self.accelerators / (per_server or ACCELERATORS_PER_SERVER))


def metres(delay):
    """Length in metres: light takes 5 ns for a metre of fibre, and copper is similar."""
    return (delay + 4999) // 5000


def kind_of(length):
    return next(kind for kind, longest in LENGTHS if length <= longest) if length > 0 else None


def bill_of(data):
    """From the result of as_data() after JSON."""
    return Bill(**{**data, "switches": {int(ports): count for ports, count in data["switches"].items()},
                   "cables": [tuple(cable) for cable in data["cables"]]})


def bill_of_topology(report):
    """From the output of `weft topology --json`."""
    found = report["bill_of_materials"]
    cables = [(link["class"], link["rate_bps"], link["delay_ps"], link["count"], link["network_ends"])
              for link in report["links_by_class"] if link["class"] not in (*SERVER_LINKS, UNIT_LINKS)]
    return Bill(found["accelerators"], found["storage_hosts"], found["servers"], found["nics"],
                {int(ports): count for ports, count in found["network_switches_by_ports"].items()}, sorted(cables))


class Links:
    """Columns of /links of a results file, one direction of each link."""

    def __init__(self, file):
        group = file["links"]
        once = group["id"][:] % 2 == 0
        names = [data.asstr()[:][once] for data in (group["link_class"], group["from_name"], group["to_name"])]
        kept = names[0] != UNIT_LINKS
        self.link_class, from_name, to_name = (column[kept] for column in names)
        self.start, self.end = group["from"][:][once][kept], group["to"][:][once][kept]
        self.rate, self.delay = group["rate"][:][once][kept], group["delay"][:][once][kept]
        nodes = int(max(self.start.max(), self.end.max())) + 1
        self.is_host, self.exists = numpy.zeros(nodes, bool), numpy.zeros(nodes, bool)
        for node, name in ((self.start, from_name), (self.end, to_name)):
            self.is_host[node] = are_hosts(name)
            self.exists[node] = True
        self.inside = numpy.isin(self.link_class.astype(str), SERVER_LINKS)
        self.in_server = numpy.zeros(nodes, bool)
        for node in (self.start, self.end):
            self.in_server[node[self.inside]] = True
        self.of_network = self.exists & ~self.is_host & ~self.in_server

    def servers(self):
        """Sets of nodes that links inside servers join: each node takes the smallest number of its neighbours until no
        number changes."""
        if not self.inside.any():
            return 0
        a, b, label = self.start[self.inside], self.end[self.inside], numpy.arange(len(self.exists))
        while True:
            least = numpy.minimum(label[a], label[b])
            before = label.copy()
            numpy.minimum.at(label, a, least)
            numpy.minimum.at(label, b, least)
            if (before == label).all():
                return len(numpy.unique(label[self.in_server]))

    def nics(self):
        """Number of NICs: nodes of servers with a link to the network, and links of hosts outside servers."""
        outwards = numpy.zeros(len(self.exists), numpy.int64)
        for one, other in ((self.start, self.end), (self.end, self.start)):
            numpy.add.at(outwards, one, self.of_network[other])
        hosts = outwards[self.is_host & ~self.in_server].sum()
        return int(hosts + (outwards[self.in_server & ~self.is_host] > 0).sum())

    def switches(self):
        ports = numpy.bincount(numpy.concatenate((self.start, self.end)), minlength=len(self.exists))
        numbers, counts = numpy.unique(ports[self.of_network], return_counts=True)
        return {int(number): int(count) for number, count in zip(numbers, counts)}

    def cables(self):
        ends = self.of_network[self.start].astype(int) + self.of_network[self.end]
        found = {}
        for key in zip(self.link_class[~self.inside], self.rate[~self.inside].tolist(),
                       self.delay[~self.inside].tolist(), ends[~self.inside].tolist()):
            found[key] = found.get(key, 0) + 1
        merged = {}
        for (name, rate, delay, end), count in found.items():
            before = merged.get((str(name), rate, delay), (0, 0))
            merged[str(name), rate, delay] = (before[0] + count, before[1] + count * end)
        return sorted((*key, count, end) for key, (count, end) in merged.items())


def bill_of_links(links, storage):
    """From the links of a results file; `storage`: number of storage hosts."""
    hosts = int((links.is_host & links.exists).sum())
    return Bill(hosts - storage, storage, links.servers(), links.nics(), links.switches(), links.cables())
