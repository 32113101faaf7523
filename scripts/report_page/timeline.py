# SPDX-License-Identifier: GPL-2.0-only
"""The activity of each rank over time: operations in lanes, by phase and by communicator."""

import re

import numpy as np

from report_page.values import classes_of, covered_until, packed

# At most this number of operations are in the page one by one. If there are more, the page has some ranks, and the
# share of all ranks over time.
MAX_OPERATIONS = 120_000
ACTIVITY_BINS = 600
MAX_LANES = 3
KINDS = ("compute", "collective", "send", "receive", "host")
PHASES = ((r"\bforward\b", "forward"), (r"\bbackward\b", "backward"), (r"\boptimi[sz]er\b", "optimizer"),
          (r"\bactivations\b|micro-batch \S+ gradients\b", "pipeline"), (r"\bgrad(ient)?s?\b|\bbucket\b", "gradients"),
          (r"\bparam(eter)?s?\b", "parameters"), (r"\bcheckpoint\b", "checkpoint"), (r"\bgap\b", "gap"))
# A word of digits, as in `all_reduce 3 of group 1`, and the number at the end of a name, but not the shape of a kernel,
# such as 128x64.
COUNTERS = re.compile(r"(?<!\S)[\d.:#]+(?!\S)|(?<!\dx)(?<![\d.:#])[\d.:#]+$")


def phase_of(label, kind):
    """The phase in a label; otherwise the label without the numbers that count calls."""
    for pattern, phase in PHASES:
        if re.search(pattern, label):
            return phase
    return " ".join(COUNTERS.sub("", label).split()) or KINDS[min(kind, len(KINDS) - 1)]


def lanes_of(starts, ends, most=MAX_LANES):
    """A lane for each interval, in order of start: the first free one, or the last one if none is free."""
    if len(starts) == 0 or (starts[1:] >= np.maximum.accumulate(ends)[:-1]).all():
        return np.zeros(len(starts), dtype=np.int64)
    free, lanes = [], np.zeros(len(starts), dtype=np.int64)
    for i, (start, end) in enumerate(zip(starts.tolist(), ends.tolist())):
        lane = next((lane for lane, until in enumerate(free) if until <= start), None)
        if lane is None:
            lane = min(len(free), most - 1)
        if lane == len(free):
            free.append(end)
        free[lane] = max(end, free[lane])
        lanes[i] = lane
    return lanes


class Operations:
    """The part of the table /operations that the page shows one by one."""

    def __init__(self, run, jobs):
        self.run, self.jobs = run, jobs
        self.rank = run.column("operations", "rank").astype(np.int64)
        self.total = len(self.rank)
        self.ranks, self.counts = np.unique(self.rank, return_counts=True)
        self.shown = self.choose()
        self.rows = np.flatnonzero(np.isin(self.rank, self.shown))
        self.start, self.end = (self.read(name).astype(np.int64) for name in ("start", "end"))
        self.kind = self.read("kind").astype(np.int64)
        self.label = self.read("label").astype(str) if run.has("operations", "label") else self.kind_names()
        self.collective = self.read("collective").astype(np.int64) if run.has("operations", "collective") else \
            np.full(len(self.rows), -1)
        self.rank = self.rank[self.rows]

    def choose(self):
        """All ranks, or evenly spaced ones and the last to finish, with as many operations as the page holds."""
        most = int(MAX_OPERATIONS // max(self.counts.mean(), 1)) if self.total else 0
        if self.total <= MAX_OPERATIONS:
            return self.ranks
        places = np.linspace(0, len(self.ranks) - 1, max(most - 1, 1)).round().astype(int)
        last = [self.slowest()] if most > 1 else []
        return np.unique(np.concatenate((self.ranks[places], last)))

    def slowest(self):
        if self.run.has("ranks", "rank", "finished") and self.run.rows("ranks"):
            rank, finished = self.run.columns("ranks", "rank", "finished")
            return int(rank[finished.argmax()])
        return int(self.ranks[-1])

    def read(self, name):
        """Rows of the ranks shown. Ranks are one after the other in the table, so that few slices suffice."""
        if len(self.rows) == self.total:
            return self.run.column("operations", name)
        breaks = np.flatnonzero(np.diff(self.rows) > 1) + 1
        pieces = [piece for piece in np.split(self.rows, breaks) if len(piece)]
        parts = [self.run.column("operations", name, slice(int(piece[0]), int(piece[-1]) + 1)) for piece in pieces]
        return np.concatenate(parts) if parts else np.zeros(0)

    def kind_names(self):
        return np.array(KINDS)[np.minimum(self.kind, len(KINDS) - 1)]

    def names_or(self, column, derive):
        """The column of the file, or values derived from labels and kinds."""
        if not self.run.has("operations", column):
            return derive()
        values = self.read(column)
        if values.dtype.kind not in "OSU":
            return np.array([f"{column} {value}" for value in values])
        values = values.astype(str)
        unknown = (values == "") | (values == "none")
        return np.where(unknown, derive(), values) if unknown.any() else values

    def phases(self):
        unique, inverse = np.unique(self.label, return_inverse=True)
        pairs = np.unique(np.column_stack((inverse, self.kind)), axis=0)
        table = {(a, b): phase_of(str(unique[a]), b) for a, b in pairs.tolist()}
        return np.array([table[pair] for pair in zip(inverse.tolist(), self.kind.tolist())], dtype=object).astype(str)

    def groups(self):
        """Without communicators in the file: collectives of a job, a kind and a number of ranks."""
        names = self.kind_names().astype(object)
        if self.run.has("collectives", "id", "kind", "ranks") and self.run.rows("collectives"):
            number, kind, ranks = self.run.columns("collectives", "id", "kind", "ranks")
            titles = {int(i): f"{k}, {n} ranks" for i, k, n in zip(number, kind, ranks)}
            jobs = self.jobs.of_rank(self.rank)
            several = len(self.jobs.names) > 1
            for i in np.flatnonzero(self.collective >= 0):
                title = titles.get(int(self.collective[i]), "collective")
                names[i] = f"{self.jobs.names[jobs[i]]}: {title}" if several else title
        return names.astype(str)

    def streams(self):
        """(lane of each operation within its rank, names of lanes)."""
        if self.run.has("operations", "stream"):
            values = self.read("stream")
            unique, lanes = np.unique(values, return_inverse=True)
            names = ["without a stream" if value == "none" else str(value) if values.dtype.kind in "OSU" else f"stream {value}"
                     for value in unique]
            order = sorted(range(len(names)), key=lambda i: (names[i] != "compute", i))
            return np.argsort(order)[lanes], [names[i] for i in order]
        lanes = np.zeros(len(self.rank), dtype=np.int64)
        for rank in self.shown:
            mine = np.flatnonzero((self.rank == rank) & (self.kind > 0))
            mine = mine[np.argsort(self.start[mine], kind="stable")]
            lanes[mine] = 1 + lanes_of(self.start[mine], self.end[mine])
        return lanes, ["compute", "communication", *(f"communication {i}" for i in range(2, MAX_LANES + 1))]


def packed_lanes(data):
    """Operations in order of lane and start; `first` has the beginning of each lane."""
    order = np.lexsort((data["start"], data["lane"]))
    lanes, firsts = np.unique(data["lane"][order], return_index=True)
    labels, number = np.unique(data["label"], return_inverse=True)
    return lanes, {
        "first": packed([*firsts, len(order)], "uint32"), "start": packed(data["start"][order], "float64"),
        "length": packed((data["end"] - data["start"])[order], "float64"), "labels": labels.tolist(),
        "label": packed(number[order], "uint32"), "phase": packed(data["phase"][order], "uint8"),
        "group": packed(data["group"][order], "uint8"), "collective": packed(data["collective"][order], "int32"),
        "count": len(order),
    }


def activity(run, ranks, classes):
    """Share of ranks in each kind of work, over time, from all operations of the file."""
    edges = np.linspace(0, run.end, ACTIVITY_BINS + 1)
    sums = np.zeros((len(KINDS), len(edges)))
    for block in run.blocks("operations", ["start", "end", "kind"]):
        for kind in range(len(KINDS)):
            mine = block["kind"] == kind
            if mine.any():
                sums[kind] += covered_until(edges, block["start"][mine].astype(np.float64),
                                            block["end"][mine].astype(np.float64))
    width = max(run.end / ACTIVITY_BINS, 1) * max(ranks, 1)
    return {"names": list(classes), "bins": ACTIVITY_BINS, "values": packed(np.diff(sums) / width, "float32")}


def of_operations(run, jobs):
    operations = Operations(run, jobs)
    phase, phases = classes_of(operations.names_or("phase", operations.phases))
    group, groups = classes_of(operations.names_or("group", operations.groups))
    stream, streams = operations.streams()
    place = np.searchsorted(operations.shown, operations.rank)
    lanes, data = packed_lanes({
        "lane": place * len(streams) + stream, "start": operations.start, "end": operations.end, "phase": phase,
        "group": group, "label": operations.label, "collective": operations.collective})
    names = [[f"rank {operations.shown[lane // len(streams)]}", streams[lane % len(streams)]] for lane in lanes]
    return data | {"source": "operations", "lanes": names, "phases": phases, "groups": groups,
                   "total": operations.total, "ranks": len(operations.ranks), "shown": len(operations.shown),
                   "activity": activity(run, len(operations.ranks), KINDS)}


def of_collectives(run, jobs):
    """Without operations: the collectives of each job."""
    number, job, kind, ranks, label, start, end = run.columns(
        "collectives", "id", "job", "kind", "ranks", "label", "start", "end")
    done = np.flatnonzero((start >= 0) & (end >= start))[:MAX_OPERATIONS]
    done = done[np.lexsort((start[done], job[done]))]
    lane = np.zeros(len(done), dtype=np.int64)
    most = 8
    for one in np.unique(job[done]):
        mine = job[done] == one
        lane[mine] = int(one) * most + lanes_of(start[done][mine], end[done][mine], most)
    labels = label.astype(str)[done]
    phase, phases = classes_of(np.array([phase_of(text, 1) for text in labels], dtype=str))
    group, groups = classes_of(np.array([f"{k}, {n} ranks" for k, n in zip(kind[done], ranks[done])], dtype=str))
    lanes, data = packed_lanes({"lane": lane, "start": start[done], "end": end[done], "phase": phase, "group": group,
                                "label": labels, "collective": number[done].astype(np.int64)})
    names = [[jobs.name_of(value // most), f"collectives {value % most + 1}"] for value in lanes.tolist()]
    return data | {"source": "collectives", "lanes": names, "phases": phases, "groups": groups,
                   "total": run.rows("collectives"), "ranks": 0, "shown": 0, "activity": None}


def timeline(run, jobs):
    if run.has("operations", "rank", "start", "end", "kind") and run.rows("operations"):
        return of_operations(run, jobs)
    needed = ("id", "job", "kind", "ranks", "label", "start", "end")
    if run.has("collectives", *needed) and run.rows("collectives"):
        return of_collectives(run, jobs)
    return None
