# SPDX-License-Identifier: GPL-2.0-only
"""The content of the page for one run."""

import weft_results
from report_page.attribution import attribution
from report_page.collectives import Collectives
from report_page.costs import costs_of
from report_page.delays import Delays, critical_path, slowed, stops
from report_page.links import Links, topology
from report_page.messages import Jobs, Messages
from report_page.series import LinkSeries, depths, heat, queues, rates
from report_page.timeline import timeline
from report_page.values import bytes_text, percent, plain, rate_text, ratio, time_text
from report_page.verdict.verdict import Verdict


class Facts:
    """The tables of a run, read once, for all sections of the page."""

    def __init__(self, run, exact):
        self.run = run
        self.jobs = Jobs(run)
        self.links = Links(run)
        self.messages = Messages(run, self.links, self.jobs, exact)
        self.collectives = Collectives(run, self.jobs)
        self.delays = Delays(run, self.links, self.jobs, self.messages)
        self.stops = stops(run, self.links)
        self.slowed = slowed(run, self.links)
        self.series = LinkSeries(run, self.links)


def summary(facts):
    """[(title, text, name, exact value)] of the head of the page."""
    run, links, sums = facts.run, facts.links, facts.messages.sums
    rows = [("Simulated time", time_text(run.end), "simulated_time", run.end)]
    if run.has("jobs", "steps", "step_time") and run.rows("jobs"):
        for name, steps, step in zip(facts.jobs.names, *run.columns("jobs", "steps", "step_time")):
            if steps and step >= 0:  # the run may have ended before the job
                several = len(facts.jobs.names) > 1
                rows.append((f"Step of job {name}" if several else "Step of the job",
                             f"{time_text(step)} ({int(steps)} step{'' if steps == 1 else 's'})", "step_time", float(step)))
    rows.append(("Fidelity", str(run.attribute("manifest/model", "fidelity", "?")), "fidelity", ""))
    if facts.messages.rows:
        with weft_results.open(run.path) as results:
            sample = results.message_sample
        some = f", one in {sample:,}" if sample > 1 else ""
        rows.append(("Messages", f"{facts.messages.rows:,}{some}", "messages", facts.messages.rows))
        rows.append(("Mean slowdown, weighted by time", f"{ratio(sums['duration'], sums['ideal']):.4g}", "slowdown",
                     ratio(sums["duration"], sums["ideal"])))
    if links.count:
        busiest = int(links.values["utilization"].argmax())
        rows.append(("Busiest link", f"{links.name(busiest)}, {percent(links.values['utilization'][busiest])}",
                     "busiest", float(links.values["utilization"][busiest])))
        longest = int(links.values["peak_queue"].argmax())
        rows.append(("Longest queue", f"{bytes_text(links.values['peak_queue'][longest])} at {links.name(longest)}",
                     "peak_queue", int(links.values["peak_queue"][longest])))
        missing = int(links.missing().sum())  # as the summary of `weft run` counts them
        rows.append(("Packets dropped or lost", f"{missing:,}", "dropped", missing))
    rows.append(("Fingerprint", str(plain(run.attributes.get("fingerprint", "?"))), "fingerprint", ""))
    return rows


def model(run):
    """The model and this particular run: attributes as in the file."""
    facts = []
    for place in ("manifest", "manifest/model", "manifest/run", "manifest/run/partition"):
        if place in run.file:
            facts += [(place, name, str(plain(value))) for name, value in run.guarded(
                lambda place=place: sorted(run.file[place].attrs.items()))]
    return facts


def parallel(run):
    """Facts of the parallel run: attributes and rows of /manifest/parallel."""
    place = "manifest/parallel"
    if place not in run.file:
        return None
    attributes = run.guarded(lambda: dict(run.file[place].attrs))
    units = {name.removesuffix("_unit"): str(plain(value)) for name, value in attributes.items()
             if name.endswith("_unit")}
    facts = [(name.replace("_", " "), plain(value), units.get(name, "1")) for name, value in sorted(attributes.items())
             if not name.endswith("_unit") and name not in ("description", "rows")]
    names = run.names(place)
    cells = [[plain(value) for value in row] for row in zip(*(run.column(place, name) for name in names))]
    return {"facts": facts, "columns": names, "units": [run.unit(place, name) for name in names], "cells": cells}


def links_text(run, facts):
    rates_found = sorted(set(facts.links.values["rate"].tolist()))
    return f"{facts.links.count} directions of links, {', '.join(rate_text(rate) for rate in rates_found[:4])}"


def run_report(run, exact=False):
    facts, critical = Facts(run, exact), critical_path(run)
    return {
        "name": run.name, "path": str(run.path), "complete": run.complete, "end": run.end,
        "jobs": facts.jobs.names, "summary": summary(facts), "verdict": Verdict(facts, critical).data(),
        "attribution": attribution(run, facts.jobs, facts.collectives), "timeline": timeline(run, facts.jobs),
        "topology": topology(facts.links, facts.delays.of_link), "machine": links_text(run, facts),
        "heat": heat(facts.links, facts.series, facts.messages), "queues": queues(facts.links, facts.series),
        "depths": depths(run, facts.links), "rates": rates(run), "slowdown": facts.messages.slowdown(),
        "collectives": facts.collectives.table(), "delays": facts.delays.table(), "critical": critical,
        "model": model(run), "parallel": parallel(run), "costs": costs_of(run),
    }
