# SPDX-License-Identifier: GPL-2.0-only
"""The facts of one run for a comparison: sums that do not grow with their tables."""

import re
from functools import cached_property, lru_cache

import numpy as np

from support.own_queues import own_queues
from weft_commands.slices import exposed_times, rank_by_rank
from weft_results import slowed_links

KINDS = ["compute", "collective", "send", "receive", "host"]
MAX_MESSAGES = 10**7  # more are not read
SHARES = [50, 99, 100]
PARTS_TABLES = ["ranks", "collectives", "messages"]


@lru_cache(maxsize=100000)
def without_numbers(label):
    """Operators of all layers and steps are combined: "layer 3 forward" is "layer # forward"."""
    return re.sub(r"\d+", "#", label)


def part_name(column):
    return column.removeprefix("part_").replace("_", " ")


class Facts:
    """One run. Everything is read on demand, and once."""

    def __init__(self, run):
        self.run = run
        run.expect_run()
        if not run.has("jobs", "job", "name", "ranks", "time", "steps", "step_time"):
            raise run.error("it is damaged: it has no table 'jobs' with times")
        if not run.rows("jobs"):
            raise run.error("it is damaged: its table 'jobs' has no rows")

    @cached_property
    def jobs(self):
        """{name: {column: value}}; a repeated name gets its number."""
        table = self.run.table("jobs")
        found = {}
        for row in zip(*(values.tolist() for values in table.values())):
            job = dict(zip(table, row))
            if "waiting" in job and "exposed" in job:  # as the summary of a run has them: the file counts the former in the latter
                job["exposed"] -= job["waiting"]
            if job["step_time"] < 0:  # the run ended before the job
                job["step_time"] = None
            name = job["name"] or f"job {job['job']}"
            found[f"{name} ({job['job']})" if name in found else name] = job
        return found

    def rename_job(self, name, other):
        self.jobs[other] = self.jobs.pop(name)

    @cached_property
    def job_names(self):
        return {job["job"]: name for name, job in self.jobs.items()}

    @cached_property
    def ranks(self):
        """Number of all ranks."""
        return sum(job["ranks"] for job in self.jobs.values())

    @cached_property
    def rank_table(self):
        wanted = ["rank", "job", "compute", "exposed", "idle", "finished"]
        return self.run.table("ranks", wanted) if self.run.has("ranks", *wanted) else None

    @cached_property
    def collectives(self):
        """{(job, group, kind): {calls, time, bytes, algorithms}} of all calls that ended."""
        wanted = ["job", "kind", "algorithm", "time", "bytes"]
        if not self.run.has("collectives", *wanted):
            return {}
        found = {}
        for block in self.run.blocks("collectives", [*wanted, "id"]):
            groups = [self.groups.get(number, "") for number in block["id"].tolist()]
            for row in zip(*(block[name].tolist() for name in wanted), groups):
                self.add_call(found, *row)
        return found

    @cached_property
    def groups(self):
        """{collective: its group, such as "tensor"}, if its operations have one."""
        found = {}
        if self.run.has("operations", "collective", "group"):
            for block in self.run.blocks("operations", ["collective", "group"]):
                found |= zip(block["collective"].tolist(), block["group"].tolist())
        return found

    def add_call(self, found, job, kind, algorithm, time, size, group):
        if time < 0:
            return
        key = self.job_names.get(job, str(job)), group, kind
        mine = found.setdefault(key, {"calls": 0, "time": 0, "bytes": 0, "algorithms": set()})
        mine["calls"] += 1
        mine["time"] += time
        mine["bytes"] += size
        mine["algorithms"].add(algorithm)

    @cached_property
    def calls(self):
        """{(job, label, number of earlier calls with that name): (time, key of `collectives`)} of single calls."""
        found, seen = {}, {}
        wanted = ["job", "label", "time", "kind", "id"]
        if self.run.has("collectives", *wanted):
            for block in self.run.blocks("collectives", wanted):
                for job, label, time, kind, number in zip(*(block[name].tolist() for name in wanted)):
                    name = self.job_names.get(job, str(job))
                    seen[name, label] = seen.get((name, label), 0) + 1
                    if time >= 0:
                        found[name, label, seen[name, label]] = time, (name, self.groups.get(number, ""), kind)
        return found

    @cached_property
    def operators(self):
        """{(job, kind, name): {count, time, exposed}}: sums over all ranks of the job."""
        wanted = ["rank", "operation", "start", "end", "kind", "label", "collective"]
        if not self.run.has("operations", *wanted):
            return {}
        ranks, found = self.rank_table or {}, {}
        jobs = dict(zip(ranks["rank"].tolist(), ranks["job"].tolist())) if ranks else {}
        for rank, rows in rank_by_rank(self.run, wanted):
            job = self.job_names.get(jobs.get(rank, 0), "")
            self.add_operations(found, job, rows)
        return found

    @staticmethod
    def add_operations(found, job, rows):
        exposed = exposed_times(rows["start"], rows["end"], rows["kind"] == 0)
        times = rows["end"] - rows["start"]
        for kind, label, time, open_time in zip(rows["kind"].tolist(), rows["label"].tolist(), times.tolist(),
                                                exposed.tolist()):
            name = KINDS[kind] if kind < len(KINDS) else str(kind)
            mine = found.setdefault((job, name, without_numbers(label)), {"count": 0, "time": 0, "exposed": 0})
            mine["count"] += 1
            mine["time"] += time
            mine["exposed"] += time if kind == 0 else open_time

    @cached_property
    def links(self):
        """{name: {rate, bytes, busy, waiting}} of directions of links; the rate of those that the experiment slows down is
        that at which they sent on average.

        `waiting` is the total time that all data packets waited in front of the link: the time average of bytes in its queue
        gives bytes times the time that each of them waits there (Little 1961), divided by the bytes of a data packet. Bytes of
        ACKs count as such of data packets, so that it is the most where a link carries mostly ACKs. `bytes` are those of messages,
        because an ideal network has no headers and no ACKs. Packets of a host's or server's own do not count as waiting there: on an
        ideal network they wait before they are sent."""
        wanted = ["from_name", "to_name", "from_port", "rate", "payload_bytes", "busy", "id", "bytes", "packets", "data_packets",
                  "mean_queue"]
        if not self.run.has("links", *wanted):
            return {}
        links = self.run.table("links", wanted)
        end = self.run.simulated_time or 0
        # What is not payload, headers and ACKs, is about the same for each packet.
        headers = (links["bytes"] - links["payload_bytes"]) / np.maximum(links["packets"], 1)
        size = links["payload_bytes"] / np.maximum(links["data_packets"], 1) + headers
        own = np.zeros(len(size), dtype=bool)
        if self.run.has("links", "link_class", "from", "to"):
            own = own_queues(*(self.run.column("links", name) for name in ("link_class", "from", "to", "from_name")))
        waiting = np.where(own, 0, links["mean_queue"] * end / np.maximum(size, 1))
        found = {}
        slowed = slowed_links.slowed_links(self.run)
        columns = [links[name].tolist() for name in wanted[:7]]
        for source, target, port, rate, size, busy, link, wait in zip(*columns, waiting.tolist()):
            name = f"{source} -> {target}"
            if name in found:
                name += f" (port {port})"
            found[name] = {"rate": slowed[link][0] if link in slowed else rate, "bytes": size, "busy": busy, "waiting": round(wait)}
        return found

    @cached_property
    def parts(self):
        """{table: {part: sum over its rows}}."""
        found = {}
        for table in PARTS_TABLES:
            names = self.run.parts(table)
            if names and self.run.rows(table) <= MAX_MESSAGES:
                found[table] = self.run.sums(table, names)
        return found

    def parts_of_job(self, name):
        """{part: average of the ranks of a job}, which add up to its time; {} if the file has none, or has -1 because
        they do not fit into 63 bits."""
        job = self.jobs[name]
        names = self.run.parts("jobs")
        if not names or not job["ranks"] or min(job[column] for column in names) < 0:
            return {}
        return {part_name(column): job[column] / job["ranks"] for column in names}

    @cached_property
    def slowdowns(self):
        """Percentiles of the slowdown of messages; [] if there are none, or too many to be read."""
        if not self.run.has("messages", "slowdown") or self.run.rows("messages") > MAX_MESSAGES:
            return []
        return self.run.percentiles("messages", "slowdown", SHARES)

    @cached_property
    def counts(self):
        """{name: (number, unit)} of facts that are not times."""
        found = {"messages": (sum(job.get("messages", 0) for job in self.jobs.values()), "1"),
                 "bytes sent": (sum(job.get("bytes", 0) for job in self.jobs.values()), "B")}
        for table, column, what in (("links", "dropped", "packets dropped"), ("links", "lost", "packets lost"),
                                    ("queue_pairs", "repeated", "packets sent again"),
                                    ("link_classes", "marked", "packets marked by ECN")):
            if self.run.has(table, column):
                found[what] = self.run.sums(table, column)[column], "1"
        if self.run.has("links", "peak_queue") and self.run.rows("links"):
            found["longest queue"] = self.run.extremes("links", "peak_queue")["peak_queue"][1], "B"
        for share, value in zip(SHARES, self.slowdowns):
            found["largest slowdown of a message" if share == 100 else f"slowdown of messages, {share} %"] = value, "1"
        return found
