# SPDX-License-Identifier: GPL-2.0-only
"""Operations rank by rank, on tracks without overlaps, and their exposed time."""

import heapq

import numpy as np


def rank_by_rank(run, columns=None):
    """(rank, its rows of /operations). The file has them rank by rank: at most one rank is in memory."""
    rank, waiting = None, []
    for block in run.blocks("operations", columns):
        ranks = block["rank"]
        cuts = [0, *(np.flatnonzero(ranks[1:] != ranks[:-1]) + 1).tolist(), len(ranks)]
        for first, last in zip(cuts, cuts[1:]):
            mine = int(ranks[first])
            if waiting and mine != rank:
                yield rank, joined(waiting)
                waiting = []
            rank = mine
            waiting.append({name: values[first:last] for name, values in block.items()})
    if waiting:
        yield rank, joined(waiting)


def joined(blocks):
    return blocks[0] if len(blocks) == 1 else {name: np.concatenate([b[name] for b in blocks]) for name in blocks[0]}


class Lanes:
    """Tracks of slices that come in ascending order of their start: each goes to the first track that is free."""

    def __init__(self):
        self.free, self.busy, self.count = [], [], 0

    def place(self, start, end):
        while self.busy and self.busy[0][0] <= start:
            heapq.heappush(self.free, heapq.heappop(self.busy)[1])
        if self.free:
            lane = heapq.heappop(self.free)
        else:
            lane = self.count
            self.count += 1
        heapq.heappush(self.busy, (end, lane))
        return lane


def lanes_of(starts, ends):
    """The track of each of the slices, which may be in any order."""
    lanes, found = Lanes(), [0] * len(starts)
    for i in sorted(range(len(starts)), key=lambda i: (starts[i], ends[i], i)):
        found[i] = lanes.place(starts[i], ends[i])
    return found


def union(starts, ends):
    """Intervals that may overlap, in any order, as ascending ones that do not: (starts, ends)."""
    order = np.argsort(starts, kind="stable")
    starts, reach = starts[order], np.maximum.accumulate(ends[order])
    begins = np.concatenate(([True], starts[1:] > reach[:-1]))
    lasts = np.concatenate((np.flatnonzero(begins)[1:] - 1, [len(starts) - 1]))
    return starts[begins], reach[lasts]


def covered_until(times, starts, ends):
    """The time that the intervals of a union cover from the beginning until each of `times`."""
    before = np.concatenate(([0], np.cumsum(ends - starts)))
    index = np.searchsorted(starts, times, side="right")
    last = np.maximum(index - 1, 0)
    inside = np.where(index > 0, np.minimum(times, ends[last]) - starts[last], 0)
    return before[last] + inside


def exposed_times(starts, ends, is_compute):
    """For each operation, the time in which no compute operation of the rank runs; 0 for compute operations."""
    if not is_compute.any():
        return ends - starts
    busy = union(starts[is_compute], ends[is_compute])
    hidden = covered_until(ends, *busy) - covered_until(starts, *busy)
    return np.where(is_compute, 0, ends - starts - hidden)


class Exposure:
    """The exposed time of each collective, at the rank where it is largest."""

    def __init__(self):
        self.most = {}

    def add(self, rows):
        """Takes the operations of one rank; returns the exposed time of each."""
        exposed = exposed_times(rows["start"], rows["end"], rows["kind"] == 0).tolist()
        for collective, time in zip(rows["collective"].tolist(), exposed):
            if collective >= 0:
                self.most[collective] = max(self.most.get(collective, 0), time)
        return exposed

    def as_json(self, collective):
        return f', "exposed_ps": {self.most[collective]}' if collective in self.most else ""
