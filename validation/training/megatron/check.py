# SPDX-License-Identifier: GPL-2.0-only
import os
import re

from oracles.published_steps import KORTHIKANTI, NARAYANAN, PARTS, mean_error, predict, right_order, settings, waiting_of, with_slower, without

SECONDS = 80
SOURCE = "Narayanan et al. 2021, table 1; Korthikanti et al. 2022, table 5"
# The rows that take less than a quarter of a minute. WEFT_ALL_ROWS=1 prints all of them.
SMALL = {"1.7B", "3.6B", "7.5B", "18B", "39B", "76B", "22B", "175B", "530B", "1T"}
# Errors of Calculon (Isaev et al., SC'23) with its own A100 file: mean of all ten rows and of all eight.
CALCULON = {"Narayanan": 10.3, "Korthikanti": 3.65}
# Rows for which the parts of the model are removed one by one.
ABLATED = [one for one in NARAYANAN if one.name in {"1.7B", "18B", "39B"}] + KORTHIKANTI[:2]
PACKETS = {"network": {"fidelity": "packet", "mtu": "32 KiB", "window": "8 MiB", "ack": "none"}}


def check(case):
    every = "WEFT_ALL_ROWS" in os.environ
    for authors, table in (("Narayanan", NARAYANAN), ("Korthikanti", KORTHIKANTI)):
        points, roundings = [], []
        for one in table:
            if every or one.name in SMALL:
                seconds = predict(case, one, most=28)
                points.append((one.seconds, seconds))
                roundings.append(one.rounding)
                case.compare(f"{authors} et al., {one.name}, {one.method}", f"{one.seconds:.2f} s", f"{seconds:.2f} s",
                             f"{100 * (seconds / one.seconds - 1):+.1f} %")
        name = f"steps of {authors} et al., {len(points)} of {len(table)} rows"
        error = f"{mean_error(points):.1f} %"
        case.compare(f"{name}: mean absolute error, beside Calculon's of all rows", f"{CALCULON[authors]} %", error, error)
        order = right_order(points, roundings)
        case.compare(f"{name}: pairs in the right order", "100 %", f"{order:.1f} %", f"{order - 100:+.1f} %")
    ablate(case)
    check_layer(case)

    whole = next(one for one in NARAYANAN if one.name == "76B")
    line = predict(case, whole, most=1)
    case.within("76B: 28 micro-batches against the line through 8 and 12", [(line, 1e-3 * line, predict(case, whole))], "s")
    # The time that packets and their queues add where tensor ranks share a server, and where data-parallel rings share the
    # network. Without ACKs, so that NVLink's answers are counted alike in both.
    ideal = {"network": {**PACKETS["network"], "fidelity": "ideal"}}
    added = []
    for one in (KORTHIKANTI[0], NARAYANAN[0]):
        added.append(100 * (predict(case, one, **PACKETS) / predict(case, one, **ideal) - 1))
    case.within("22B in a server, 1.7B on 32 GPUs: packet by packet against ideal", [(0, 0.1, one) for one in added], "%", 3)


# Korthikanti et al., table 4: ms of one layer of 22B forward and backward; `sequence`, and the recomputation.
LAYER = [("no recomputation", False, "none", 7.7, 11.9), ("sequence parallelism", True, "none", 7.2, 11.8),
         ("full recomputation", False, "full", 7.7, 19.5), ("selective recomputation", False, "selective", 7.7, 13.2),
         ("both", True, "selective", 7.2, 13.1)]  # fmt: skip


def layer(case, sequence, recompute):
    """ms of a layer forward and backward, the mean over those between the first and the last one."""
    one = KORTHIKANTI[0]
    changes = settings(case, one, 1, 1) | {"workload.recompute": recompute, "output": {"messages": "none", "operations": True}}
    changes["workload.parallelism"]["sequence"] = sequence
    operations = case.run(with_slower(case, changes, waiting_of(case, one).factor()))[0].operations
    ends = {}  # (backward, block) -> end of its last operation on the device
    for label, phase, rank, end in zip(*(operations[name] for name in ("label", "phase", "rank", "end")), strict=True):
        block = re.search(r" block (\d+) (?!launches)", label)
        if rank == 0 and block:
            key = (phase in ("backward", "recompute"), int(block[1]))
            ends[key] = max(ends.get(key, 0), end)
    last = one.layers - 1
    return ((ends[False, last] - ends[False, 0]) / last * 1e-9, (ends[True, 0] - ends[True, last]) / last * 1e-9)


def check_layer(case):
    for name, sequence, recompute, *published in LAYER:
        ours = layer(case, sequence, recompute)
        errors = [100 * (mine / theirs - 1) for mine, theirs in zip(ours, published, strict=True)]
        case.compare(f"22B, one layer forward and backward, {name} (table 4)", "{:.1f}, {:.1f} ms".format(*published),
                     "{:.1f}, {:.1f} ms".format(*ours), "{:+.0f}, {:+.0f} %".format(*errors))  # fmt: skip


def ablate(case):
    """The amount by which steps are shorter without each part."""
    whole = [predict(case, one, most=1) for one in ABLATED]
    names = ", ".join(f"{one.name} {one.method}" for one in ABLATED)
    for part in PARTS:
        less = [predict(case, one, most=1, changes=without(case, part, one.framework)) for one in ABLATED]
        shares = [f"{100 * (b / a - 1):+.1f}" for a, b in zip(whole, less, strict=True)]
        mean = sum(100 * (b / a - 1) for a, b in zip(whole, less, strict=True)) / len(whole)
        case.compare(f"{names}: without {part}", "", f"{', '.join(shares)} %", f"{mean:+.1f} %")
