# SPDX-License-Identifier: GPL-2.0-only
import copy
import fractions

SOURCE = "definition"


def check(case):
    for factor in ("1.25", "2"):
        rows(case, f"1 ms of computing beside an all-reduce, slower by {factor}", factor,
             {"workload.compute_slowdown_while_communicating": float(factor)})  # fmt: skip
    operations = copy.deepcopy(case.experiment["workload"]["operations"])
    operations[1]["slowdown"] = 1.5  # the others are slower by 1.25
    rows(case, "the same, slower by 1.5 of its own", "1.5", {"workload.operations": operations})


def rows(case, quantity, factor, changes):
    run, _ = case.run(changes)
    length = run.operations["end"] - run.operations["start"]
    pairs = []
    for rank in run.ranks["rank"]:
        mine = run.operations["rank"] == rank
        computing = length[mine & (run.operations["operation"] == 1)][0]
        reducing = int(length[mine & (run.operations["operation"] == 2)][0])
        # A share of 1 - 1 / factor of the time beside the all-reduce is lost; times are rounded up to whole
        # picoseconds.
        lost = reducing * (1 - 1 / fractions.Fraction(factor))
        pairs.append((10**9 + -(-lost.numerator // lost.denominator), computing))
    case.exact_all(quantity, pairs)
