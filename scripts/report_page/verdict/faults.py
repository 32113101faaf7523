# SPDX-License-Identifier: GPL-2.0-only
"""The sentence on faults of links and switches."""

import weft_results
from report_page.values import rate_text, time_text
from report_page.verdict.thresholds import NOTEWORTHY

# Failures that a sentence lists.
MOST_FAULTS = 3


def faults(evidence):
    """A link that the experiment slows down, and one that lost packets, unless the sentence on congestion says so."""
    links, worst, texts = evidence.facts.links, evidence.worst_congestion.name, []
    if evidence.slowed is not None and worst != "slowed":
        texts.append(f"{links.name(evidence.slowed)} sent {slower(evidence, evidence.slowed)}")
    lost = links.values["lost"]
    if worst != "retransmission" and lost.any() and evidence.shares.get("retransmission", 0) >= NOTEWORTHY:
        texts.append(f"{links.name(int(lost.argmax()))} lost {int(lost.max()):,} packets")
    texts += down(evidence.facts.run.path)
    return f"Faults were found: {'; '.join(texts)}." if texts else None


def slower(evidence, row):
    rate, longer = evidence.facts.slowed[row]
    usual = evidence.facts.links.values["rate"][row]
    # What was sent twice may still be on its way when the job has ended.
    longer = min(longer, evidence.job_time * (1 - rate / usual))
    return f"at {rate_text(rate)} instead of {rate_text(usual)}, for {time_text(longer)} longer"


def down(path):
    """Links and switches that the experiment lets fail."""
    with weft_results.open(path) as run:
        if "failures" not in run.experiment_text:
            return []
        try:
            entries = (run.experiment.get("network") or {}).get("failures") or []
        except weft_results.ResultsError:  # without PyYAML
            return []
    entries = [entry for entry in entries if isinstance(entry, dict) and "rate" not in entry]
    names = [" – ".join(map(str, entry["link"])) if isinstance(entry.get("link"), list) else
             str(entry.get("link") or entry.get("switch") or entry.get("class")) for entry in entries]
    times = [f"from {entry.get('at')}" + (f" to {entry['until']}" if "until" in entry else " on") for entry in entries]
    more = [f"{len(entries) - MOST_FAULTS} more were down"] if len(entries) > MOST_FAULTS else []
    return [f"{name} was down {time}" for name, time in zip(names[:MOST_FAULTS], times)] + more
