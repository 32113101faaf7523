# SPDX-License-Identifier: GPL-2.0-only
"""Comparison of two runs: changes, the largest first, and their causes."""

import os

from weft_commands.compare_facts import MAX_MESSAGES, part_name
from weft_commands.compare_inputs import input_differences
from weft_commands.compare_verdict import sentences

# Parts of a job, averages of its ranks, which add up to its time.
SHARES_OF_JOB = {"compute": "compute", "exposed": "exposed communication", "waiting": "waiting for peers", "idle": "idle time"}


def change(what, first, second, unit="ps", **more):
    """One row. `percent` is None if the divisor would be zero; absent values are None."""
    known = first is not None and second is not None
    difference = second - first if known else None
    percent = 100 * difference / first if known and first else 0.0 if known and not difference else None
    return {"what": what, "unit": unit, "first": first, "second": second, "change": difference, "percent": percent,
            **more}  # fmt: skip


def size_of(row):
    """The key by which rows are ranked. A value that only one run has counts as its whole change."""
    if row["change"] is not None:
        return abs(row["change"])
    return abs(next((value for value in (row["first"], row["second"]) if value is not None), 0))


def ranked(rows):
    """The largest change first, without unchanged rows."""
    return sorted((row for row in rows if size_of(row)), key=lambda row: (-size_of(row), row["what"]))


def per_step(value, steps):
    return value if value is None or steps <= 1 else value / steps


def joined(first, second):
    """Keys of both, in the order of the first."""
    return list(dict.fromkeys([*first, *second]))


class Comparison:
    """The second run against the first."""

    def __init__(self, first, second, names):
        self.first, self.second, self.names = first, second, names
        self.inputs, self.notes = input_differences(first.run, second.run)
        self.take_only_jobs_as_the_same()
        self.same_ranks = first.ranks == second.ranks
        self.several_jobs = len(joined(first.jobs, second.jobs)) > 1
        self.note_what_cannot_be_compared()

    def take_only_jobs_as_the_same(self):
        (name, *others), (other, *further) = self.first.jobs, self.second.jobs
        if name != other and not others and not further:
            self.second.rename_job(other, name)
            self.notes.append(f"The only job is called {name} in {self.names[0]} and {other} in {self.names[1]}.")

    def note_what_cannot_be_compared(self):
        one, other = self.first, self.second
        if not self.same_ranks:
            self.notes.append(f"{self.names[0]} has {one.ranks} ranks and {self.names[1]} {other.ranks}: times of jobs "
                              "and averages of ranks are compared, single ranks are not.")
        only = [name for name in joined(one.jobs, other.jobs) if (name in one.jobs) != (name in other.jobs)]
        if only:
            self.notes.append(f"Jobs of one run only are not compared: {', '.join(only)}.")
        for facts, name in zip((one, other), self.names):
            if facts.run.rows("messages") > MAX_MESSAGES:
                self.notes.append(f"{name} has {facts.run.rows('messages')} messages, which were not read.")
            if not facts.run.complete:
                self.notes.append(f"{name} did not reach its end: its times are those until then.")
        for name in self.common_jobs():
            steps = one.jobs[name]["steps"], other.jobs[name]["steps"]
            if steps[0] != steps[1]:
                self.notes.append(f"Job {name} makes {steps[0]} steps and {steps[1]}: sums below are over all of them.")

    def common_jobs(self):
        return [name for name in self.first.jobs if name in self.second.jobs]

    def of_job(self, text, job):
        return f"{text} of job {job}" if self.several_jobs and job else text

    def headline(self):
        """The step time that changed most, of jobs that both runs have done, without background jobs; otherwise the
        simulated time. Without a change if a run did not reach its end: less time is then no gain."""
        rows = [change(self.of_job("step time", name), self.first.jobs[name]["step_time"],
                       self.second.jobs[name]["step_time"], job=name)
                for name in self.common_jobs() if not self.first.jobs[name].get("background")]
        rows = [row for row in rows if row["change"] is not None]
        row = (ranked(rows) or rows or [self.simulated_time()])[0]
        return {**row, "change": None, "percent": None} if self.incomplete() else row

    def incomplete(self):
        """Names of the runs that were interrupted or cut short."""
        pairs = zip((self.first, self.second), self.names)
        return list(dict.fromkeys(name for facts, name in pairs if not facts.run.complete))

    def simulated_time(self):
        return change("simulated time", self.first.run.simulated_time, self.second.run.simulated_time, job=None)

    def outcome(self):
        rows = [self.simulated_time()]
        for name in self.common_jobs():
            one, other = self.first.jobs[name], self.second.jobs[name]
            for column, what in (("step_time", "step time"), ("time", "time"), *SHARES_OF_JOB.items()):
                if column in one and column in other:
                    rows.append(change(self.of_job(what, name), one[column], other[column], job=name))
        return ranked(rows)

    def job_shares(self, name):
        """The parts of the change of a job's step time, if the files have them: what they add up to changes as the
        headline says, also where the runs make different numbers of steps."""
        if name is None:
            return []
        both, meanings = (self.first, self.second), self.meanings("jobs")
        sides = [facts.parts_of_job(name) for facts in both]
        if not all(sides):
            sides = [{what: facts.jobs[name].get(column) for column, what in SHARES_OF_JOB.items()} for facts in both]
        sides = [{what: per_step(value, facts.jobs[name]["steps"]) for what, value in side.items()}
                 for side, facts in zip(sides, both)]
        return ranked([change(what, sides[0].get(what), sides[1].get(what), job=name, meaning=meanings.get(what, ""))
                       for what in joined(*sides)])  # fmt: skip

    def meanings(self, table):
        """{part: description}, from the files."""
        found = {}
        for facts in (self.second, self.first):
            texts = facts.run.descriptions(table) if table in facts.run else {}
            found |= {part_name(name): text for name, text in texts.items() if name.startswith("part_")}
        return found

    def parts(self):
        """{table: rows} of the sums of parts over whole tables."""
        found = {}
        for table in joined(self.first.parts, self.second.parts):
            one, other = self.first.parts.get(table, {}), self.second.parts.get(table, {})
            meanings = self.meanings(table)
            rows = [change(part_name(part), one.get(part), other.get(part), meaning=meanings.get(part_name(part), ""))
                    for part in joined(one, other)]  # fmt: skip
            found[table] = ranked(rows)
        return found

    def collectives(self):
        one, other = self.first.collectives, self.second.collectives
        rows = []
        for key in joined(one, other):
            job, group, kind = key
            pair = one.get(key), other.get(key)
            what = self.collective_name(job, group, kind)
            rows.append(change(what, *(side and side["time"] for side in pair), job=job,
                               calls=[side["calls"] if side else 0 for side in pair],
                               bytes=[side["bytes"] if side else 0 for side in pair],
                               algorithm=[", ".join(sorted(side["algorithms"])) if side else None for side in pair]))
        return ranked(rows)

    def collective_name(self, job, group, kind):
        return self.of_job(f"{kind}{f' of {group}' if group else ''}", job)

    def calls(self):
        """Single collectives of the same name in both."""
        rows = []
        for key in self.first.calls:
            if key in self.second.calls:
                job, label, number = key
                what = self.of_job(f"{label} (call {number})" if number > 1 else label, job)
                time, _ = self.first.calls[key]
                other, (_, group, kind) = self.second.calls[key]
                rows.append(change(what, time, other, job=job, collective=self.collective_name(job, group, kind)))
        return ranked(rows)

    def operators(self):
        """Per rank: compute time, and exposed communication."""
        one, other = self.first.operators, self.second.operators
        rows = []
        for key in joined(one, other):
            job, kind, name = key
            sides = [self.mean(facts, job, operators.get(key))
                     for facts, operators in ((self.first, one), (self.second, other))]
            count = [operators[key]["count"] if key in operators else 0 for operators in (one, other)]
            rows.append(change(self.of_job(name or kind, job), *sides, job=job, kind=kind, count=count))
        return ranked(rows)

    @staticmethod
    def mean(facts, job, operator):
        ranks = facts.jobs[job]["ranks"] if job in facts.jobs else facts.ranks
        return operator["exposed"] / ranks if operator and ranks else None

    def ranks(self):
        """Single ranks, if both runs have as many."""
        if self.computed_longer() is None:
            return []
        one, other, rows = self.first.rank_table, self.second.rank_table, []
        for i, rank in enumerate(one["rank"].tolist()):
            details = {column: [int(one[column][i]), int(other[column][i])] for column in ("exposed", "finished")}
            rows.append(change(f"rank {rank}", int(one["compute"][i]), int(other["compute"][i]), rank=rank, **details))
        return ranked(rows)

    def links(self):
        """Links by the time that packets spent there: waiting, and in transmission."""
        one, other = self.first.links, self.second.links
        rows, only = [], 0
        for name in joined(one, other):
            if name not in one or name not in other:
                only += 1
                continue
            sides = one[name], other[name]
            details = {fact: [side[fact] for side in sides] for fact in ("waiting", "busy", "bytes", "rate")}
            rows.append(change(name, *(side["waiting"] + side["busy"] for side in sides), **details))
        if only:
            self.notes.append(f"{only} directions of links are in one of the runs only; {len(rows)} are compared.")
        return ranked(rows)

    def counts(self):
        one, other = self.first.counts, self.second.counts
        rows = [change(what, *(side[what][0] if what in side else None for side in (one, other)),
                       (one.get(what) or other[what])[1]) for what in joined(one, other)]
        return [row for row in rows if size_of(row)]

    def computed_longer(self):
        """Additional compute time of each rank; None if single ranks cannot be compared."""
        tables = self.first.rank_table, self.second.rank_table
        if not self.same_ranks or list(self.first.jobs) != list(self.second.jobs) or None in tables:
            return None
        if len(tables[0]["rank"]) != len(tables[1]["rank"]):
            return None
        return (tables[1]["compute"] - tables[0]["compute"]).tolist()

    def result(self):
        """The whole comparison as data for JSON."""
        headline = self.headline()
        found = {
            "first": self.names[0],
            "second": self.names[1],
            "incomplete": self.incomplete(),
            "headline": headline,
            "inputs": self.inputs,
            "outcome": self.outcome(),
            "shares": self.job_shares(headline["job"]),
            "collectives": self.collectives(),
            "calls": self.calls(),
            "operators": self.operators(),
            "ranks": self.ranks(),
            "links": self.links(),
            "parts": self.parts(),
            "counts": self.counts(),
            "notes": self.notes,
        }
        return {"sentences": sentences(found, self.computed_longer()), **found}


def short_names(paths):
    """Names of files, or whole paths if the names are equal."""
    names = [os.path.basename(path) for path in paths]
    return names if len(set(names)) == len(set(paths)) else list(paths)
