# SPDX-License-Identifier: GPL-2.0-only
from oracles.training_sets import read, sets, summary, table_of

SOURCE = "llm-foundry; torchtitan"
EXPERIMENT = "validation/training/megatron/experiment.yaml"
# Their rows are in training/megatron.
ELSEWHERE = {"narayanan_2021", "korthikanti_2022"}


def check(case):
    """The rows that take some seconds; `scripts/validate --published` runs all of them."""
    for name in sets():
        if name in ELSEWHERE:
            continue
        points = []
        rows = table_of(name)[1]
        for row in rows:
            if not row.short:
                continue
            seconds = row.run(case)
            points.append((row.published, seconds))
            case.compare(f"{read(name)['name']}: {row.name}", f"{row.published:.3f} s", f"{seconds:.3f} s",
                         f"{100 * (seconds / row.published - 1):+.1f} %")  # fmt: skip
        if points:
            mean, worst, _ = summary(points)
            case.compare(f"{read(name)['name']}: {len(points)} of {len(rows)} rows: mean absolute error, largest", "",
                         f"{mean:.1f} %, {worst:+.1f} %", f"{mean:.1f} %")  # fmt: skip
