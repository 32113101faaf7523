#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""The longer form of this case: all 320 hosts, flows of web searches and of Hadoop, with and without incasts. Prints the 50th, 95th
and 99th percentile of the slowdown by tenths of the flows. It takes some minutes on one core.

long.py [SIZES LOAD LENGTH-IN-MS INCAST(0 or 1) ALGORITHM...]     one experiment; the program is $WEFT, or build/weft"""

import os
import pathlib
import sys
import tempfile

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1])]
import check  # noqa: E402
from harness import Case  # noqa: E402

PODS = 5
EXPERIMENTS = [("hadoop", 0.5, 4, False), ("hadoop", 0.3, 8, True), ("web_search", 0.3, 15, False), ("web_search", 0.5, 15, False)]


def show(case, name, sizes, load, length, incast):
    size, slowdown = check.measure(case, name, sizes, load, PODS, length, incast)
    print(f"{name}: {sizes}, load {load:.0%}{', incasts' if incast else ''}, {length} ms, {len(size):,} flows", flush=True)
    order = np.argsort(size, kind="stable")
    for part in np.array_split(order, 10):
        values = np.percentile(slowdown[part], (50, 95, 99))
        print(f"  up to {size[part].max():>9,} B  " + "  ".join(f"{value:7.2f}" for value in values), flush=True)


def main(words):
    chosen = [(words[0], float(words[1]), float(words[2]), words[3] == "1")] if words else EXPERIMENTS
    weft = os.environ.get("WEFT", str(HERE.parents[2] / "build" / "weft"))
    with tempfile.TemporaryDirectory() as scratch, Case(HERE, HERE.parents[1], weft, scratch, check) as case:
        for sizes, load, length, incast in chosen:
            for name in words[4:] or check.ALGORITHMS:
                show(case, name, sizes, load, length, incast)


if __name__ == "__main__":
    main(sys.argv[1:])
