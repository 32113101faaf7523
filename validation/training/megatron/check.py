# SPDX-License-Identifier: GPL-2.0-only
import os

from oracles.published_steps import KORTHIKANTI, NARAYANAN, PARTS, mean_error, predict, right_order, without

SOURCE = "Narayanan et al. 2021, table 1; Korthikanti et al. 2022, table 5"
# The rows that take seconds. WEFT_ALL_ROWS=1 prints all of them, in half an hour.
SMALL = {"1.7B", "3.6B", "7.5B", "18B", "39B", "76B", "22B", "175B"}
# Errors of Calculon (Isaev et al., SC'23) with its own A100 file: mean of all ten rows and of all eight.
CALCULON = {"Narayanan": 10.3, "Korthikanti": 3.65}
# Of which the parts of the model are taken away one by one.
ABLATED = [one for one in NARAYANAN if one.name in {"1.7B", "18B", "39B"}] + KORTHIKANTI[:2]
PACKETS = {"network": {"fidelity": "packet", "mtu": "32 KiB", "window": "8 MiB", "ack": "none"}}


def check(case):
    every = "WEFT_ALL_ROWS" in os.environ
    for authors, table in (("Narayanan", NARAYANAN), ("Korthikanti", KORTHIKANTI)):
        points = []
        for one in table:
            if every or one.name in SMALL:
                seconds = predict(case, one, most=28)
                points.append((one.seconds, seconds))
                case.compare(f"{authors} et al., {one.name}, {one.method}", f"{one.seconds:.2f} s", f"{seconds:.2f} s",
                             f"{100 * (seconds / one.seconds - 1):+.1f} %")
        name = f"steps of {authors} et al., {len(points)} of {len(table)} rows"
        error = f"{mean_error(points):.1f} %"
        case.compare(f"{name}: mean absolute error, beside Calculon's of all rows", f"{CALCULON[authors]} %", error, error)
        case.compare(f"{name}: pairs in the right order", "100 %", f"{right_order(points):.1f} %",
                     f"{right_order(points) - 100:+.1f} %")
    ablate(case)

    whole = next(one for one in NARAYANAN if one.name == "76B")
    line = predict(case, whole, most=1)
    case.within("76B: 28 micro-batches against the line through 8 and 12", [(line, 1e-3 * line, predict(case, whole))], "s")
    # What packets and their queues add where tensor ranks share a server, and where data-parallel rings share the network.
    # Without ACKs, so that NVLink's answers are counted alike in both.
    ideal = {"network": {**PACKETS["network"], "fidelity": "ideal"}}
    added = []
    for one in (KORTHIKANTI[0], NARAYANAN[0]):
        added.append(100 * (predict(case, one, **PACKETS) / predict(case, one, **ideal) - 1))
    case.within("22B in a server, 1.7B on 32 GPUs: packet by packet against ideal", [(0, 0.1, one) for one in added], "%", 3)


def ablate(case):
    """How much shorter the steps are without each part."""
    whole = [predict(case, one, most=1) for one in ABLATED]
    names = ", ".join(f"{one.name} {one.method}" for one in ABLATED)
    for part in PARTS:
        less = [predict(case, one, most=1, changes=without(case, part, one.framework)) for one in ABLATED]
        shares = [f"{100 * (b / a - 1):+.1f}" for a, b in zip(whole, less, strict=True)]
        mean = sum(100 * (b / a - 1) for a, b in zip(whole, less, strict=True)) / len(whole)
        case.compare(f"{names}: without {part}", "", f"{', '.join(shares)} %", f"{mean:+.1f} %")
