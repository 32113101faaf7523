# SPDX-License-Identifier: GPL-2.0-only
"""All rows of all published sets: predicted beside measured, with errors, order and the peers' figures."""

import concurrent.futures
import dataclasses
import pathlib
import sys
import tempfile
import time
import types

from harness import Case
from oracles.gpu_spread import ASSUMPTION
from oracles.published_steps import ordered_pairs
from oracles.sensitivity import CONSTANTS, sensitivity
from oracles.training_sets import FOLDER, sets, summary, table_of

# Rows of a set are experiments of this case; Megatron's on A100s belong to another case.
CASE = types.SimpleNamespace(SOURCE="", EXPERIMENT="validation/training/megatron/experiment.yaml")


def predict_all(names, weft, short, jobs):
    """{set: (facts, [(row, seconds or the error message)])}"""
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
    """The predicted seconds, or weft's error for the plan."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="weft-published-") as scratch, case_of(weft, scratch) as case:
        try:
            found = row.run(case)
        except RuntimeError as error:
            found = str(error).strip().splitlines()[-1]
    print(f"{row.name}: {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)
    return found


def line(name, published, predicted, error, peer):
    return f"  {name:<44} {published:>10} {predicted:>10} {error:>8} {peer:>9}".rstrip()


def print_set(name, facts, rows):
    """Returns the points (published, predicted)."""
    print(f"{facts['name']}: {facts['source']}")
    print(f"  {facts['hardware']}")
    for assumption in [*facts["assumptions"], ASSUMPTION]:
        print(f"  assumed: {assumption}")
    if "not_expressed" in facts:
        print(f"  not expressed: {facts['not_expressed']}")
    print(line("", "measured", "predicted", "error", facts.get("peer", "")))
    points, roundings = [], []
    for row, found in rows:
        if isinstance(found, str):
            print(line(row.name, f"{row.published:.3f} s", "-", "-", row.peer) + f"  {found}")
            continue
        points.append((row.published, found))
        roundings.append(row.rounding)
        error = 100 * (found / row.published - 1)
        print(line(row.name, f"{row.published:.3f} s", f"{found:.3f} s", f"{error:+.1f} %", row.peer))
    if points:
        mean, worst, order = summary(points, roundings)
        left = len(ordered_pairs(points)) - len(ordered_pairs(points, roundings))
        print(f"  {len(points)} of {len(rows)} rows: mean absolute error {mean:.1f} %, largest {worst:+.1f} %, "
              f"{order:.1f} % of pairs in the right order{f', without {left} that rounding leaves open' if left else ''}\n")
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
    """Constants that change a row by 0.1 % or more, those with the largest effect first."""
    ordered = sorted(changes.items(), key=lambda item: -max(map(abs, item[1])))
    return ", ".join(f"{name} {slow:+.1f} {fast:+.1f}" for name, (slow, fast) in ordered if max(abs(slow), abs(fast)) >= 0.1)


@dataclasses.dataclass
class Interval:
    """A row's time as published and as predicted, the interval from all constants together, the effect of each one, and the
    rounding of the source."""

    published: float
    middle: float
    fast: float
    slow: float
    changes: dict  # {constant: (slow end, fast end) in percent}, None where constants are not varied
    rounding: float = 0  # seconds

    @property
    def inside(self):
        return self.fast <= self.published <= self.slow

    def line(self, name):
        if self.changes is None:
            return f"  {name:<44} {self.published:.3f} s, {self.middle:.3f} s"
        inside = "inside" if self.inside else "outside"
        return (f"  {name:<44} {self.published:.3f} s {inside} {self.fast:.3f} to {self.slow:.3f} s, {self.middle:.3f} s; "
                f"{moved_by(self.changes)}")  # fmt: skip


def interval_of(row, weft, varied=True):
    """The Sensitivity of one row, or weft's error for the plan. Not `varied`: only its time."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="weft-published-") as scratch, case_of(weft, scratch) as case:
        try:
            middle, changes, fast, slow = sensitivity(row, case) if varied else fixed(row.run(case))
            found = Interval(row.published, middle, fast, slow, changes, row.rounding)
        except RuntimeError as error:
            found = str(error).strip().splitlines()[-1]
    print(f"{row.name}: {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)
    return found


def fixed(seconds):
    """What sensitivity() gives if no constant is varied."""
    return seconds, None, seconds, seconds


def cells_of(name, found):
    """Cells of a set's line in the table: rows, errors, order, and the number of measured times inside their
    intervals, or dashes if they were not made."""
    known = [one for one in found if isinstance(one, Interval)]
    mean, worst, order = summary([(one.published, one.middle) for one in known], [one.rounding for one in known])
    errors = [name, str(len(known)), f"{mean:.1f} %", f"{worst:+.1f} %", f"{order:.0f} %"]
    if any(one.changes is None for one in known):
        return [*errors, "-", "-", "-", "-"]
    slow, fast = (sum(100 * (getattr(one, end) / one.middle - 1) for one in known) / len(known) for end in ("slow", "fast"))
    short, long = sum(one.published < one.fast for one in known), sum(one.published > one.slow for one in known)
    return [*errors, f"{fast:+.1f} to {slow:+.1f} %", f"{len(known) - short - long} of {len(known)}", str(short), str(long)]


HEADINGS = ["set", "rows", "mean error", "largest", "order", "interval, mean", "measured inside", "faster than it", "slower than it"]
PAGE = FOLDER.parents[2] / "docs" / "reference" / "compute_times.md"
BEGIN = "<!-- scripts/validate --published --sensitivity --update-docs writes this table -->"
END = "<!-- end of the table -->"


def page_with(text, lines):
    """The page's text with the table between its two comments; SystemExit if the comments are missing."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"scripts/validate: {PAGE.name} has no lines '{BEGIN}' and '{END}'")
    table = [HEADINGS, ["---"] * len(HEADINGS), *lines]
    return f"{before}{BEGIN}\n\n" + "\n".join(f"| {' | '.join(cells)} |" for cells in table) + f"\n\n{END}{after}"


def intervals(names, weft, short, jobs, update):
    """Prints the effect of each constant on each row, and the number of measured times inside the interval of all
    constants. 1 if a plan could not be run."""
    chosen = [name for name in sets() if not names or any(part in name for part in names)]
    if not chosen:
        sys.exit(f"scripts/validate: no published set matches {names}; known: {', '.join(sets())}")
    if update:
        page_with(PAGE.read_text(), [])  # ends at once if the place for the table is missing
    print("changes of the step with each constant at its slow and fast end, in %, the largest first; the interval is of all "
          "together")
    for number, (constant, (where, _, low, high, why)) in enumerate(CONSTANTS.items(), 1):
        times = "" if where == "gpus" else "x "
        print(f"  {number} {constant}: {times}{low:g} and {times}{high:g}: {why}")
    lines, refused = [], False
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        tables = {name: table_of(name) for name in chosen}
        running = {name: [(row, pool.submit(interval_of, row, weft, facts.get("intervals", True)))
                          for row in rows if row.short or not short]
                   for name, (facts, rows) in tables.items()}  # fmt: skip
        for name, futures in running.items():
            print(tables[name][0]["name"], flush=True)
            found = []
            for row, future in futures:
                found.append(future.result())
                refused |= isinstance(found[-1], str)
                print(f"  {row.name:<44} - {found[-1]}" if isinstance(found[-1], str) else found[-1].line(row.name), flush=True)
            if any(isinstance(one, Interval) for one in found):
                lines.append(cells_of(tables[name][0]["name"], found))
    print()
    print_table([HEADINGS, *lines])
    if update:
        PAGE.write_text(page_with(PAGE.read_text(), lines))
    return int(refused)


def print_table(table):
    widths = [max(len(cells[column]) for cells in table) for column in range(len(table[0]))]
    for cells in table:
        print("  ".join(cell.ljust(width) for cell, width in zip(cells, widths)).rstrip())


def report(names, weft, drawing, short, jobs):
    """0, or 1 if a plan could not be run."""
    predicted = predict_all(names, pathlib.Path(weft), short, jobs)
    if not predicted:
        sys.exit(f"scripts/validate: no published set matches {names}; known: {', '.join(sets())}")
    points_of = {facts["name"]: print_set(name, facts, rows) for name, (facts, rows) in predicted.items()}
    if drawing:
        draw(drawing, points_of)
    return int(any(isinstance(found, str) for _, rows in predicted.values() for _, found in rows))
