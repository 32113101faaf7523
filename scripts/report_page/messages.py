# SPDX-License-Identifier: GPL-2.0-only
"""One pass over the messages: slowdowns by size, and the causes and links of their delays."""

import numpy as np

from report_page.values import bytes_text, packed, ratio

EDGES = (4 << 10, 64 << 10, 1 << 20, 16 << 20)
LOWEST, OCTAVES, STEPS = -6, 32, 512
BINS = 240
POINTS = 240
# With more messages, evenly spaced slices of the table represent all, unless the user wants to wait.
SAMPLE = 1 << 22
REQUIRED = ("bytes", "issued", "delivered", "ideal")
OPTIONAL = ("source", "collective", "queueing", "paused", "retransmission", "slow_link_1", "slow_link_2",
            "slow_link_3", "slow_wait_1", "slow_wait_2", "slow_wait_3")
PERCENTILES = (50, 90, 99, 99.9)


def size_classes():
    texts = [bytes_text(edge) for edge in EDGES]
    return [f"up to {texts[0]}", *(f"{a} to {b}" for a, b in zip(texts, texts[1:])), f"above {texts[-1]}"]


def rates_of_ranks(run, links):
    """bit/s of the fastest link of the host of each rank; 0 if unknown."""
    if not run.has("ranks", "rank", "node") or run.rows("ranks") == 0 or links.count == 0:
        return np.zeros(0)
    rank, node = (column.astype(np.int64) for column in run.columns("ranks", "rank", "node"))
    of_node = np.zeros(max(int(links.source.max()), int(node.max())) + 1)
    np.maximum.at(of_node, links.source.astype(np.int64), links.values["rate"])
    rates = np.zeros(int(rank.max()) + 1)
    rates[rank] = of_node[node]
    return rates


class Messages:
    """Sums and histograms of /messages, which is never in memory as a whole."""

    def __init__(self, run, links, jobs, exact):
        self.rows = run.rows("messages") if run.has("messages", *REQUIRED) else 0
        self.links, self.jobs, self.end = links, jobs, max(run.end, 1)
        self.histogram = np.zeros((len(EDGES) + 1, OCTAVES * STEPS), dtype=np.int64)
        self.largest = np.zeros(len(EDGES) + 1)
        self.total = np.zeros(len(EDGES) + 1)
        self.sums = dict.fromkeys(("duration", "ideal", "excess", "queueing", "paused", "retransmission", "alone", "latency"), 0.0)
        self.rates = rates_of_ranks(run, links)
        self.waits = np.zeros((links.count, max(len(jobs.names), 1)))
        self.waits_over_time = np.zeros((links.count, BINS))
        self.excess_of_collective = np.zeros(0)
        self.seen = 0
        most = None if exact else SAMPLE
        names = [*REQUIRED, *(name for name in OPTIONAL if run.has("messages", name))]
        for block in run.blocks("messages", names, most) if self.rows else ():
            self.add(block)
        self.scale = ratio(self.rows, self.seen)

    @property
    def sampled(self):
        return self.seen < self.rows

    def add(self, block):
        duration = (block["delivered"] - block["issued"]).astype(np.float64)
        ideal = block["ideal"].astype(np.float64)
        excess = np.maximum(duration - ideal, 0)
        self.seen += len(duration)
        self.add_slowdowns(block["bytes"], duration, ideal)
        self.sums["duration"] += duration.sum()
        self.sums["ideal"] += np.minimum(ideal, duration).sum()
        self.sums["excess"] += excess.sum()
        if "source" in block and len(self.rates):
            # On an idle network, and of this the part that no faster links shorten.
            rate = self.rates[np.minimum(block["source"], len(self.rates) - 1)]
            sending = block["bytes"] * 8e12 / np.maximum(rate, 1)
            self.sums["alone"] += ideal[rate > 0].sum()
            self.sums["latency"] += np.maximum(ideal - sending, 0)[rate > 0].sum()
        left = excess.copy()
        for name in ("retransmission", "paused", "queueing"):
            if name in block:
                # Overlapping waits count once, and no more than the delay of the message against an idle network.
                part = np.minimum(block[name], left)
                left -= part
                self.sums[name] += part.sum()
        if "collective" in block:
            self.add_collectives(block["collective"], excess)
        self.add_waits(block, excess)

    def add_slowdowns(self, size, duration, ideal):
        timed = ideal > 0
        slowdown = duration[timed] / ideal[timed]
        place = np.searchsorted(EDGES, size[timed], side="left")
        bins = ((np.log2(np.maximum(slowdown, 1e-9)) - LOWEST) * STEPS).astype(np.int64)
        bins = np.clip(bins, 0, OCTAVES * STEPS - 1)
        flat = self.histogram.ravel()
        flat += np.bincount(place * (OCTAVES * STEPS) + bins, minlength=flat.size)
        self.total += np.bincount(place, weights=slowdown, minlength=len(self.total))
        maximum_of = [slowdown[place == i].max(initial=0) for i in range(len(self.largest))]
        self.largest = np.maximum(self.largest, maximum_of)

    def add_collectives(self, collective, excess):
        of_one = collective >= 0
        if not of_one.any():
            return
        sums = np.bincount(collective[of_one], weights=excess[of_one])
        longer, shorter = (sums, self.excess_of_collective) if len(sums) > len(self.excess_of_collective) else (
            self.excess_of_collective, sums)
        longer[:len(shorter)] += shorter
        self.excess_of_collective = longer

    def add_waits(self, block, excess):
        """Waits of the last packet, which represents its message, but no more than the delay of the message."""
        names = [(f"slow_link_{i}", f"slow_wait_{i}") for i in (1, 2, 3)]
        names = [pair for pair in names if pair[0] in block and pair[1] in block]
        if not names or self.links.count == 0:
            return
        whole = sum(block[wait].astype(np.float64) for _, wait in names)
        share = np.where(whole > 0, np.minimum(excess / np.maximum(whole, 1), 1), 0)
        job = self.jobs.of_rank(block["source"]) if "source" in block else np.zeros(len(excess), np.int64)
        time = np.clip(block["delivered"] * (BINS / self.end), 0, BINS - 1).astype(np.int64)
        for link, wait in names:
            rows = self.links.rows_of(block[link])
            there = rows >= 0
            weights = (block[wait] * share)[there]
            for table, second in ((self.waits, job), (self.waits_over_time, time)):
                keys = rows[there] * table.shape[1] + second[there]
                flat = table.reshape(-1)
                flat += np.bincount(keys, weights=weights, minlength=flat.size)

    def percentiles(self, counts, largest):
        """Percentiles as upper ends of their bins: at most 0.14 % above the true values."""
        below = np.cumsum(counts)
        values = []
        for share in PERCENTILES:
            place = int(np.searchsorted(below, np.ceil(share / 100 * below[-1] - 1e-9)))
            values.append(min(2.0 ** ((place + 1) / STEPS + LOWEST), largest))
        return values

    def slowdown(self):
        if self.seen == 0:
            return None
        groups = [*zip(size_classes(), self.histogram, self.largest, self.total)]
        groups.append(("all", self.histogram.sum(axis=0), self.largest.max(), self.total.sum()))
        curves = [self.curve(*group) for group in groups if group[1].sum()]
        return {"rows": self.rows, "seen": self.seen, "curves": curves}

    def curve(self, name, counts, largest, total):
        filled = np.flatnonzero(counts)
        share = np.cumsum(counts[filled]) / counts.sum()
        chosen = np.unique(np.searchsorted(share, np.linspace(0, 1, POINTS), side="left").clip(0, len(share) - 1))
        values = np.minimum(2.0 ** ((filled[chosen] + 1) / STEPS + LOWEST), largest)
        p50, p90, p99, p999 = self.percentiles(counts, largest)
        return {"name": name, "count": int(counts.sum()), "mean": total / counts.sum(), "p50": p50, "p90": p90,
                "p99": p99, "p999": p999, "max": float(largest), "x": packed(values, "float64"),
                "y": packed(share[chosen], "float64")}

    def congestion(self):
        """Share of the time of messages that queues, pauses and losses have added to the time on an idle network."""
        return ratio(sum(self.sums[name] for name in ("queueing", "paused", "retransmission")), self.sums["duration"])


class Jobs:
    """Jobs by name, and the job of each rank."""

    def __init__(self, run):
        there = run.has("jobs", "job", "name")
        self.numbers = run.column("jobs", "job").astype(np.int64) if there else np.zeros(1, np.int64)
        self.names = [str(name) for name in run.column("jobs", "name")] if there else ["job"]
        self.job_of_rank = np.zeros(1, np.int64)
        if run.has("ranks", "rank", "job") and run.rows("ranks"):
            rank, job = run.columns("ranks", "rank", "job")
            self.job_of_rank = np.zeros(int(rank.max()) + 1, np.int64)
            self.job_of_rank[rank] = self.place(job)

    def place(self, numbers):
        return np.clip(np.searchsorted(self.numbers, numbers), 0, len(self.numbers) - 1)

    def of_rank(self, ranks):
        return self.job_of_rank[np.minimum(ranks, len(self.job_of_rank) - 1)]

    def name_of(self, number):
        found = np.flatnonzero(self.numbers == number)
        return self.names[int(found[0])] if len(found) else f"job {number}"
