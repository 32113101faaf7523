# SPDX-License-Identifier: GPL-2.0-only
"""Links ranked by the delay that they caused, with the jobs that shared them; the critical path."""

import numpy as np

import weft_results
from report_page.series import when
from report_page.values import percent, ratio
from weft_results import critical_path as follow
from weft_results import pauses, slack, slowed_links

MOST = 20
MAX_STEPS = 500
MAX_MESSAGES = 2_000_000  # of a run whose critical path is followed: this takes seconds


def column_like(names, *patterns):
    """The first column whose name contains one of the patterns, in the order of the patterns."""
    return next((name for pattern in patterns for name in names if pattern in name), None)


class LinkWaits:
    """The table /link_waits: for each link, the job whose packets waited, and the job whose packets were in front. The
    roles of its columns follow from names and units. Unknown jobs, -1, come after all others."""

    def __init__(self, run, links, jobs):
        self.jobs = jobs
        names = run.names("link_waits")
        ids = [name for name in names if run.unit("link_waits", name) == "id"]
        times = [name for name in names if run.unit("link_waits", name) == "ps"]
        link = column_like(ids, "link")
        front = column_like(ids, "ahead", "front", "behind", "block", "other", "caus")
        waiting = column_like([name for name in ids if name not in (link, front)], "wait", "job")
        time = column_like(times, "wait", "time", "delay")
        self.there = None not in (link, front, waiting, time)
        if not self.there:
            return
        self.waiting, self.front = (np.zeros((links.count, len(jobs.names) + 1)) for _ in range(2))
        self.first, self.last = np.full(links.count, run.end), np.zeros(links.count, dtype=np.int64)
        span = ["first", "last"] if "first" in times and "last" in times else []
        for block in run.blocks("link_waits", [link, front, waiting, time, *span]):
            self.add(links.rows_of(block[link]), block, (waiting, front), time, span)
        self.there = bool(self.waiting.any())

    def add(self, rows, block, names, time, span):
        there = rows >= 0
        for table, name in zip((self.waiting, self.front), names):
            np.add.at(table, (rows[there], self.places(block[name][there])), block[time][there])
        if span:
            np.minimum.at(self.first, rows[there], block["first"][there])
            np.maximum.at(self.last, rows[there], block["last"][there])

    def places(self, numbers):
        known = np.isin(numbers, self.jobs.numbers)
        return np.where(known, self.jobs.place(numbers), len(self.jobs.names))


class Delays:
    """Delay caused by each link, from /link_waits, otherwise from the links that messages name as slow."""

    def __init__(self, run, links, jobs, messages):
        waits = LinkWaits(run, links, jobs)
        self.links, self.jobs, self.messages, self.end = links, jobs, messages, run.end
        self.source = "link_waits" if waits.there else "messages"
        self.waits = waits if waits.there else None
        self.waiting = waits.waiting if waits.there else messages.waits * messages.scale
        self.of_link = self.waiting.sum(axis=1)
        self.total = float(self.of_link.sum())
        self.order = [int(row) for row in np.argsort(-self.of_link, kind="stable") if self.of_link[row] > 0]

    def shares(self, values):
        total = values.sum()
        names = [*self.jobs.names, "no job or several"]
        return [[names[i], ratio(values[i], total)] for i in np.argsort(-values, kind="stable")
                if values[i] > 0]

    def span(self, row):
        """(begin, end) of most of the waiting, or of all of it."""
        over_time = self.messages.waits_over_time[row]
        if not over_time.any() and self.waits is not None and self.waits.last[row]:
            return int(self.waits.first[row]), int(self.waits.last[row])
        return tuple(share * self.end for share in when(over_time))

    def row(self, row):
        begin, end = self.span(row)
        peak, used = self.links.values["peak_queue"][row], self.links.values["utilization"][row]
        return {
            "id": int(self.links.id[row]), "name": self.links.name(row), "class": str(self.links.link_class[row]),
            "delay": float(self.of_link[row]), "share": ratio(self.of_link[row], self.total),
            "waiting": self.shares(self.waiting[row]),
            "front": self.shares(self.waits.front[row]) if self.waits is not None else [],
            "from": begin, "to": end, "peak_queue": float(peak), "utilization": float(used),
        }

    def table(self):
        return {"source": self.source, "total": self.total, "links": len(self.order),
                "rows": [self.row(row) for row in self.order[:MOST]]}


def stops(run, links):
    """For each link, ps for which flow control stopped links whose chain of stops begins there."""
    found = np.zeros(links.count)
    with weft_results.open(run.path) as results:
        for link, time in pauses.times_of_roots(results).items():
            found[links.rows_of(np.array([link]))] = time
    return found


def slowed(run, links):
    """{row: (bit/s at which the link sent on average, ps by which that took longer)} of links whose rate the experiment
    lowers."""
    with weft_results.open(run.path) as results:
        found = slowed_links.slowed_links(results)
    rows = links.rows_of(np.array(list(found), dtype=np.int64))
    return {int(row): value for row, value in zip(rows, found.values()) if row >= 0}


def critical_path(run):
    """The longest stretches of the critical path, in order of time, and its time by kind; None if the file lacks the
    necessary data, or has too many messages for a page that must be ready in seconds."""
    if run.rows("messages") > MAX_MESSAGES:
        return None
    with weft_results.open(run.path) as results:
        if follow.missing(results) is not None:
            return None
        steps = follow.critical_path(results)
        slacks = slacks_of(results)
    stretches = follow.stretches(follow.by_operation(steps))
    longest = sorted(range(len(stretches)), key=lambda i: (stretches[i]["start"] - stretches[i]["end"], i))[:MAX_STEPS]
    return {"rows": len(stretches), "columns": ["start", "time", "what", "ranks", "messages", "mostly"],
            "units": ["ps", "ps", "text", "text", "1", "text"],
            "cells": [cells_of(stretches[i]) for i in sorted(longest)],
            "sums": [[kind, float(time)] for kind, time in follow.sums(steps).items()], "slack": slacks}


def slacks_of(results):
    """[[what, count, without slack, least ps]] of communication by group and of the ranks' compute; [] if the file
    lacks the necessary data."""
    if slack.missing(results) is not None:
        return []
    found = slack.slack(results)
    ranks = slack.of_ranks(results, found)
    rows = [[one["name"], one["calls"], one["critical"], one["min"], one["median"]]
            for one in slack.of_communication(results, found)[:MAX_STEPS]]
    if ranks:
        times = sorted(one["slack"] for one in ranks)
        rows.insert(0, ["compute, by rank", len(ranks), sum(time == 0 for time in times), times[0],
                        times[(len(times) - 1) // 2]])
    return rows


def cells_of(stretch):
    time = stretch["end"] - stretch["start"]
    ranks = ", ".join(str(rank) for rank in stretch["ranks"][:4]) + (", ..." if len(stretch["ranks"]) > 4 else "")
    mostly = ", ".join(f"{name} {percent(part / time)}" for name, part in list(stretch["sums"].items())[:3])
    return [stretch["start"], time, follow.name_of(stretch), ranks, stretch["messages"], mostly]
