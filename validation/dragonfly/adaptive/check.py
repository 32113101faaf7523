# SPDX-License-Identifier: GPL-2.0-only
from oracles.wire import Network, quantity, serialization

SOURCE = "Kim, Dally, Scott, Abts 2008"

ROUTINGS = {"minimal": "dragonfly_minimal_lanes", "Valiant": "dragonfly_valiant", "UGAL-L": "dragonfly_ugal",
            "UGAL-G": "dragonfly_ugal_g", "progressive": "dragonfly_progressive"}  # fmt: skip


def throughput(case, routing, workload, messages):
    """Wire bytes of data that each host has sent, over what its link carries in the time of the run."""
    run, experiment = case.run({"network.routing": routing, "workload": {"kind": "traffic", **workload}})
    network = Network.of(experiment)
    wire = messages * network.wire(quantity(workload["size"]))
    return serialization(wire, quantity(experiment["topology"]["link_rate"])) / run.time


def check(case):
    topology = case.experiment["topology"]
    p, a, h = (topology[key] for key in "pah")
    g = a * h + 1
    shift = {"pattern": "permutation", "shift": a * p, "size": "2 MB"}
    adversarial = {name: throughput(case, routing, shift, 1) for name, routing in ROUTINGS.items()}
    everyone = {"pattern": "all_to_all", "size": "32768 B"}
    uniform = {name: throughput(case, routing, everyone, a * p * g - 1) for name, routing in ROUTINGS.items()}

    detours = (g - 2) / (2 * a * p)
    bounds = {name: detours + 1 / (a * p) for name in ROUTINGS}
    bounds |= {"minimal": 1 / (a * p), "Valiant": detours}
    for pattern, found, limit in (("group to next group", adversarial, bounds), ("all-to-all", uniform, dict.fromkeys(ROUTINGS, 1))):
        rows = [(limit[name], found[name]) for name in ROUTINGS]
        case.add(f"{pattern}: throughput of {', '.join(ROUTINGS)}", ", ".join(f"≤ {bound:.3f}" for bound, _ in rows),
                 ", ".join(f"{value:.3f}" for _, value in rows),
                 ", ".join(f"{100 * (value / bound - 1):+.0f} %" for bound, value in rows),
                 all(value <= bound for bound, value in rows))
        better = max(found["minimal"], found["Valiant"])
        for name in ("UGAL-L", "UGAL-G", "progressive"):
            case.add(f"{pattern}: {name} beside the better of minimal and Valiant", f"≥ {0.9 * better:.3f}", f"{found[name]:.3f}",
                     f"{100 * (found[name] / better - 1):+.0f} %", found[name] >= 0.9 * better)
