# SPDX-License-Identifier: GPL-2.0-only
"""Links ranked by the delay that they caused, with who shared them; the critical path."""

import numpy as np

from report_page.series import when
from report_page.values import plain, ratio

MOST = 20
MOST_STEPS = 2000


def column_like(names, *patterns):
    """The first column whose name holds one of the patterns, in the order of the patterns."""
    return next((name for pattern in patterns for name in names if pattern in name), None)


class LinkWaits:
    """The table /link_waits: at which link packets of which job waited behind those of which other job. Which of its
    columns is which follows from names and units."""

    def __init__(self, run, links, jobs):
        names = run.names("link_waits")
        self.jobs = max(len(jobs.names), 1)
        self.matrix = None
        link = column_like(names, "link")
        front = column_like([name for name in names if run.unit("link_waits", name) != "ps"], "front", "behind",
                            "ahead", "block", "other", "by_job", "caus")
        waiting = column_like([name for name in names if name not in (link, front)
                               and run.unit("link_waits", name) != "ps"], "wait", "job")
        times = [name for name in names if run.unit("link_waits", name) == "ps"]
        time = column_like(times, "wait", "time", "delay") or next(iter(times), None)
        if None in (link, front, waiting, time):
            return
        self.matrix = np.zeros((links.count, self.jobs, self.jobs))
        for block in run.blocks("link_waits", [link, front, waiting, time]):
            rows = links.rows_of(block[link])
            there = rows >= 0
            first, second = jobs.place(block[waiting][there]), jobs.place(block[front][there])
            keys = (rows[there] * self.jobs + first) * self.jobs + second
            flat = self.matrix.reshape(-1)
            flat += np.bincount(keys, weights=block[time][there], minlength=flat.size)

    @property
    def there(self):
        return self.matrix is not None and bool(self.matrix.any())


class Delays:
    """Delay caused by each link, from /link_waits, else from the links that messages name as slow."""

    def __init__(self, run, links, jobs, messages):
        waits = LinkWaits(run, links, jobs)
        self.links, self.jobs, self.messages, self.end = links, jobs, messages, run.end
        self.source = "link_waits" if waits.there else "messages"
        self.pairs = waits.matrix if waits.there else None
        self.waiting = waits.matrix.sum(axis=2) if waits.there else messages.waits * messages.scale
        self.of_link = self.waiting.sum(axis=1)
        self.total = float(self.of_link.sum())
        self.order = [int(row) for row in np.argsort(-self.of_link, kind="stable") if self.of_link[row] > 0]

    def shares(self, values):
        total = values.sum()
        return [[self.jobs.names[i], ratio(values[i], total)] for i in np.argsort(-values, kind="stable")
                if values[i] > 0]

    def row(self, row):
        begin, end = when(self.messages.waits_over_time[row])
        peak, used = self.links.values["peak_queue"][row], self.links.values["utilization"][row]
        return {
            "id": int(self.links.id[row]), "name": self.links.name(row), "class": str(self.links.link_class[row]),
            "delay": float(self.of_link[row]), "share": ratio(self.of_link[row], self.total),
            "waiting": self.shares(self.waiting[row]),
            "front": self.shares(self.pairs[row].sum(axis=0)) if self.pairs is not None else [],
            "from": begin * self.end, "to": end * self.end, "peak_queue": float(peak), "utilization": float(used),
        }

    def table(self):
        return {"source": self.source, "total": self.total, "links": len(self.order),
                "rows": [self.row(row) for row in self.order[:MOST]]}


def critical_path(run):
    """The table /critical_path as it is, and its time by kind."""
    names = run.names("critical_path")
    rows = run.rows("critical_path") if names else 0
    if rows == 0:
        return None
    shown = slice(0, MOST_STEPS)
    units = [run.unit("critical_path", name) for name in names]
    columns = {name: run.column("critical_path", name, shown) for name in names}
    cells = [[plain(columns[name][i]) for name in names] for i in range(min(rows, MOST_STEPS))]
    return {"rows": rows, "columns": names, "units": units, "cells": cells, "sums": sums_by_kind(run, names)}


def sums_by_kind(run, names):
    """[[kind, picoseconds]] with most first, if the table has kinds and durations."""
    kind = column_like(names, "kind", "what", "category", "type")
    if kind is None:
        return []
    sums = {}
    duration = column_like([name for name in names if run.unit("critical_path", name) == "ps"], "time", "duration",
                           "length")
    needed = [kind, duration] if duration else [kind, "start", "end"]
    if not run.has("critical_path", *needed):
        return []
    for block in run.blocks("critical_path", needed):
        times = block[duration] if duration else block["end"] - block["start"]
        for name, value in zip(block[kind].tolist(), times.tolist()):
            sums[str(plain(name))] = sums.get(str(plain(name)), 0) + value
    return sorted(([name, float(value)] for name, value in sums.items()), key=lambda pair: (-pair[1], pair[0]))
