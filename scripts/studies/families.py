# SPDX-License-Identifier: GPL-2.0-only
"""Machines of a given number of hosts, family by family: parameters that give the number, the most balanced first.
Formulas only propose; `weft topology` counts."""

import itertools
import math


def divisors(number):
    small = [i for i in range(1, math.isqrt(number) + 1) if number % i == 0]
    return small + [number // i for i in reversed(small) if i * i != number]


def factors(number, parts):
    """All ways to write a number as a product of `parts` factors, none below 2, in ascending order."""
    def walk(rest, left, least):
        if left == 1:
            if rest >= least:
                yield (rest,)
            return
        for first in divisors(rest):
            if first >= least and first ** left <= rest:
                for others in walk(rest // first, left - 1, first):
                    yield (first, *others)

    return list(walk(number, parts, 2))


def is_prime_power(number):
    prime = next((i for i in range(2, number + 1) if number % i == 0), 0)
    while prime and number % prime == 0:
        number //= prime
    return number == 1


class Family:
    """`proposals(hosts, ports)` yields (badness, parameters) of machines with `hosts` hosts whose switches have at most
    `ports` ports."""

    def __init__(self, name, what, proposals):
        self.name, self.what, self.proposals = name, what, proposals

    def best(self, hosts, ports, most=4):
        """The parameters of the most balanced machines. Equal ones keep the order in which they are found."""
        found = sorted(self.proposals(hosts, ports), key=lambda pair: pair[0])
        return [parameters for _, parameters in found[:most]]


def star(hosts, ports):
    if hosts <= ports:
        yield 0, {"kind": "star", "hosts": hosts}


def fat_tree(hosts, ports):
    for k in range(2, ports + 1, 2):
        if k**3 // 4 == hosts:
            yield 0, {"kind": "fat_tree", "k": k}


def three_levels(hosts, ports):
    """Each switch of the two lower levels has as many links up as down."""
    for shape in factors(hosts, 3):
        for m in sorted(set(itertools.permutations(shape))):
            widest = max(2 * m[0], 2 * m[1], m[2])
            if widest <= ports:
                yield (widest, m[2]), {"kind": "xgft", "m": list(m), "w": [1, m[0], m[1]]}


def leaf_spine(oversubscription):
    """As many spines as needed, each with links to all leaves; fewer and larger ones first."""
    def proposals(hosts, ports):
        for below in divisors(hosts):
            leaves = hosts // below
            if leaves < 2 or below % oversubscription:
                continue
            up = below // oversubscription
            for spines in divisors(up):
                parallel = up // spines
                if below + up <= ports and leaves * parallel <= ports:
                    shape = {"kind": "leaf_spine", "leaves": leaves, "hosts_per_leaf": below, "spines": spines}
                    yield leaves + spines, {**shape, **({"parallel": parallel} if parallel > 1 else {})}

    return proposals


def torus(dimensions):
    def proposals(hosts, ports):
        for dims in factors(hosts, dimensions):
            if 2 * dimensions < ports and dims[0] > 2:
                yield dims[-1] / dims[0], {"kind": "torus", "dims": list(reversed(dims))}

    return proposals


def hyperx(hosts, ports):
    """Two dimensions; with half as many hosts at a switch as switches in a line the bisection is full."""
    for a, b, each in {(*pair, hosts // (pair[0] * pair[1])) for n in divisors(hosts) for pair in factors(n, 2)}:
        if each + a + b - 2 <= ports:
            badness = abs(math.log(2 * each / a)) + abs(math.log(b / a))
            yield (badness, a), {"kind": "hyperx", "dims": [a, b], "hosts_per_switch": each}


def hypercube(hosts, ports):
    dimensions = hosts.bit_length() - 1
    if hosts == 1 << dimensions and 1 <= dimensions < ports:
        yield 0, {"kind": "hypercube", "dimensions": dimensions}


def fully_connected(hosts, ports):
    for switches in divisors(hosts):
        each = hosts // switches
        if switches > 1 and each + switches - 1 <= ports:
            yield abs(math.log(2 * each / switches)), {"kind": "fully_connected", "switches": switches,
                                                       "hosts_per_switch": each}


def dragonfly(hosts, ports):
    """Balanced with a = 2 p = 2 h (Kim et al. 2008), and enough global links for all groups: each pair of groups has as
    many as fit."""
    for p in divisors(hosts):
        for a in divisors(hosts // p):
            g, h = hosts // (p * a), max(1, a // 2)
            if a < 2 or g < 2 or g > a * h + 1 or p + a - 1 + h > ports:
                continue
            badness = abs(math.log(a / (2 * p))) + abs(math.log(g / (a * h + 1))) / 4
            yield (badness, a), {"kind": "dragonfly", "p": p, "a": a, "h": h, "g": g}


def dragonfly_plus(hosts, ports):
    """As many hosts at a leaf as spines in a group, and as many global links at a spine as leaves."""
    for p in divisors(hosts):
        for leaves in divisors(hosts // p):
            g, spines, h = hosts // (p * leaves), p, leaves
            if leaves < 2 or g < 2 or g > spines * h + 1 or max(p + spines, leaves + h) > ports:
                continue
            badness = abs(math.log(p / leaves)) + abs(math.log(g / (spines * h + 1))) / 4
            yield (badness, p), {"kind": "dragonfly_plus", "p": p, "leaves": leaves, "spines": spines, "h": h, "g": g}


def slim_fly(hosts, ports):
    """2 q² routers of (3 q - d) / 2 network ports, q = 4 w + d (Besta, Hoefler 2014); any number of hosts at each
    router."""
    for q in range(3, math.isqrt(hosts) + 1):
        each = hosts // (2 * q * q)
        if q % 4 == 2 or not is_prime_power(q) or each < 1 or hosts != 2 * q * q * each:
            continue
        network = (3 * q - {0: 0, 1: 1, 3: -1}[q % 4]) // 2
        if network + each <= ports and each <= network:
            yield abs(math.log(2 * each / network)), {"kind": "slim_fly", "q": q, "p": each}


def rails(hosts, ports):
    """Servers of eight GPUs, a rail for each: one switch, or leaves and spines."""
    if hosts % 8:
        return
    of_rail = [*star(hosts // 8, ports), *leaf_spine(1)(hosts // 8, ports)]
    for badness, rail in of_rail:
        yield (badness, len(rail)), {"kind": "rails", "rails": 8, "rail": rail,
                                     "server": {"design": "hgx_h100", "wiring": "rail", "pxn": "true"}}


FAMILIES = [
    Family("star", "one switch", star),
    Family("fat_tree", "three levels of equal switches", fat_tree),
    Family("fat_tree_xgft", "a fat-tree of three levels, any size", three_levels),
    Family("leaf_spine", "two levels, full bisection", leaf_spine(1)),
    Family("leaf_spine_2_to_1", "two levels, half of it", leaf_spine(2)),
    Family("dragonfly", "groups joined pairwise", dragonfly),
    Family("dragonfly_plus", "groups of leaves and spines", dragonfly_plus),
    Family("slim_fly", "diameter two", slim_fly),
    Family("torus_2d", "a host at each router", torus(2)),
    Family("torus_3d", "a host at each router", torus(3)),
    Family("hyperx", "a grid of switches, all in a line joined", hyperx),
    Family("hypercube", "a host at each router", hypercube),
    Family("fully_connected", "all switches joined", fully_connected),
    Family("rails", "servers of eight GPUs", rails),
]


def with_rates(parameters, rate, delay):
    """The same with links. Hosts of a torus or a hypercube have one link of this rate, as in other families."""
    if parameters["kind"] == "rails":
        return {**parameters, "rail": with_rates(parameters["rail"], rate, delay)}
    links = {"link_rate": rate, "link_delay": delay}
    if parameters["kind"] in ("torus", "hypercube"):
        links["host_link_rate"] = rate
    return {**parameters, **links}
