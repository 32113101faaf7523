# SPDX-License-Identifier: GPL-2.0-only
"""Dragonflies and dragonflies+ under uniform traffic, and under the worst: every group sends to the next one.

With `group` hosts in each of `g` groups and one link between any two groups, the global links carry these fractions of
the rate of a host's link: 1 / group with minimal routes, (g - 2) / (2 group) with Valiant's detours over the other
groups, and at most the sum of both if each packet may choose (Kim, Dally, Scott, Abts, "Technology-driven,
highly-scalable dragonfly topology", ISCA 2008; Shpiner et al., "Dragonfly+: low cost topology for scaling datacenters",
HiPINEB 2017)."""

from open_loop import changes_of, measure
from oracles.wire import Network, quantity, serialization

SOURCES = {"dragonfly": "Kim et al. 2008", "dragonfly_plus": "Shpiner et al. 2017; Kim et al. 2008"}
LENGTH = 100 * 10**6  # ps, per point of a load curve


def routings(kind):
    """Readable name: value of network.routing."""
    minimal = {"dragonfly": "dragonfly_minimal_lanes", "dragonfly_plus": "dragonfly_plus_minimal"}[kind]
    rest = {"Valiant": "valiant", "UGAL-L": "ugal", "UGAL-G": "ugal_g", "progressive": "progressive"}
    return {"minimal": minimal} | {name: f"{kind}_{routing}" for name, routing in rest.items()}


def groups(topology):
    """Hosts per group, and number of groups."""
    if topology["kind"] == "dragonfly":
        return topology["p"] * topology["a"], topology["a"] * topology["h"] + 1
    return topology["p"] * topology["leaves"], topology["spines"] * topology["h"] + 1


def bounds(group, g):
    detours = (g - 2) / (2 * group)
    return dict.fromkeys(("UGAL-L", "UGAL-G", "progressive"), detours + 1 / group) | {"minimal": 1 / group, "Valiant": detours}


def throughput(case, routing, workload, messages):
    """Wire bytes of data that each host has sent, divided by the capacity of its link during the run."""
    run, experiment = case.run({"network.routing": routing, "workload": {"kind": "traffic", **workload}})
    wire = messages * Network.of(experiment).wire(quantity(workload["size"]))
    return serialization(wire, quantity(experiment["topology"]["link_rate"])) / run.time


def check_throughput(case, shifted):
    """Rows for messages of `shifted` bytes to the next group, and for an all-to-all."""
    topology = case.experiment["topology"]
    ways = routings(topology["kind"])
    group, g = groups(topology)
    shift = {"pattern": "permutation", "shift": group, "size": shifted}
    everyone = {"pattern": "all_to_all", "size": "32768 B"}
    adversarial = {name: throughput(case, routing, shift, 1) for name, routing in ways.items()}
    uniform = {name: throughput(case, routing, everyone, group * g - 1) for name, routing in ways.items()}
    for pattern, found, limit in (("group to next group", adversarial, bounds(group, g)), ("all-to-all", uniform, dict.fromkeys(ways, 1))):
        rows = [(limit[name], found[name]) for name in ways]
        case.add(f"{pattern}: throughput of {', '.join(ways)}", ", ".join(f"≤ {bound:.3f}" for bound, _ in rows),
                 ", ".join(f"{value:.3f}" for _, value in rows),
                 ", ".join(f"{100 * (value / bound - 1):+.0f} %" for bound, value in rows),
                 all(value <= bound for bound, value in rows))
        better = max(found["minimal"], found["Valiant"])
        for name in ("UGAL-L", "UGAL-G", "progressive"):
            case.add(f"{pattern}: {name} beside the better of minimal and Valiant", f"≥ {0.9 * better:.3f}", f"{found[name]:.3f}",
                     f"{100 * (found[name] / better - 1):+.0f} %", found[name] >= 0.9 * better)


def check_load_curve(case):
    """Rows for latency far from saturation, and for the accepted load beyond it."""
    topology = case.experiment["topology"]
    ways = {name: routing for name, routing in routings(topology["kind"]).items() if name != "progressive"}
    group, g = groups(topology)

    def point(load, name, more):
        run, experiment = case.run(changes_of(load, LENGTH, {"network.routing": ways[name], **more}))
        return measure(run, experiment, load, LENGTH), experiment

    # Far from saturation: between an idle network and Poisson arrivals of this load at each link of the path (M/D/1).
    load, links = 0.2, 5
    found, experiment = point(load, "minimal", {})
    frame = Network.of(experiment).frames(quantity(experiment["workload"]["size"]))[0]
    wait = load / (2 * (1 - load)) * serialization(frame, quantity(topology["link_rate"]))
    most = found.ideal + links * wait
    case.add("uniform, load 0.2, minimal: mean latency; idle to idle + 5 waits of M/D/1", f"{found.ideal / 1e6:.3f} to {most / 1e6:.3f} us",
             f"{found.mean / 1e6:.3f} us", f"{(found.mean - found.ideal) / wait:+.2f} waits", found.ideal <= found.mean <= most)

    # Beyond saturation the accepted load is the load that the global links carry.
    most_accepted = bounds(group, g)
    accepted = {}
    for name in ways:
        accepted[name] = point(0.6, name, {"workload.group": group, "workload.shift": 1})[0].accepted
        bound = most_accepted[name]
        least = 0.8 * max(accepted["minimal"], accepted.get("Valiant", 0))
        case.add(f"group to next group, load 0.6, {name}: accepted", f"{least:.3f} to {bound:.3f}", f"{accepted[name]:.3f}",
                 f"{100 * (accepted[name] / bound - 1):+.0f} %", least <= accepted[name] <= bound * 1.02)
    heavy = 0.8
    for name in ("minimal", "UGAL-G"):
        found = point(heavy, name, {})[0].accepted
        case.add(f"uniform, load {heavy}, {name}: accepted", f"≥ {0.95 * heavy:.3f}", f"{found:.3f}", f"{100 * (found / heavy - 1):+.1f} %",
                 found >= 0.95 * heavy)
