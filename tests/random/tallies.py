# SPDX-License-Identifier: GPL-2.0-only
"""Counts of the tried cases and their outcomes."""

import collections
import json
import pathlib


def network(*keys):
    return lambda parts, runs: any(key in (parts.get("network") or {}) for key in keys)


def flow(kind):
    return lambda parts, runs: (parts.get("network") or {}).get("flow_control") == kind


def harmed(harm):
    return lambda parts, runs: any(run.harm == harm for run in runs)


def rates_fall(parts, runs):
    return any(isinstance(item, dict) and "rate" in item for item in failures_of(parts))


def failures_of(parts):
    failures = (parts.get("network") or {}).get("failures")
    return failures if isinstance(failures, list) else []


def fail(*keys):
    return lambda parts, runs: any(isinstance(item, dict) and any(key in item for key in keys)
                                     and "rate" not in item for item in failures_of(parts))


# The lines of the table of docs/concepts/reliability.md.
TRIED = {
    "any case": lambda parts, runs: True,
    "packets lost on links at random": network("loss"),
    "links that fail and come back": fail("link", "class"),
    "switches that fail": fail("switch"),
    "links that get slower": rates_fall,
    "small buffers, packets dropped or trimmed": lambda parts, runs: network("buffer")(parts, runs)
    and not flow("pfc")(parts, runs),
    "pause frames (PFC)": flow("pfc"),
    "credits of links": flow("credit"),
    "congestion control": network("congestion_control"),
    "packets of a connection on several paths": lambda parts, runs: (parts.get("network") or {}).get("load_balancing")
    in ("spray", "adaptive", "reps", "flowlet"),
    "TCP beside RDMA": lambda parts, runs: bool(parts.get("background")),
    "training jobs": lambda parts, runs: "training" in str(parts.get("workload")),
    "traces and programs of operations": lambda parts, runs: (parts.get("workload") or {}).get("kind")
    in ("program", "goal", "chakra", "astra_sim_text"),
    "servers with several accelerators": lambda parts, runs: "server" in str(parts.get("topology")),
    "all times split into parts": lambda parts, runs: (parts.get("output") or {}).get("attribution") == "full",
    "several jobs": lambda parts, runs: (parts.get("workload") or {}).get("kind") == "jobs",
    "--verify against ns-3's own engine": lambda parts, runs: any(run.verify for run in runs),
    "one row in memory": lambda parts, runs: any(run.rows_in_memory == 1 for run in runs),
    "SIGTERM at a random moment": harmed("signal"),
    "SIGKILL of one process": harmed("kill"),
    "a full disk": harmed("full disk"),
}


class Tally:
    def __init__(self):
        self.cases = self.runs = self.faulty = 0
        self.seconds = 0.0
        self.outcomes = collections.Counter()
        self.notes = collections.Counter()
        self.classes = collections.Counter()
        self.examples = {}
        self.tried = {name: [0, 0, 0, 0] for name in [*TRIED, "values that make no sense"]}
        self.drawn = collections.Counter()

    def add(self, experiment, runs, judge, seconds):
        self.cases += 1
        self.runs += judge.runs
        self.seconds += seconds
        found = {fault.name for fault in judge.faults}
        self.faulty += bool(found)
        outcome = "faulty" if found else "refused" if experiment.refused else "done"
        self.outcomes[outcome] += 1
        self.notes.update(judge.notes)
        for name in found:
            self.classes[name] += 1
            self.examples.setdefault(name, []).append(experiment.seed)
        rows = [name for name, applies in TRIED.items() if applies_safely(applies, experiment.parts, runs)]
        for name in rows + (["values that make no sense"] if experiment.absurd else []):
            row = self.tried[name]
            row[0] += 1
            row[1 + ("done", "refused", "faulty").index(outcome)] += 1
        topology, workload = (experiment.parts.get(part) or {} for part in ("topology", "workload"))
        self.drawn[f"topology {topology.get('kind')}"] += 1
        self.drawn[f"workload {workload.get('kind')}"] += 1

    def note_broken(self, seed, fault):
        """A case that could not even be made."""
        self.faulty += 1
        self.classes[fault.name] += 1
        self.examples.setdefault(fault.name, []).append(seed)

    def summary(self):
        lines = [f"{self.cases} cases, {self.runs} runs, {self.seconds / max(1, self.cases):.1f} s per case: "
                 f"{self.outcomes['done']} done, {self.outcomes['refused']} refused alike (exit code 2), "
                 f"{self.faulty} with faults"]
        lines += [f"  note, {count} times: {note}" for note, count in self.notes.most_common()]
        for name, count in self.classes.most_common():
            seeds = ", ".join(map(str, self.examples[name][:5]))
            lines.append(f"  {count:4} x {name}   (seeds {seeds})")
        return "\n".join(lines)

    def save(self, path):
        pathlib.Path(path).write_text(json.dumps(vars(self), indent=1))

    @classmethod
    def load(cls, path):
        tally = cls()
        for key, value in json.loads(pathlib.Path(path).read_text()).items():
            own = getattr(tally, key)
            setattr(tally, key, collections.Counter(value) if isinstance(own, collections.Counter) else value)
        return tally


def applies_safely(applies, parts, runs):
    """With nonsense values, anything may be where a map is expected."""
    try:
        return applies(parts, runs)
    except (AttributeError, TypeError):
        return False


def table(tallies):
    """Markdown: what was tried, how often, and what happened, in all tallies together. Older ones have fewer lines."""
    lines = ["| tested | cases | as guaranteed | refused, with a message | faults |", "|---|---|---|---|---|"]
    for name in Tally().tried:
        if any(name not in tally.tried for tally in tallies):
            continue
        sums = [sum(tally.tried.get(name, [0] * 4)[i] for tally in tallies) for i in range(4)]
        lines.append("| " + " | ".join([name, *(f"{number:,}" for number in sums)]) + " |")
    runs, hours = sum(tally.runs for tally in tallies), sum(tally.seconds for tally in tallies) / 3600
    lines.append(f"\n{runs:,} runs in {hours:.1f} hours.")
    return "\n".join(lines)
