# SPDX-License-Identifier: GPL-2.0-only
"""All rows of all published sets: predicted beside measured, with errors, order and the peers' figures."""

import concurrent.futures
import os
import pathlib
import sys
import tempfile
import time
import types

from harness import Case
from oracles.sensitivity import CONSTANTS, sensitivity
from oracles.training_sets import FOLDER, sets, summary, table_of

# Rows of one set are experiments of that case; Megatron's on A100s are those of another one.
CASE = types.SimpleNamespace(SOURCE="", EXPERIMENT="validation/training/megatron/experiment.yaml")


def predict_all(names, weft, short, jobs):
    """{set: (facts, [(row, seconds or the complaint)])}"""
    chosen = [name for name in sets() if not names or any(part in name for part in names)]
    tables = {name: table_of(name) for name in chosen}
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        running = {name: [(row, pool.submit(one, row, weft)) for row in rows if row.short or not short]
                   for name, (_, rows) in tables.items()}  # fmt: skip
        return {name: (tables[name][0], [(row, future.result()) for row, future in futures])
                for name, futures in running.items()}  # fmt: skip


def case_of(weft, scratch):
    return Case(FOLDER, FOLDER.parents[1], weft, scratch, CASE)


def one(row, weft):
    """The predicted seconds, or what weft says against the plan."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="weft-published-") as scratch:
        case = case_of(weft, scratch)
        try:
            found = row.run(case)
        except RuntimeError as error:
            found = str(error).strip().splitlines()[-1]
    print(f"{row.name}: {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)
    return found


def line(name, published, predicted, error, peer):
    return f"  {name:<44} {published:>10} {predicted:>10} {error:>8} {peer:>9}".rstrip()


def print_set(name, facts, rows):
    """Gives the points (published, predicted)."""
    print(f"{facts['name']}: {facts['source']}")
    print(f"  {facts['hardware']}")
    for assumption in facts["assumptions"]:
        print(f"  assumed: {assumption}")
    if "not_expressed" in facts:
        print(f"  not expressed: {facts['not_expressed']}")
    print(line("", "measured", "predicted", "error", facts.get("peer", "")))
    points = []
    for row, found in rows:
        if isinstance(found, str):
            print(line(row.name, f"{row.published:.3f} s", "-", "-", row.peer) + f"  {found}")
            continue
        points.append((row.published, found))
        error = 100 * (found / row.published - 1)
        print(line(row.name, f"{row.published:.3f} s", f"{found:.3f} s", f"{error:+.1f} %", row.peer))
    if points:
        mean, worst, order = summary(points)
        print(f"  {len(points)} of {len(rows)} rows: mean absolute error {mean:.1f} %, largest {worst:+.1f} %, "
              f"{order:.1f} % of pairs in the right order\n")  # fmt: skip
    return points


def draw(path, points_of):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(7, 7), layout="constrained")
    every = [value for points in points_of.values() for point in points for value in point]
    ends = [0.8 * min(every), 1.25 * max(every)]
    axis.plot(ends, ends, color="grey", linewidth=0.8)
    axis.fill_between(ends, [0.9 * end for end in ends], [1.1 * end for end in ends], color="grey", alpha=0.15,
                      label="within 10 %")  # fmt: skip
    for name, points in points_of.items():
        if points:
            axis.scatter(*zip(*points), s=14, label=f"{name}: {summary(points)[0]:.1f} %")
    axis.set(xscale="log", yscale="log", xlim=ends, ylim=ends, xlabel="measured step (s)", ylabel="predicted step (s)")
    axis.legend(fontsize=8)
    axis.grid(alpha=0.3)
    figure.savefig(path)


def moved_by(changes):
    """Constants that move a row by 0.1 % and more, those first that move it most."""
    ordered = sorted(changes.items(), key=lambda item: -max(map(abs, item[1])))
    return ", ".join(f"{name} {slow:+.1f} {fast:+.1f}" for name, (slow, fast) in ordered if max(abs(slow), abs(fast)) >= 0.1)


def intervals(names, weft):
    """How far each constant moves the rows of some seconds."""
    print("changes of the step with each constant at its slow and fast end, in %, the largest first; the interval is of all "
          "together")
    for number, (constant, (_, _, low, high, why)) in enumerate(CONSTANTS.items(), 1):
        print(f"  {number} {constant}: x {low:g} and x {high:g}: {why}")
    for name in sets():
        if names and not any(part in name for part in names):
            continue
        facts, rows = table_of(name)
        print(facts["name"])
        for row in rows:
            if not row.short:
                continue
            with tempfile.TemporaryDirectory(prefix="weft-published-") as scratch:
                middle, changes, fast, slow = sensitivity(row, case_of(weft, scratch))
            inside = "inside" if fast <= row.published <= slow else "outside"
            print(f"  {row.name:<36} {row.published:.3f} s {inside} {fast:.3f} to {slow:.3f} s, {middle:.3f} s; {moved_by(changes)}")
    return 0


def report(names, weft, drawing, short):
    """0, or 1 if a plan could not be run."""
    predicted = predict_all(names, pathlib.Path(weft), short, min(4, len(os.sched_getaffinity(0))))
    if not predicted:
        sys.exit(f"scripts/validate: no published set matches {names}; known: {', '.join(sets())}")
    points_of = {facts["name"]: print_set(name, facts, rows) for name, (facts, rows) in predicted.items()}
    if drawing:
        draw(drawing, points_of)
    return int(any(isinstance(found, str) for _, rows in predicted.values() for _, found in rows))
