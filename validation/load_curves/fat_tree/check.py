# SPDX-License-Identifier: GPL-2.0-only
from open_loop import changes_of, measure

SOURCE = "bandwidth of links; Hopps 2000 (ECMP)"
LENGTH = 60 * 10**6  # ps


def accepted(case, balancing, load, more):
    run, experiment = case.run(changes_of(load, LENGTH, {"network.load_balancing": balancing, **more}))
    return measure(run, experiment, load, LENGTH).accepted


def check(case):
    permutation, heavy = {"workload.pattern": "permutation"}, 0.8
    for balancing in ("spray", "adaptive"):
        found = accepted(case, balancing, heavy, permutation)
        case.add(f"permutation, load {heavy}, {balancing}: accepted", f"≥ {0.95 * heavy:.3f}", f"{found:.3f}",
                 f"{100 * (found / heavy - 1):+.1f} %", found >= 0.95 * heavy)  # fmt: skip
    # With one path per flow two flows share a link somewhere, and less load is accepted.
    found = accepted(case, "ecmp", heavy, permutation)
    case.add(f"permutation, load {heavy}, ecmp: accepted; less than that", f"< {0.95 * heavy:.3f}", f"{found:.3f}",
             f"{100 * (found / heavy - 1):+.1f} %", found < 0.95 * heavy)  # fmt: skip
