# SPDX-License-Identifier: GPL-2.0-only
from open_loop import changes_of, measure
from oracles.wire import Network, quantity, serialization

SOURCE = "Kim et al. 2008"
ROUTINGS = {"minimal": "dragonfly_minimal_lanes", "Valiant": "dragonfly_valiant", "UGAL-L": "dragonfly_ugal", "UGAL-G": "dragonfly_ugal_g"}
LENGTH = 100 * 10**6  # ps


def point(case, routing, load, more):
    run, experiment = case.run(changes_of(load, LENGTH, {"network.routing": routing, **more}))
    return measure(run, experiment, load, LENGTH), experiment


def check(case):
    topology = case.experiment["topology"]
    group = topology["p"] * topology["a"]
    g = topology["a"] * topology["h"] + 1
    next_group = {"workload.group": group, "workload.shift": 1}

    # Far from saturation: between an idle network and Poisson arrivals of this load at each link of the way (M/D/1).
    load, links = 0.2, 5
    found, experiment = point(case, ROUTINGS["minimal"], load, {})
    frame = Network.of(experiment).frames(quantity(experiment["workload"]["size"]))[0]
    wait = load / (2 * (1 - load)) * serialization(frame, quantity(topology["link_rate"]))
    most = found.ideal + links * wait
    case.add("uniform, load 0.2, minimal: mean latency; idle to idle + 5 waits of M/D/1", f"{found.ideal / 1e6:.3f} to {most / 1e6:.3f} us",
             f"{found.mean / 1e6:.3f} us", f"{(found.mean - found.ideal) / wait:+.2f} waits", found.ideal <= found.mean <= most)

    # Beyond saturation the accepted load is what the global links let pass.
    detours = (g - 2) / (2 * group)
    bounds = {"minimal": 1 / group, "Valiant": detours}
    accepted = {}
    for name, routing in ROUTINGS.items():
        accepted[name] = point(case, routing, 0.6, next_group)[0].accepted
        bound = bounds.get(name, detours + 1 / group)
        least = 0.8 * max(accepted["minimal"], accepted.get("Valiant", 0))
        case.add(f"group to next group, load 0.6, {name}: accepted", f"{least:.3f} to {bound:.3f}", f"{accepted[name]:.3f}",
                 f"{100 * (accepted[name] / bound - 1):+.0f} %", least <= accepted[name] <= bound * 1.02)
    heavy = 0.8
    for name in ("minimal", "UGAL-G"):
        found = point(case, ROUTINGS[name], heavy, {})[0].accepted
        case.add(f"uniform, load {heavy}, {name}: accepted", f"≥ {0.95 * heavy:.3f}", f"{found:.3f}", f"{100 * (found / heavy - 1):+.1f} %",
                 found >= 0.95 * heavy)
