# SPDX-License-Identifier: GPL-2.0-only
from oracles.wire import Network, quantity, serialization

SOURCE = "Shpiner et al. 2017; Kim et al. 2008"

ROUTINGS = {"minimal": "dragonfly_plus_minimal", "Valiant": "dragonfly_plus_valiant", "UGAL-L": "dragonfly_plus_ugal",
            "UGAL-G": "dragonfly_plus_ugal_g", "progressive": "dragonfly_plus_progressive"}  # fmt: skip


def throughput(case, routing, workload, messages):
    """Wire bytes of data that each host has sent, over what its link carries in the time of the run."""
    run, experiment = case.run({"network.routing": routing, "workload": {"kind": "traffic", **workload}})
    network = Network.of(experiment)
    wire = messages * network.wire(quantity(workload["size"]))
    return serialization(wire, quantity(experiment["topology"]["link_rate"])) / run.time


def check(case):
    topology = case.experiment["topology"]
    p, leaves, spines, h = (topology[key] for key in ("p", "leaves", "spines", "h"))
    g, group = spines * h + 1, p * leaves
    shift = {"pattern": "permutation", "shift": group, "size": "1 MB"}
    adversarial = {name: throughput(case, routing, shift, 1) for name, routing in ROUTINGS.items()}
    everyone = {"pattern": "all_to_all", "size": "32768 B"}
    uniform = {name: throughput(case, routing, everyone, group * g - 1) for name, routing in ROUTINGS.items()}

    detours = (g - 2) / (2 * group)
    bounds = {name: detours + 1 / group for name in ROUTINGS} | {"minimal": 1 / group, "Valiant": detours}
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
