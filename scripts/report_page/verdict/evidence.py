# SPDX-License-Identifier: GPL-2.0-only
"""What a file says about one job: the numbers on which the kinds of verdict decide."""

from functools import cached_property

import numpy as np

from report_page.attribution import CONGESTION, JobParts, category
from report_page.demands import LONG_WAITS, Demands, bytes_of_jobs, queued
from report_page.values import percent, ratio, time_text
from report_page.verdict import registry
from report_page.verdict.blame import Blamed
from report_page.verdict.paths import Paths
from report_page.verdict.stragglers import find_straggler, of_job
from report_page.verdict.thresholds import NOTEWORTHY


def path_of(sums):
    """{category: share} of the critical path."""
    whole, found = sum(time for _, time in sums), {}
    for name, time in sums:
        found[category(name)] = found.get(category(name), 0.0) + ratio(time, whole)
    return found


class Evidence:
    """The numbers of the longest job of a run. `path` is what critical_path() gives."""

    def __init__(self, facts, path):
        self.facts = facts
        # Of several jobs it may be the path of another one.
        self.path = path_of(path["sums"]) if path and len(facts.jobs.names) == 1 else {}
        self.job = self.longest_job()
        self.parts = JobParts(facts.run, facts.jobs, self.job)
        self.demands = Demands(facts, self.job, self.job_time, self.parts)
        self.shares = self.congestion_by_kind()
        self.congested = sum(self.shares.values()) >= NOTEWORTHY or self.bottleneck is not None

    # ---- the job

    def longest_job(self):
        run = self.facts.run
        if not run.has("jobs", "time"):
            return 0
        time = run.column("jobs", "time").astype(np.float64)
        if run.has("jobs", "background"):
            time = np.where(run.column("jobs", "background") != 0, -1, time)
        return int(time.argmax()) if len(time) else 0

    @property
    def several_jobs(self):
        return len(self.facts.jobs.names) > 1

    @property
    def job_name(self):
        return self.facts.jobs.names[self.job]

    @cached_property
    def job_time(self):
        run = self.facts.run
        return float(run.column("jobs", "time")[self.job]) if run.has("jobs", "time") and run.rows("jobs") else run.end

    def whole(self):
        """The job and its time, as the subject of a sentence."""
        return f"{f'job {self.job_name}' if self.several_jobs else 'the run'}, which takes {time_text(self.job_time)}"

    def portion(self, name):
        return f"{time_text(self.parts.share(name) * self.job_time)}, {percent(self.parts.share(name))}"

    def measured(self):
        """What a file without parts says about the job's time."""
        return f"compute {self.portion('compute')}; exposed communication {self.portion('exposed')}"

    def longest_parts(self, least):
        """Categories of the job's time with a share of at least `least`, the longest one first."""
        names = (name for name in self.parts.sums if self.parts.share(name) >= least)
        return sorted(names, key=lambda name: -self.parts.share(name))

    def network_saves(self):
        """What no network can save more of than: a run takes as long as its rank that computes longest."""
        if not self.facts.run.has("ranks", "rank", "compute"):
            return (1 - self.parts.share("compute")) * self.job_time
        return max(self.job_time - float(of_job(self.facts, self.job)[1].max(initial=0)), 0.0)

    # ---- ranks that wait for others

    @cached_property
    def straggler(self):
        return find_straggler(self.facts, self.job)

    def waiting(self):
        """Mean time of ranks that they may have waited for other ranks. Slots are not free at a rank that has not begun,
        and so on at the ranks before it."""
        return self.parts.share("peers", "credits", "exposed", "idle") * self.job_time

    def others_wait(self):
        """Whether there is a straggler, and ranks wait on average for half of the time that it computes longer, or nothing takes
        as long as its compute: in a ring, whose messages go on meanwhile, few waits are seen."""
        return self.straggler is not None and (self.waiting() > self.straggler.late / 2 or self.demands.compute_bounds())

    def for_late_ranks(self):
        """Share of the job's time that its ranks waited for others that had not begun yet."""
        run = self.facts.run
        return ratio(float(run.column("jobs", "waiting")[self.job]), self.job_time) if run.has("jobs", "waiting") else 1.0

    # ---- congestion

    def congestion_by_kind(self):
        """{kind: share}: of the job's time if the file has its parts, otherwise of the time of messages."""
        if self.parts.exact and self.parts.total:
            return {name: self.parts.share(name) for name in CONGESTION}
        return self.of_messages()

    def of_messages(self):
        sums = self.facts.messages.sums
        return {name: ratio(sums[column], sums["duration"]) for name, column in
                (("queueing", "queueing"), ("pause", "paused"), ("retransmission", "retransmission"))}

    @cached_property
    def bottleneck(self):
        """The row of the link that was busy with packets waiting; without ports of hosts and servers, which queue their own
        packets."""
        links, messages = self.facts.links, self.facts.messages
        # A file without rows of messages does not tell by how much they were delayed.
        known = messages.sums["duration"] > 0
        if links.count == 0 or known and ratio(messages.sums["excess"], messages.sums["duration"]) < NOTEWORTHY:
            return None
        found = queued(links)
        return int(np.where(found, links.values["mean_queue"], -1).argmax()) if found.any() else None

    @cached_property
    def worst_congestion(self):
        """The largest kind of congestion; if a job's parts are waits that congestion caused, the kind from messages."""
        shares = self.shares if any(self.shares.values()) else self.of_messages()
        worst = max(shares, key=lambda name: shares[name])
        # Messages that share a slow link queue there behind each other.
        queued_at = self.facts.delays.order[:1] if worst == "queueing" else []
        return registry.by_name("slowed" if queued_at and queued_at[0] == self.slowed else worst)

    @cached_property
    def slowed(self):
        """The row of the link that sent below its rate for longest, if that is much of the run; else None. Of both directions
        of a link the one that caused more delay."""
        slowed, delay = self.facts.slowed, self.facts.delays.of_link
        worst = max(slowed, key=lambda row: (slowed[row][1], delay[row]), default=None)
        return worst if worst is not None and slowed[worst][1] > NOTEWORTHY * self.facts.run.end else None

    def follows(self):
        """Categories of waits that follow from congestion. Where nothing is computed, ranks wait for each other because of the
        network, too, if it delays some of them by much."""
        names = [kind.name for kind in registry.kinds().values() if kind.follows_congestion]
        return [*names, "peers"] if not self.parts.share("compute") and self.delays_some() else names

    def delays_some(self):
        """Whether a link is busy, or some messages are delayed by something else than short queues, of which few are enough."""
        return self.bottleneck is not None or self.worst_congestion.name not in ("queueing", "reordering")

    # ---- links

    @cached_property
    def blamed(self):
        """The link to blame for the worst congestion."""
        return Blamed(self)

    @cached_property
    def paths(self):
        """Other paths for what passes the link to blame."""
        return Paths(self)

    def is_edge(self, row):
        return bool(self.facts.links.of_ends()[row])

    def waits_inside(self, row):
        """Whether packets wait at a link that is none of a host or server: what waits there is what these send or get anyway."""
        return bool(queued(self.facts.links)[row] and not self.is_edge(row))

    def fills(self, row):
        """Whether a link inside the network is busy nearly all the time, so that only less traffic there helps, or more links."""
        return row is not None and not self.is_edge(row) and self.demands.link > 1 - LONG_WAITS

    @cached_property
    def guest(self):
        """The job that has most of what has to pass the busiest link of a host, beside the job of the verdict, and its share; ("", 0)
        if no other job has much of it."""
        if not self.several_jobs:
            return "", 0.0
        sizes = bytes_of_jobs(self.facts, self.demands.edge_row)
        shares = np.delete(sizes, self.job) / max(sizes.sum(), 1)
        if shares.max(initial=0) < LONG_WAITS:
            return "", 0.0
        return str(np.delete(np.array(self.facts.jobs.names, dtype=object), self.job)[shares.argmax()]), float(shares.max())

    # ---- resources that alone take more of the time than what is largest by category

    def link_claims(self, largest):
        """The row of the busiest link, if that alone bounds the run; else None. Congestion is what delays at links, anyway."""
        alone = self.parts.exact and largest not in CONGESTION and self.demands.link_bounds()
        return self.demands.row if alone else None
