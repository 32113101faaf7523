# SPDX-License-Identifier: GPL-2.0-only
"""What single resources take of a job's time. A run is at least as long as its busiest resource is busy, so that all else
together can save no more than the rest: the bottleneck law of operational analysis (Denning, Buzen 1978,
doi:10.1145/356733.356735). Means over ranks hide that resource, because ranks wait for each other and not for it."""

import numpy as np

from report_page.attribution import CONGESTION, PREFIX, category, part_columns

# A link that is busy for a smaller share may be so because of what else is slow.
BUSY = 0.5
# Shares that differ by less are called equal.
ABOUT = 0.01
# This number of packets waits on average at a link with a queue while it is busy.
WAITING_PACKETS = 4
# Evenly spaced slices represent larger tables of messages.
SAMPLE = 1 << 20
# From this share of a job's time on, waits are worth an advice.
LONG_WAITS = 0.1


def queued(links):
    """True for links that were busy with packets waiting; not for ports of hosts and servers, which queue their own packets."""
    used, packets = links.values["utilization"], np.maximum(links.values["packets"], 1)
    waiting = links.values["mean_queue"] / np.maximum(used, 1e-9) / np.maximum(links.values["bytes"] / packets, 1)
    return (used >= BUSY) & (waiting >= WAITING_PACKETS) & ~links.queues_own()


def needed(facts):
    """The share of each link's payload that has to pass it: at a host's links what queue pairs were given, without what was sent again
    for packets that had arrived, or that were thrown away after a loss. Of other links it is not known, and 1."""
    run, links = facts.run, facts.links
    share = np.ones(links.count)
    if not run.has("queue_pairs", "host", "destination", "bytes") or not run.has("links", "payload_bytes"):
        return share
    source, destination, given = (column.astype(np.int64) for column in run.columns("queue_pairs", "host", "destination", "bytes"))
    payload = run.column("links", "payload_bytes").astype(np.float64)
    for at_host, nodes, ends in ((links.leaves_host(), links.source, source), (links.reaches_host(), links.target, destination)):
        nodes, size = nodes.astype(np.int64), int(max(nodes.max(initial=0), ends.max(initial=0))) + 1
        due = np.bincount(ends, weights=given, minlength=size)
        carried = np.bincount(nodes[at_host], weights=payload[at_host], minlength=size)
        share[at_host] = np.minimum(share, (due / np.maximum(carried, 1))[nodes])[at_host]
    return share


def bytes_of_jobs(facts, row):
    """Bytes of each job's messages that have to pass a link of a host; of evenly spaced messages where there are many."""
    run, links, jobs = facts.run, facts.links, facts.jobs
    totals = np.zeros(len(jobs.names))
    if not run.has("messages", "source", "destination", "bytes") or not run.has("ranks", "rank", "node") or run.rows("ranks") == 0:
        return totals
    rank, node = (column.astype(np.int64) for column in run.columns("ranks", "rank", "node"))
    host = np.full(int(rank.max()) + 1, -1)
    host[rank] = node
    end, place = ("destination", links.target[row]) if links.reaches_host()[row] else ("source", links.source[row])
    for block in run.blocks("messages", ["source", "destination", "bytes"], SAMPLE):
        there = host[block[end]] == place
        totals += np.bincount(jobs.of_rank(block["source"][there]), weights=block["bytes"][there], minlength=len(totals))
    return totals


def crossing_time(links, rows):
    """How long what passes some links takes if it is spread evenly over all of them, in ps."""
    return float((links.values["busy"][rows] * links.values["rate"][rows]).sum() / links.values["rate"][rows].sum())


def busiest_crossing(links):
    """(ps, rows) of the links between a switch of hosts and those above it, in one direction, that what goes up there, or comes down,
    keeps busy for longest, however it is spread over them. Above are nodes that are farther from hosts. Whatever the
    hosts of a switch send to others passes these links on all paths of a tree, if they have no other switch. Those of
    dragonflies and tori have none above."""
    inside, longest, found = ~links.of_ends(), 0.0, None
    leaves = links.only_switches()
    for lower, upper in ((links.from_node, links.to_node), (links.to_node, links.from_node)):
        rises = np.flatnonzero(inside & leaves[lower] & (links.tiers[upper] > links.tiers[lower]) & (links.values["rate"] > 0))
        rises = rises[np.argsort(lower[rises], kind="stable")]
        for rows in np.split(rises, np.flatnonzero(np.diff(lower[rises])) + 1):
            if len(rows) and (time := crossing_time(links, rows)) > longest:
                longest, found = time, rows
    return longest, found


class Demands:
    """Shares of the time of one job: `link` of the busiest link, whose row is `row`, with what has to pass it; `carries` with all that
    it carried; `edge` of the busiest link of a host or server,
    `edge_row`, over which no placement of others and no routing leads less; `crossing` of the links `crossing_rows` between one switch
    and those above it, where the job is the only one; `compute` of the rank that computes
    longest, `slowest`; `host` of the host that launches longest, that of rank `launching`; `local`, the mean of all lanes
    that launch and handle; `window`, of the `rank` that waits longest for acknowledgements, for a share `waits`, what its
    queue pairs send or wait for these."""

    def __init__(self, facts, job, time, parts):
        run = facts.run
        self.local = parts.share("local")
        self.needed = needed(facts) if facts.links.count else np.ones(0)
        every = np.ones(facts.links.count, dtype=bool)
        self.carries = self.busiest(facts, job, time, every, every)[1]
        self.row, self.link = self.busiest(facts, job, time, every, self.needed)
        self.edge_row, self.edge = self.busiest(facts, job, time, facts.links.of_ends(), self.needed)
        self.crossing, self.crossing_rows = 0.0, None
        # What was lost on its way has passed them twice.
        if facts.links.count and time > 0 and len(facts.jobs.names) == 1 and not facts.links.missing().any():
            longest, self.crossing_rows = busiest_crossing(facts.links)
            self.crossing = min(longest / time, 1.0)
        self.compute = self.host = self.window = self.waits = 0.0
        self.rank = self.slowest = self.launching = -1
        if run.has("ranks", "rank", "compute") and time > 0:
            rank, compute = run.columns("ranks", "rank", "compute")
            mine = facts.jobs.of_rank(rank.astype(np.int64)) == job
            if mine.any():
                self.compute, self.slowest = self.longest(rank[mine], compute[mine], time)
                if run.has("ranks", "host"):
                    self.host, self.launching = self.longest(rank[mine], run.column("ranks", "host")[mine], time)
            self.find_window(run, rank, mine, time)

    @staticmethod
    def longest(rank, times, time):
        """(share of `time`, rank) of the longest one."""
        return float(times.max()) / time, int(rank[times.argmax()])

    def busiest(self, facts, job, time, counts, share):
        links = facts.links
        if not counts.any() or time <= 0:
            return None, 0.0
        used = np.where(counts, links.values["busy"] * share / time, 0)
        # Of several jobs others may have busier links.
        mine = facts.delays.waiting[:, job] > 0
        used = np.where(mine, used, 0) if len(facts.jobs.names) > 1 and mine.any() else used
        # Of links that are about as busy the one for which messages waited.
        row = int(np.where(used >= used.max() - ABOUT, facts.delays.of_link, -1).argmax())
        return row, min(float(used[row]), 1.0)

    def find_window(self, run, rank, mine, time):
        """A queue pair that waits for acknowledgements sends a window in each round trip, whatever the rates of links are.
        Queues make the round trip longer by as much as its packets wait there; if that is half of its waits, the queues
        are the cause."""
        sums = {}
        for name in part_columns(run, "ranks"):
            kind = category(name.removeprefix(PREFIX))
            sums[kind] = sums.get(kind, 0) + run.column("ranks", name)[mine].astype(np.float64) / time
        if "window" not in sums or len(sums["window"]) == 0:
            return
        place = int(sums["window"].argmax())
        waits = float(sums["window"][place])
        delays = float(sum(sums.get(kind, 0) for kind in CONGESTION).max())
        if waits >= LONG_WAITS and delays < waits / 2:
            self.rank, self.waits = int(rank[mine][place]), waits
            self.window = min(sum(float(sums[kind][place]) for kind in ("window", "transfer", "sending") if kind in sums), 1.0)

    def window_bounds(self):
        return self.window > max(self.carries, self.compute, self.host, self.local) and self.window_saves() >= LONG_WAITS

    def window_saves(self):
        """A larger window saves no more than the waits, nor more than the rest beside the busiest resource."""
        return min(self.waits, 1 - max(self.carries, self.compute, self.host, self.local))

    def edge_bounds(self):
        """Whether congestion cannot be what costs the time: without it, a link of a host or server would be as busy."""
        return self.edge > 1 - LONG_WAITS and self.edge > max(self.compute, self.host, self.local)

    def network_saves(self):
        """What no better use of the same links saves more of: what a host sends and receives takes its link as long as before."""
        return 1 - max(self.edge, self.compute, self.host)

    def paths_save(self):
        """What other paths and other congestion control save at most, where ranks stay where they are."""
        return min(self.network_saves(), 1 - self.crossing)

    def crossing_bounds(self):
        """Whether more links between these switches would save more than other paths and congestion control."""
        return self.crossing >= BUSY and self.crossing > max(self.edge, self.compute, self.host, self.local)

    def link_bounds(self):
        return self.link >= BUSY and self.link > max(self.compute, self.host, self.local)

    def compute_bounds(self):
        return self.compute >= BUSY and self.compute > max(self.link, self.host, self.local)

    def host_bounds(self):
        return self.host >= BUSY and self.host > max(self.link, self.compute, self.local)

    def host_saves(self):
        """Fewer launches save no more than the rest beside the busiest other resource."""
        return 1 - max(self.link, self.compute, self.local)
