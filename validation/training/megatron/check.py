# SPDX-License-Identifier: GPL-2.0-only
import os

from oracles.published_steps import KORTHIKANTI, NARAYANAN, mean_error, predict, right_order

SOURCE = "Narayanan et al. 2021, table 1; Korthikanti et al. 2022, table 5"
# The rows that take seconds. WEFT_ALL_ROWS=1 prints all of them, in a quarter of an hour.
SMALL = {"1.7B", "3.6B", "7.5B", "18B", "39B", "76B", "22B", "175B"}
# Errors of Calculon (Isaev et al., SC'23) with its own A100 file: mean of all ten rows and of all eight.
CALCULON = {"Narayanan": 10.3, "Korthikanti": 3.65}
PACKETS = {"network": {"fidelity": "packet", "mtu": "32 KiB", "window": "8 MiB"}}


def check(case):
    every = "WEFT_ALL_ROWS" in os.environ
    for authors, table in (("Narayanan", NARAYANAN), ("Korthikanti", KORTHIKANTI)):
        points = []
        for one in table:
            if every or one.name in SMALL:
                # A straight line from p and 2p micro-batches; 76B is run in full, and held to its line below.
                seconds = predict(case, one, most=28)
                points.append((one.seconds, seconds))
                if every:
                    print(f"{authors} {one.name} {one.method}: published {one.seconds:.3f} s, predicted {seconds:.3f} s")
        name = f"steps of {authors} et al., {len(points)} of {len(table)} rows"
        # Every row is predicted too fast; see README.md.
        error = f"{mean_error(points):.1f} %"
        case.compare(f"{name}: mean absolute error, beside Calculon's of all rows", f"{CALCULON[authors]} %", error, error)
        case.compare(f"{name}: pairs in the right order", "100 %", f"{right_order(points):.1f} %",
                     f"{right_order(points) - 100:+.1f} %")

    whole = next(one for one in NARAYANAN if one.name == "76B")
    line = predict(case, whole, most=1)
    case.within("76B: 28 micro-batches against the line through 4 and 8", [(line, 1e-3 * line, predict(case, whole))], "s")
    # What packets, their queues and their ACKs add where tensor ranks share a server, and where data-parallel rings share
    # the network.
    ideal = {"network": {**PACKETS["network"], "fidelity": "ideal"}}
    added = []
    for one in (KORTHIKANTI[0], NARAYANAN[0]):
        added.append(100 * (predict(case, one, **PACKETS) / predict(case, one, **ideal) - 1))
    case.within("22B in a server, 1.7B on 32 GPUs: packet by packet against ideal", [(0, 0.1, one) for one in added], "%", 3)
