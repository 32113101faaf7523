# SPDX-License-Identifier: GPL-2.0-only
from open_loop import changes_of, measure

SOURCE = "Dally, Towles 2004, sections 3.3, 5.2"
LENGTH = 100 * 10**6  # ps


def accepted(case, routing, load, more):
    run, experiment = case.run(changes_of(load, LENGTH, {"network.routing": routing, **more}))
    return measure(run, experiment, load, LENGTH).accepted


def check(case):
    k = case.experiment["topology"]["dims"][1]
    tornado = {"workload.pattern": "permutation", "workload.shift": (k // 2 - 1) * case.experiment["topology"]["dims"][0]}
    bound, heavy = 1 / (k // 2 - 1), 0.8
    for routing in ("dimension_order_lanes", "minimal_adaptive"):
        below, above = (accepted(case, routing, load, tornado) for load in (0.9 * bound, 1.5 * bound))
        case.add(f"tornado, loads 0.3 and 0.5, {routing}: accepted; 1/(k/2 - 1)", f"≥ {0.95 * 0.9 * bound:.3f}, ≤ {bound:.3f}",
                 f"{below:.3f}, {above:.3f}", f"{100 * (below / (0.9 * bound) - 1):+.1f} %, {100 * (above / bound - 1):+.1f} %",
                 below >= 0.95 * 0.9 * bound and above <= 1.005 * bound)  # fmt: skip
        found = accepted(case, routing, heavy, {})
        case.add(f"uniform, load {heavy}, {routing}: accepted", f"≥ {0.95 * heavy:.3f}", f"{found:.3f}",
                 f"{100 * (found / heavy - 1):+.1f} %", found >= 0.95 * heavy)  # fmt: skip
