# SPDX-License-Identifier: GPL-2.0-only
from oracles.training_sets import read, sets, summary, table_of

SOURCE = "llm-foundry; torchtitan; NVIDIA/dgxc-benchmarking; AMD"
EXPERIMENT = "validation/training/megatron/experiment.yaml"
# Their rows are in training/megatron.
ELSEWHERE = {"narayanan_2021", "korthikanti_2022"}


def check(case):
    """The rows that take some seconds; `scripts/validate --published` runs all of them."""
    for name in sets():
        if name in ELSEWHERE:
            continue
        points, by_default = [], []
        rows = table_of(name)[1]
        for row in rows:
            if not row.short:
                continue
            seconds = row.run(case)
            points.append((row.published, seconds))
            if row.run_by_default:
                by_default.append((seconds, 0.02 * seconds, row.run_by_default(case)))
            case.compare(f"{read(name)['name']}: {row.name}", f"{row.published:.3f} s", f"{seconds:.3f} s",
                         f"{100 * (seconds / row.published - 1):+.1f} %")  # fmt: skip
        if points:
            # Who names no algorithm gets the same steps, within what the two descriptions of NCCL differ by.
            if by_default:
                case.within(f"{read(name)['name']}: with the default of collectives", by_default, "s")
            mean, worst, _ = summary(points)
            case.compare(f"{read(name)['name']}: {len(points)} of {len(rows)} rows: mean absolute error, largest", "",
                         f"{mean:.1f} %, {worst:+.1f} %", f"{mean:.1f} %")  # fmt: skip
