# SPDX-License-Identifier: GPL-2.0-only
"""Where the time went: columns `part_*` of jobs, ranks and collectives, or other columns in a file without them."""

import re

import numpy as np

from report_page.values import bytes_text, packed

PREFIX = "part_"
MAX_ROWS = 16_384
# Categories of parts: the first pattern that the name of a part contains.
CATEGORIES = (("compute", "compute"), ("slowed", "slowed"), ("peer|straggl", "peers"), ("retrans|repeat|loss|lost", "retransmission"),
              ("reorder", "reordering"),
              ("paus", "pause"), ("launch|local|handl|overhead", "local"), ("exposed|communic", "exposed"),
              ("window|acknowl", "window"), ("sending", "sending"), ("nic|ahead|own", "own"),
              ("credit|buffer", "credits"),
              ("queue", "queueing"), ("pac|congestion|rate", "pacing"), ("transfer|ideal|wire|seriali", "transfer"),
              ("host", "host"), ("idle|bubble", "idle"), ("wait", "peers"))
# Times that others on the network, or faults of links, add to messages.
CONGESTION = ("queueing", "pause", "retransmission", "reordering", "pacing", "slowed")
# In the order of bars: work, the network, its consequences, others, nothing.
TITLES = {
    "compute": "compute", "exposed": "exposed communication", "local": "launch and local handling",
    "transfer": "transfer as on an idle network", "slowed": "transfer over links slower than they should be", "queueing": "queueing", "pause": "pause",
    "retransmission": "retransmission", "reordering": "waiting for packets that others overtook",
    "pacing": "pacing by congestion control",
    "sending": "sending messages of its own", "window": "waiting for acknowledgements",
    "own": "waiting behind other messages of the sender",
    "credits": "waiting for free slots at receivers", "peers": "waiting for peers", "host": "waiting for the host", "other": "other",
    "idle": "idle time",
}

# Columns of files without those of parts.
SIMPLE = ("compute", "exposed", "waiting", "idle")


def category(part):
    return next((name for pattern, name in CATEGORIES if re.search(pattern, part)), "other")


def part_columns(run, table):
    return [name for name in run.names(table) if name.startswith(PREFIX)]


def parts_of(run, table, fallback=()):
    """(names of parts, rows x parts). Without part columns those of `fallback`."""
    parts = part_columns(run, table)
    names = parts or [name for name in fallback if run.has(table, name)]
    if not names or run.rows(table) == 0:
        return [], np.zeros((0, 0))
    order = list(TITLES)
    names = sorted(names, key=lambda name: (order.index(category(name.removeprefix(PREFIX))), name))
    columns = {name: run.column(table, name).astype(np.float64) for name in names}
    if not parts and {"exposed", "waiting"} <= columns.keys():
        columns["exposed"] -= columns["waiting"]  # of which it is a part
    values = np.column_stack([columns[name] for name in names])
    return [name.removeprefix(PREFIX) for name in names], np.maximum(values, 0)  # -1: the sum was too large


def bars(kind, names, values, labels, owners=None, whole=None):
    """Stacked bars; `owners` is the group of each row, if rows are combined; `whole`: the number of ranks whose times a
    row adds up, by which the page divides."""
    data = {"kind": kind, "whole": whole or [1] * len(values),
            "parts": [{"name": name, "category": category(name)} for name in names],
            "rows": len(values), "labels": labels, "values": packed(values, "float64")}
    return data | ({"owner": packed(owners, "uint32")} if owners is not None else {})


def of_collectives(run, collectives):
    names, values = parts_of(run, "collectives")
    if not names or not collectives.there:
        return None
    titles = [collectives.title(group) for group in range(len(collectives.keys))]
    several = len(collectives.jobs.names) > 1
    groups = [f"{title['job'] + ': ' if several else ''}{title['kind']}, {title['ranks']} ranks, "
              f"{bytes_text(title['bytes'])}" for title in titles]
    # The longest ones, if there are more than the page holds.
    rows = np.sort(np.argsort(-collectives.time, kind="stable")[:MAX_ROWS])
    labels = [f"#{number} {label}" for number, label in zip(collectives.id[rows], collectives.label[rows])]
    return bars("collectives", names, values[rows], labels, collectives.group[rows]) | {"groups": groups,
                                                                                       "total": len(values)}


def ranks_of_jobs(run):
    """Parts of a job are sums over its ranks; without them there are means of its ranks."""
    return run.column("jobs", "ranks").tolist() if part_columns(run, "jobs") and run.has("jobs", "ranks") else None


def attribution(run, jobs, collectives):
    found = []
    names, values = parts_of(run, "jobs", SIMPLE)
    if names:
        found.append(bars("jobs", names, values, jobs.names, whole=ranks_of_jobs(run)) | {"total": len(values)})
    names, values = parts_of(run, "ranks", SIMPLE)
    if names and run.has("ranks", "rank"):
        labels = [f"rank {rank}" for rank in run.column("ranks", "rank")[:MAX_ROWS].tolist()]
        found.append(bars("ranks", names, values[:MAX_ROWS], labels) | {"total": len(values)})
    return [*found, *filter(None, [of_collectives(run, collectives)])]


class JobParts:
    """The time of one job by category, as shares; from the jobs, otherwise from the ranks."""

    def __init__(self, run, jobs, job):
        self.exact = True
        names, values = parts_of(run, "jobs")
        rows = np.arange(len(values)) == job
        if not names:
            self.exact = bool(part_columns(run, "ranks"))
            names, values = parts_of(run, "ranks", SIMPLE)
            rows = jobs.of_rank(run.column("ranks", "rank").astype(np.int64)) == job if names else rows
        sums = values[rows].sum(axis=0) if names else np.zeros(0)
        self.sums = {}
        for name, value in zip(names, sums):
            self.sums[category(name)] = self.sums.get(category(name), 0.0) + float(value)
        self.total = sum(self.sums.values())

    def share(self, *categories):
        return sum(self.sums.get(name, 0.0) for name in categories) / self.total if self.total else 0.0
