# SPDX-License-Identifier: GPL-2.0-only
"""ASTRA-sim's analytical network (github.com/astra-sim/astra-network-analytical) as a machine: dimensions of Ring,
Switch or FullyConnected, each with separate links at every NPU."""

import itertools

from importing.errors import InputError, read_text, real_number, whole_number
from importing.imported import Map

KINDS = ("Ring", "Switch", "FullyConnected")
KEYS = ("topology", "npus_count", "bandwidth", "latency")
HOST_DELAY_NS = 1  # of a link between an NPU and its router, which the original network does not have
MAX_NPUS = 1 << 20


def bits(gib_per_second):
    """Bandwidths are 2^30 B/s: bw_GBps_to_Bpns of common/NetworkFunction.cc."""
    return f"{gib_per_second:g} GiB/s"


def nanoseconds(value):
    return f"{value:g} ns"


class Network:
    """An analytical network file."""

    def __init__(self, path, imported):
        import yaml  # noqa: PLC0415

        self.path, self.imported = path, imported
        self.text = read_text(path)
        try:
            document = yaml.safe_load(self.text)
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            raise InputError(path, mark.line + 1 if mark else None, "it is not YAML") from None
        if not isinstance(document, dict):
            raise InputError(path, 1, f"expected a map with {', '.join(KEYS)}")
        self.kinds = self.list_of(document, "topology", self.kind)
        self.sizes = self.list_of(document, "npus_count", lambda one: whole_number(
            one, path, self.line("npus_count"), "npus_count", 1, MAX_NPUS))
        self.rates = self.list_of(document, "bandwidth", lambda one: self.positive(one, "bandwidth"))
        self.delays = self.list_of(document, "latency", lambda one: self.positive(one, "latency"))
        if not len(self.kinds) == len(self.sizes) == len(self.rates) == len(self.delays):
            raise InputError(path, self.line("topology"), "topology, npus_count, bandwidth and latency have "
                             f"{len(self.kinds)}, {len(self.sizes)}, {len(self.rates)} and {len(self.delays)} "
                             "entries; expected as many of each")
        if self.ranks() > MAX_NPUS:
            raise InputError(path, self.line("npus_count"), f"{self.ranks()} NPUs; expected {MAX_NPUS} at most")
        for key in sorted(set(document) - set(KEYS)):
            imported.ignore(f"{path}:{self.line(key) or 1}", f"{key}: ASTRA-sim has no such key")

    def line(self, key):
        lines = enumerate(self.text.split("\n"), 1)
        return next((number for number, line in lines if line.lstrip().startswith(key)), None)

    def list_of(self, document, key, read):
        values = document.get(key)
        if not isinstance(values, list) or not values:
            raise InputError(self.path, self.line(key) or 1, f"{key}: expected a list with one entry per dimension")
        return [read(one) for one in values]

    def kind(self, name):
        if name not in KINDS:
            raise InputError(self.path, self.line("topology"), f"topology: found '{name}'; expected one of "
                             f"{', '.join(KINDS)}")
        return name

    def positive(self, value, key):
        number = real_number(value, self.path, self.line(key), key)
        if number <= 0:
            raise InputError(self.path, self.line(key), f"{key}: found {value}; expected a number above 0")
        return number

    def ranks(self):
        product = 1
        for size in self.sizes:
            product *= size
        return product

    def topology(self, imported):
        """The machine: a family of weft if there is one, otherwise a graph in a file beside the experiment."""
        kinds = {kind for kind, size in zip(self.kinds, self.sizes) if size > 1}
        if self.kinds == ["Switch"]:
            machine = Map(kind="star", hosts=max(2, self.sizes[0]), link_rate=bits(self.rates[0]),
                          link_delay=nanoseconds(self.delays[0]))
        elif kinds == {"Ring"} and all(size > 1 for size in self.sizes):
            machine = self.grid("torus", "dims")
        elif kinds == {"FullyConnected"} and all(size > 1 for size in self.sizes):
            machine = self.grid("hyperx", "dims")
        else:
            machine = Map(kind="file", path=imported.beside("topology.yaml", self.write_graph), format="yaml")
        named = ", ".join(f"{kind} of {size}" for kind, size in zip(self.kinds, self.sizes))
        machine.about = (f"{self.path}: {named}. Bandwidths there are in 2^30 B/s, for each link and direction. NPUs "
                         "have a router of their own where they are linked to each other.")
        return machine

    def inner_delay(self, dimension):
        """Delay of a link such that the delay between two neighbours is as in the original network."""
        return nanoseconds(max(self.delays[dimension] - 2 * HOST_DELAY_NS, self.delays[dimension] / 2))

    def grid(self, kind, key):
        count = range(len(self.sizes))
        rates = [bits(self.rates[d]) for d in count]
        delays = [self.inner_delay(d) for d in count]
        return Map({"kind": kind, key: self.sizes, "link_rate": rates if len(set(rates)) > 1 else rates[0],
                    "link_delay": delays if len(set(delays)) > 1 else delays[0],
                    "host_link_rate": bits(2 * sum(self.rates)), "host_link_delay": f"{HOST_DELAY_NS} ns"})

    def neighbours(self, position, dimension):
        """Positions to which an NPU has a direct link in a dimension, each pair once."""
        size, x = self.sizes[dimension], position[dimension]
        if self.kinds[dimension] == "Ring":
            others = [(x + 1) % size] if size > 2 or (size == 2 and x == 0) else []
        else:
            others = range(x + 1, size)
        for other in others:
            yield position[:dimension] + (other,) + position[dimension + 1:]

    def write_graph(self, file):
        """Every NPU is a host on its own router; each Switch of a dimension is one more switch."""
        hosts, strides = self.ranks(), [1]
        for size in self.sizes:
            strides.append(strides[-1] * size)
        number = lambda position: sum(x * stride for x, stride in zip(position, strides))  # noqa: E731
        # product() has the last coordinate fastest; NPU numbers have the first one fastest.
        positions = [tuple(reversed(one)) for one in itertools.product(*(range(size) for size in reversed(self.sizes)))]
        switches, lines = hosts, []
        for position in positions:
            lines.append(f"  - {{from: host{number(position)}, to: switch{number(position)}, "
                         f"rate: {bits(2 * sum(self.rates))}, delay: {HOST_DELAY_NS} ns}}\n")
        for d, size in enumerate(self.sizes):
            if size == 1:
                continue
            rate, outer = bits(self.rates[d]), nanoseconds(max(self.delays[d] - HOST_DELAY_NS, self.delays[d] / 2))
            if self.kinds[d] == "Switch":
                groups = sorted({position[:d] + (0,) + position[d + 1:] for position in positions})
                for base in groups:
                    for x in range(size):
                        member = number(base[:d] + (x,) + base[d + 1:])
                        lines.append(f"  - {{from: switch{member}, to: switch{switches}, rate: {rate}, "
                                     f"delay: {outer}}}\n")
                    switches += 1
            else:
                for position in positions:
                    for other in self.neighbours(position, d):
                        lines.append(f"  - {{from: switch{number(position)}, to: switch{number(other)}, rate: {rate}, "
                                     f"delay: {self.inner_delay(d)}}}\n")
        file.write(f"# {self.path}, link by link: host i on switch i, and the links of each dimension.\n"
                   f"kind: graph\nhosts: {hosts}\nswitches: {switches}\nlinks:\n".encode())
        for line in lines:
            file.write(line.encode())
