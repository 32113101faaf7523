# SPDX-License-Identifier: GPL-2.0-only
"""The outputs that a study keeps for each run: figures of the summary, and reductions of columns of the results
file."""

import re

import h5py
import numpy

from accounting.account import FIGURES, Account
from support.errors import EnvironmentFailure, did_you_mean

DEFAULT = ["job_time", "step_time", "exposed", "packet_hops"]


def last_job(summary):
    """The job that takes longest, without background jobs."""
    return max((job for job in summary["jobs"] if not job["background"]), key=lambda job: job["time_ps"])


def mean_of_collectives(key):
    def mean(summary):
        values = [row[key] for row in summary["collectives"] if row["time_ps"] >= 0]
        return sum(values) / len(values) if values else float("nan")

    return mean


def of_job(key):
    """Not-a-number where the summary has null: a run that was cut short has no time of a step."""
    def value(summary):
        found = last_job(summary)[key]
        return float("nan") if found is None else float(found)

    return value


def of_congestion(key):
    return lambda summary: int(summary["congestion"][key])


def longest_queue(summary):
    """`switch -> node` of the link with the longest queue on average; empty where nothing queued, as on the ideal network."""
    link = next(iter(summary["hot_links"]), None)
    return f"{link['from']} -> {link['to']}" if link else ""


# Name: unit, description, and function that reads it from the output of `weft run --summary json`.
KNOWN = {
    "job_time": ("ps", "from start to end of the job that takes longest", lambda s: int(last_job(s)["time_ps"])),
    "step_time": ("ps", "mean of a step of that job", of_job("step_time_ps")),
    "compute": ("ps", "mean of its ranks: computing", of_job("compute_ps")),
    "communication": ("ps", "mean of its ranks: communicating", of_job("communication_ps")),
    "exposed": ("ps", "mean of its ranks: communicating and not computing", of_job("exposed_ps")),
    "idle": ("ps", "mean of its ranks: neither", of_job("idle_ps")),
    "simulated_time": ("ps", "end of the run", lambda s: int(s["simulated_time_ps"])),
    "packet_hops": ("1", "packets sent by all nodes", lambda s: int(s["packet_hops"])),
    "messages": ("1", "messages delivered", lambda s: int(s["messages"])),
    "bytes_delivered": ("B", "payload delivered", lambda s: int(s["bytes_delivered"])),
    "collective_time": ("ps", "mean of the first collectives", mean_of_collectives("time_ps")),
    "algbw": ("GB/s", "mean of the first collectives", mean_of_collectives("algbw_GBps")),
    "busbw": ("GB/s", "mean of the first collectives", mean_of_collectives("busbw_GBps")),
    "packets_dropped": ("1", "found no room", lambda s: int(s["packets_dropped"])),
    "packets_lost": ("1", "lost on links", of_congestion("packets_lost")),
    "packets_trimmed": ("1", "lost their payload", of_congestion("packets_trimmed")),
    "packets_marked": ("1", "marked by ECN", of_congestion("packets_marked")),
    "packets_repeated": ("1", "sent again", of_congestion("packets_repeated")),
    "packets_out_of_order": ("1", "arrived after a gap", of_congestion("packets_out_of_order")),
    "pause_frames": ("1", "pause frames", of_congestion("pause_frames")),
    "timeouts": ("1", "timeouts", of_congestion("timeouts")),
    "longest_queue": ("text", "link whose queue was longest on average", longest_queue),
    "complete": ("1", "1 if the run reached its end", lambda s: int(s["complete"])),
    "fingerprint": ("text", "of all rows of the results file", lambda s: s["fingerprint"]),
}

# Figures of the accounting of a run (accounting/account.py) and of its usage.
ACCOUNTED = {name: row for name, row in FIGURES.items() if not name.startswith("machine_")}
USED = {
    "memory": ("B", "of the fullest rank of a training job, to 0.1 GB"),
    "fits": ("1", "1 unless the fullest rank needs more memory than its device has"),
}

REDUCTIONS = {
    "sum": numpy.sum,
    "mean": numpy.mean,
    "min": numpy.min,
    "max": numpy.max,
    "median": numpy.median,
    "std": numpy.std,
    "first": lambda column: column[0],
    "last": lambda column: column[-1],
}
NAMES = {**KNOWN, **ACCOUNTED, **USED}
REDUCTION = re.compile(r"(\w+) +/?([\w/]+/\w+)")


class Output:
    """A column of outcomes. `reduction` is (name, path of a column) if the results file is needed for it, and `item` its
    place in the study."""

    def __init__(self, name, unit="1", description="", of_summary=None, reduction=None, item=None):
        self.name, self.unit, self.description = name, unit, description
        self.of_summary, self.reduction, self.item = of_summary, reduction, item

    @property
    def needs_usage(self):
        return not self.reduction and self.of_summary is None

    @property
    def text(self):
        return " ".join(self.reduction) if self.reduction else self.name

    def value(self, record, settings=None):
        """`settings`: those of the accounting of the case."""
        if self.reduction:
            return record["reductions"][self.text]["value"]
        if self.name in ACCOUNTED:
            return Account(record["usage"], settings).figures[self.name]
        return record["usage"][self.name] if self.name in USED else self.of_summary(record["summary"])


def reduce_with(name):
    if name in REDUCTIONS:
        return REDUCTIONS[name]
    return lambda column: numpy.percentile(column, float(name[1:]))


def read_reduction(item):
    text = item.text("a reduction of a column, such as 'p99 messages/slowdown',")
    match = REDUCTION.fullmatch(text.strip())
    if not match:
        raise item.error(f"found '{text}'; expected a reduction of a column of the results file, such as "
                         "'p99 messages/slowdown' or 'max links/peak_queue'")
    how, path = match.groups()
    percentile = re.fullmatch(r"p([0-9]{1,2})", how)
    if how not in REDUCTIONS and not percentile:
        raise item.error(f"unknown reduction '{how}'{did_you_mean(how, REDUCTIONS)}; known here: "
                         f"{', '.join(REDUCTIONS)}, p0 to p99")
    return how, path


def read_outputs(item):
    """{name: Output} of a study."""
    outputs = {}
    for entry in item.items("a list of outputs") if item else []:
        if entry.is_map():
            for key, value in entry.entries():
                name = key.node.value
                if not name.isidentifier() or name in NAMES or name in outputs:
                    raise key.error(f"found '{name}'; expected a new name of letters, digits and _")
                outputs[name] = Output(name, reduction=read_reduction(value), item=value)
            continue
        name = entry.text("the name of an output, or {NAME: REDUCTION table/column},")
        if name not in NAMES:
            raise entry.error(f"unknown output '{name}'{did_you_mean(name, NAMES)}; known here: {', '.join(NAMES)}, "
                              "and reductions such as {tail: p99 messages/slowdown}")
        outputs[name] = Output(name, *NAMES[name])
    return outputs or {name: Output(name, *NAMES[name]) for name in DEFAULT}


def reductions_of(path, outputs):
    """{text: {value, unit}} of the outputs that need the results file."""
    wanted = {output.text: output.reduction for output in outputs.values() if output.reduction}
    if not wanted:
        return {}
    found = {}
    try:
        with h5py.File(path, "r") as file:
            for text, (how, column) in wanted.items():
                found[text] = reduced(file, how, column)
    except OSError as error:
        raise EnvironmentFailure(f"cannot read '{path}': {error}") from None
    return found


def reduced(file, how, column):
    """Without a value if the file has no such column of numbers, or no rows. Times that have not come do not count: -1,
    such as of a collective that has not finished."""
    data = file.get(column)
    if not isinstance(data, h5py.Dataset) or data.dtype.kind not in "iuf":
        return {"value": None, "unit": "1"}
    unit, values = data.attrs.get("unit", "1"), data[:]
    unit = unit.decode() if isinstance(unit, bytes) else str(unit)
    if unit == "ps":
        values = values[values != -1]
    return {"value": float(reduce_with(how)(values)) if len(values) else None, "unit": unit}
