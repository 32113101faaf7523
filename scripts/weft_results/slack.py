# SPDX-License-Identifier: GPL-2.0-only
"""Slack of the operations of a packet run: the additional time that each could have taken without making the run longer,
all else unchanged. It is the total float of the critical path method (Kelley and Walker 1959,
doi:10.1145/1460299.1460318) on the graph of all waits: /dependencies within a rank, messages between a send and its
recv, and calls of collectives.

A call ends a fixed time after its last rank arrives, so that a rank may arrive as late as the last one. Data that an
early rank could send before is not counted. Operations on the critical path never have slack. Those of background jobs,
for which the run does not wait, have PLENTY, and are not in the tables."""

import numpy as np

from weft_results import critical_path

END, START = 0, 1  # kinds of /dependencies; those above are ends, too
COLLECTIVE, SEND, RECV = 1, 2, 3
NEEDED = {"operations": ["message"], "dependencies": ["rank", "operation", "after", "kind"]}
MAX_OPERATIONS = 3_000_000  # they are processed in a minute
PLENTY = np.iinfo(np.int64).max


class Graph:
    """Operations by their rows, and their waits."""

    def __init__(self, run):
        columns = run.table("operations", ["rank", "operation", "start", "end", "kind", "collective", "message"])
        self.start, self.end = columns["start"].tolist(), columns["end"].tolist()
        self.counts = critical_path.determines_end(run, columns["rank"]).tolist()
        self.kind = columns["kind"].tolist()
        self.after_end, self.after_start = edges(run, columns)
        self.calls = calls(columns)
        self.delivered = deliveries(run, columns)
        self.recv_of = {message: row for message, row, kind in
                        zip(columns["message"].tolist(), range(len(self.kind)), self.kind)
                        if kind == RECV and message >= 0}
        self.message = columns["message"].tolist()
        self.collective = columns["collective"].tolist()
        # Backwards in time; at the same time later operations of the program first, and the end of one before its
        # start.
        rows = np.arange(len(self.kind))
        times = np.concatenate([columns["start"], columns["end"]])
        numbers = np.concatenate([columns["operation"], columns["operation"]]).astype(np.int64)
        is_end = np.repeat([0, 1], len(rows))
        order = np.lexsort((-is_end, -numbers, -times))
        self.events = list(zip(np.concatenate([rows, rows])[order].tolist(), is_end[order].tolist()))


def edges(run, operations):
    """{row: rows that wait for its end}, {row: rows that wait for its start}."""
    ends, starts = {}, {}
    keys = operations["rank"].astype(np.uint64) << np.uint64(48) | operations["operation"].astype(np.uint64)
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    for block in run.blocks("dependencies", NEEDED["dependencies"]):
        ranks = block["rank"].astype(np.uint64) << np.uint64(48)
        found = [np.searchsorted(keys, ranks | block[name].astype(np.uint64)) for name in ("after", "operation")]
        # An operation that had not ended when the run did has no row.
        known = np.ones(len(ranks), dtype=bool)
        for places, name in zip(found, ("after", "operation")):
            places[places == len(keys)] = 0
            known &= keys[places] == (ranks | block[name].astype(np.uint64))
        for before, waiting, kind in zip(order[found[0][known]].tolist(), order[found[1][known]].tolist(),
                                         block["kind"][known].tolist()):
            (starts if kind == START else ends).setdefault(before, []).append(waiting)
    return ends, starts


def calls(operations):
    """{collective: rows of its operations}"""
    found = {}
    for row in np.flatnonzero(operations["collective"] >= 0).tolist():
        found.setdefault(int(operations["collective"][row]), []).append(row)
    return {number: Call(rows, operations) for number, rows in found.items()}


class Call:
    """One collective: arrival and end of each rank, and the slack of the ends."""

    def __init__(self, rows, operations):
        self.place = {row: place for place, row in enumerate(rows)}
        self.starts, self.ends = operations["start"][rows], operations["end"][rows]
        in_order = np.sort(self.starts)
        # Arrival of the last rank that an end can have waited for.
        self.last = in_order[np.searchsorted(in_order, self.ends, side="right") - 1]
        self.slack = np.full(len(rows), PLENTY, dtype=np.int64)
        self.together = bool(in_order[-1] <= self.ends.min())
        self.least = PLENTY

    def end(self, row, slack):
        self.slack[self.place[row]] = slack
        self.least = min(self.least, slack)

    def start(self, start):
        """The additional time by which a rank that arrived at `start` may arrive later."""
        if self.together:
            return self.least + max(0, int(self.last[0]) - start) if self.least < PLENTY else PLENTY
        reached = (self.ends >= start) & (self.slack < PLENTY)
        if not reached.any():
            return PLENTY
        return int((self.slack[reached] + np.maximum(0, self.last[reached] - start)).min())


def deliveries(run, operations):
    """{message: time of delivery} of messages that operations sent or received."""
    wanted = np.unique(operations["message"][operations["message"] >= 0])
    found = {}
    for block in run.blocks("messages", ["id", "delivered"]):
        some = np.isin(block["id"].astype(np.int64), wanted)
        found.update(zip(block["id"][some].tolist(), block["delivered"][some].tolist()))
    return found


class Relaxation:
    """Slack of all starts and ends, backwards from the end of the run."""

    def __init__(self, graph, path):
        self.graph, self.path = graph, path
        self.last = max(end for end, counts in zip(graph.end, graph.counts) if counts)
        self.starts, self.ends = [PLENTY] * len(graph.start), [PLENTY] * len(graph.start)

    def solve(self):
        """One pass is enough unless operations without duration wait for each other at the same time."""
        changed = True
        while changed:
            changed = False
            for row, is_end in self.graph.events:
                of = self.ends if is_end else self.starts
                slack = self.of_end(row) if is_end else self.of_start(row)
                changed = changed or slack < of[row]
                of[row] = min(of[row], slack)
                if is_end and self.graph.kind[row] == COLLECTIVE:
                    self.graph.calls[self.graph.collective[row]].end(row, of[row])
        return self

    def of_end(self, row):
        if row in self.path.ends:
            return 0
        if not self.graph.counts[row]:
            return PLENTY
        end = self.graph.end[row]
        return min([self.last - end] + [self.graph.start[next_one] - end + self.starts[next_one]
                                        for next_one in self.graph.after_end.get(row, [])])

    def of_start(self, row):
        if row in self.path.starts:
            return 0
        if not self.graph.counts[row]:
            return PLENTY
        start, kind, slack = self.graph.start[row], self.graph.kind[row], self.ends[row]
        if kind == COLLECTIVE:
            slack = self.graph.calls[self.graph.collective[row]].start(start)
        elif kind == RECV:
            slack += max(0, self.graph.delivered.get(self.graph.message[row], start) - start)
        elif kind == SEND:
            slack = min(slack, self.of_message(self.graph.message[row]))
        return min([slack] + [self.graph.start[next_one] - start + self.starts[next_one]
                              for next_one in self.graph.after_start.get(row, [])])

    def of_operation(self, row):
        """A send that takes longer delivers its message later, as much as it ends later."""
        slack = self.ends[row]
        return min(slack, self.of_message(self.graph.message[row])) if self.graph.kind[row] == SEND else slack

    def of_message(self, message):
        """The additional time by which a message may be delivered later: it may wait for its recv, or end it."""
        recv = self.graph.recv_of.get(message)
        if recv is None:
            return PLENTY
        delivered = self.graph.delivered.get(message, self.graph.end[recv])
        return self.ends[recv] + max(0, self.graph.start[recv] - delivered)


def missing(run):
    """The reason why a file has no slack, as text; None if it has."""
    if not all(run.has(table, *columns) for table, columns in NEEDED.items()):
        return critical_path.missing(run) or critical_path.HOW
    if run.rows("operations") > MAX_OPERATIONS:
        return f"has {run.rows('operations')} operations; slack of at most {MAX_OPERATIONS} can be found"
    return critical_path.missing(run)


def slack(run):
    """int64 array: ps, by row of /operations, the additional time that each could have taken; ResultsError if the file
    lacks the necessary data."""
    reason = missing(run)
    if reason is not None:
        raise run.error(reason)
    if run.rows("operations") == 0:
        return np.zeros(0, dtype=np.int64)
    path = critical_path.Walk(run)
    path.all()
    solved = Relaxation(Graph(run), path).solve()
    return np.array([solved.of_operation(row) for row in range(len(solved.ends))], dtype=np.int64)


def of_ranks(run, slacks):
    """[{rank, slack, label}]: for each rank the compute operation with the least slack, the least slack first."""
    columns = run.table("operations", ["rank", "kind", "label"])
    computes = np.flatnonzero((columns["kind"] == critical_path.COMPUTE)
                              & critical_path.determines_end(run, columns["rank"]))
    order = computes[np.lexsort((computes, slacks[computes], columns["rank"][computes]))]
    ranks, first = np.unique(columns["rank"][order], return_index=True)
    found = [{"rank": int(rank), "slack": int(slacks[row]), "label": str(columns["label"][row])}
             for rank, row in zip(ranks, order[first])]
    return sorted(found, key=lambda one: (one["slack"], one["rank"]))


def of_communication(run, slacks):
    """[{name, calls, critical, least, median}] by group, or by label without its numbers where there is no group:
    collectives, by the rank whose slack is least, and sends."""
    columns = run.table("operations", ["rank", "kind", "collective", "label", "group"])
    least = {}
    for row in np.flatnonzero(((columns["kind"] == COLLECTIVE) | (columns["kind"] == SEND))
                              & critical_path.determines_end(run, columns["rank"])).tolist():
        name = str(columns["group"][row]) or without_numbers(str(columns["label"][row])) or "communication"
        call = int(columns["collective"][row])
        key = call if call >= 0 else (row,)
        of_name = least.setdefault(name, {})
        of_name[key] = min(of_name.get(key, PLENTY), int(slacks[row]))
    found = [{"name": name, "calls": len(of_name), "critical": sum(value == 0 for value in of_name.values()),
              "min": min(of_name.values()), "median": int(np.median(list(of_name.values())))}
             for name, of_name in least.items()]
    return sorted(found, key=lambda one: (one["min"], -one["critical"], one["name"]))


def without_numbers(label):
    return " ".join(word for word in label.split() if not word.isdigit())
