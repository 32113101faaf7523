# SPDX-License-Identifier: GPL-2.0-only
"""Figures of the machines of a study, as in `weft topology --json`, and the figures that are held equal."""

import math

from accounting.account import machine_figures
from accounting.bill import bill_of_topology
from support.errors import StudyError
from support.quantities import readable

# Name: unit and description.
FIGURES = {
    "hosts": ("1", "endpoints: hosts, or GPUs of servers"),
    "switches": ("1", "switches, those inside servers included"),
    "links": ("1", "links"),
    "switch_links": ("1", "links between switches"),
    "network_ports": ("1", "ports of switches that are not inside servers"),
    "injection_rate": ("bit/s", "into the network, per host: its links, or its share of its server's NICs"),
    "bisection": ("bit/s", "one direction"),
    "diameter": ("1", "most links between two hosts"),
    "mean_distance": ("1", "mean number of links between two hosts"),
    "cost": ("$", "price of the machine"),
    "network_cost": ("$", "price of NICs, switches and cables"),
    "power": ("W", "with all accelerators computing and all ports sending"),
    "network_power": ("W", "of NICs, switches and optics, with all ports sending"),
    "embodied": ("g", "CO2 of making the machine"),
}

SERVER_LINKS = ("gpu", "nvlink", "pcie", "smp")  # classes of links inside servers


def injection_rate(machine):
    """Rates of all links of the first existing class, divided by the number of hosts."""
    for name in ("nic", "host"):
        rates = [link["rate_bps"] * link["count"] for link in machine["links_by_class"] if link["class"] == name]
        if rates:
            return sum(rates) / max(1, machine["hosts"])
    return math.nan


def network_ports(machine):
    """Number of ports outside hosts: one at a host's link, two at each link between switches."""
    return sum(link["count"] * (1 if link["class"] in ("nic", "host") else 2)
               for link in machine["links_by_class"] if link["class"] not in SERVER_LINKS)


def figures_of(machine, settings, device=None):
    """{name: value} from the output of `weft topology --json`, with prices and powers by `settings` of accounting."""
    return {
        "hosts": machine["hosts"],
        "switches": machine["switches"],
        "links": machine["links"],
        "switch_links": machine["switch_links"],
        "network_ports": network_ports(machine),
        "injection_rate": injection_rate(machine),
        "bisection": float(machine["bisection_bps"]),
        "diameter": machine["diameter"],
        "mean_distance": machine["mean_distance"],
        **machine_figures(bill_of_topology(machine), settings, device),
    }


def apart(a, b, share):
    """True if two values differ by more than a share of the larger one. An unknown value differs from any value."""
    if a != a or b != b:
        return True
    return abs(a - b) > share * max(abs(a), abs(b))


def check_equal(study, figures, name_of):
    """`figures` [(case, {name: value})] of the cases that would run."""
    if study.allow_unequal or not figures:
        return
    for name, share in study.equal.items():
        first_case, first = min(figures, key=lambda pair: pair[1][name])
        last_case, last = max(figures, key=lambda pair: pair[1][name])
        unknown = next(((case, of) for case, of in figures if of[name] != of[name]), None)
        if unknown:
            last_case, last = unknown
        if apart(first[name], last[name], share):
            unit = FIGURES[name][0]
            raise StudyError(
                f"{study.parts['equal'].where}: `{name}` is held equal{f' within {share:.3g}' if share else ''}, found "
                f"{readable(first[name], unit)} in case {first_case.number} ({name_of(first_case)}) and "
                f"{readable(last[name], unit)} in case {last_case.number} ({name_of(last_case)}); expected equal machines, or "
                "`allow_unequal: true`")
