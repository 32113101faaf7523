# SPDX-License-Identifier: GPL-2.0-only
import csv

import numpy as np

SOURCE = "EleutherAI/cookbook 27dff48d, ed090e98"
SERIES = {"wide": "n of 51,136 to 51,200", "narrow": "n of 130 to 240", "scores": "head sizes of 128 to 510, scores",
          "values": "the same, scores times values"}  # fmt: skip
FITTED, OTHERS = 15, 10  # percent


def measured(case):
    with open(case.folder / "measured.csv", encoding="utf-8") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def side_of(row):
    return int(row["k" if row["series"] == "scores" else "n"])


def slowdown(rows, seconds, aligned):
    """Geometric mean of the time for each FLOP over that of shapes whose rows are aligned to 32 B and more."""
    each = {side_of(row): time / side_of(row) for row, time in zip(rows, seconds, strict=True)}
    whole = sorted(side for side in each if side % 16 == 0)
    chosen = [side for side in each if aligned(side)]
    return float(np.exp(np.mean([np.log(each[side] / np.interp(side, whole, [each[one] for one in whole])) for side in chosen]))), len(chosen)


def check(case):
    for series, what in SERIES.items():
        rows = [row for row in measured(case) if row["series"] == series]
        shapes = [{key: int(row[key]) for key in ("m", "n", "k", "count")} for row in rows]
        run, _ = case.run({"workload.operations": [{"rank": 0, "compute": {**shape, "precision": "fp16"}} for shape in shapes]})
        ours = (run.operations["end"] - run.operations["start"]) * 1e-12
        flops = np.array([2.0 * shape["m"] * shape["n"] * shape["k"] * shape["count"] for shape in shapes])
        theirs = flops / np.array([float(row["tflops"]) * 1e12 for row in rows])
        fitted = series in ("wide", "narrow")
        kinds = {"2 B": lambda side: side % 2 == 1, "4 and 8 B": lambda side: side % 2 == 0 and side % 8, "16 B": lambda side: side % 16 == 8}
        for rows_at, aligned in kinds.items():
            expected, number = slowdown(rows, theirs, aligned) if any(aligned(side_of(row)) for row in rows) else (0, 0)
            if number == 0:
                continue
            found, _ = slowdown(rows, ours, aligned)
            limit = expected * (FITTED if fitted else OTHERS) / 100
            case.within(f"{what}: times as long with rows at {rows_at}, {number} shapes{'' if fitted else ', not fitted to'}",
                        [(expected, limit, found)], "", 2)  # fmt: skip
        error = 100 * (ours / theirs - 1)
        case.compare(f"{what}: mean error of all {len(rows)} times", "no limit", f"{np.mean(np.abs(error)):.1f} %",
                     f"{np.mean(error):+.1f} % with its sign")  # fmt: skip
