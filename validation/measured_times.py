# SPDX-License-Identifier: GPL-2.0-only
"""Published times of a collective, measured on a machine, beside ours: reported, not checked."""

import csv

from oracles.wire import quantity

LARGE = 64 << 20  # bytes; from this size on packets are larger, and fewer


def larger_packets(network, times=8):
    """Changes of an experiment: packets with the same overhead per byte."""
    return {f"network.{field}": f"{times * quantity(network[field])} B" for field in ("mtu", "header", "wire_overhead")}


def named(size, units=(" GiB", " MiB", " KiB")):
    """A readable size, in the largest unit of which it has at least one."""
    return next((f"{size >> shift}{unit}" for shift, unit in zip((30, 20, 10), units, strict=True) if size >> shift), f"{size} B")


def add_times(case, name, measured, ours):
    """A row of times in us, `ours` beside `measured`, in the same order."""
    case.compare(
        name,
        ", ".join(f"{us:g}" for us in measured) + " us",
        ", ".join(f"{us:.4g}" for us in ours) + " us",
        ", ".join(f"{100 * (us / published - 1):+.0f}" for us, published in zip(ours, measured, strict=True)) + " %",
    )


def compare_times(case, name, measured, changes_of):
    """A row of times: `measured` in us by bytes, ours with changes_of(bytes) of the experiment."""
    ours = []
    for size in measured:
        packets = larger_packets(case.experiment["network"]) if size >= LARGE else {}
        ours.append(case.run(changes_of(size) | packets)[0].time / 1e6)
    add_times(case, name, measured.values(), ours)


class Cluster:
    """One collective on one machine, over numbers of GPUs and sizes; `what`: the GPU's name."""

    def __init__(self, case, what):
        self.case, self.what = case, what
        with open(case.folder / "measured.csv", encoding="utf-8") as file:
            self.measured = {(int(row["gpus"]), int(row["bytes"])): float(row["time_us"])
                             for row in csv.DictReader(line for line in file if not line.startswith("#"))}

    def time(self, gpus, size, changes=None):
        """Ours in us, with changes of the experiment."""
        changes = (changes or {}) | {"workload.ranks": gpus, "workload.size": f"{size} B"}
        changes |= larger_packets(self.case.experiment["network"]) if size >= LARGE // 8 else {}
        return self.case.run(changes)[0].time / 1e6

    def add_sizes(self, gpus, sizes):
        """A row of these sizes as the experiment has them; their (measured, ours) by size."""
        pairs = {size: (self.measured[gpus, size], self.time(gpus, size)) for size in sizes}
        add_times(self.case, f"{gpus} {self.what}: all_reduce of {', '.join(map(named, sizes))}",
                  *zip(*pairs.values(), strict=True))
        return pairs

    def add_changes(self, changes):
        """A row for each (size, numbers of GPUs, description of the change, the change)."""
        if not self.case.compares:
            return
        for size, counts, what, change in changes:
            add_times(self.case, f"one change, {named(size)} on {', '.join(map(str, counts))} {self.what}: {what}",
                      [self.measured[gpus, size] for gpus in counts], [self.time(gpus, size, change) for gpus in counts])


def add_errors(case, name, pairs, least=None):
    """A row of errors of (measured, ours) times: mean, sign, largest, and pairs in the right order; not checked."""
    errors = [100 * (ours / measured - 1) for measured, ours in pairs]
    if not errors:
        raise ValueError(f"{case.name}: {name}: nothing to compare")
    mean = sum(map(abs, errors)) / len(errors)
    ordered = [
        (a[0] < b[0]) == (a[1] < b[1]) for i, a in enumerate(pairs) for b in pairs[:i] if a[0] != b[0]
    ]
    order = f", {100 * sum(ordered) / len(ordered):.0f} % of pairs in order" if ordered else ""
    row = (
        f"{name}: mean error of {len(errors)} times",
        "small" if least is None else f"at most {least} %",
        f"{mean:.1f} %, largest {max(errors, key=abs):+.0f} %{order}",
        f"{sum(errors) / len(errors):+.1f} % with its sign",
    )
    if least is None:
        case.compare(*row)
    else:
        case.add(*row, mean <= least)
