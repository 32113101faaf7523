# SPDX-License-Identifier: GPL-2.0-only
"""Sentences on a link that is busy for so long that all else together saves little."""

from report_page.attribution import CONGESTION, TITLES
from report_page.values import percent, rate_text, time_text
from report_page.verdict.beside import also_a_straggler
from report_page.verdict.thresholds import SHOWN


def rest(evidence, share):
    return time_text((1 - share) * evidence.job_time)


def mostly(evidence):
    """What the ranks spend most time on, and what delays messages."""
    names = evidence.longest_parts(SHOWN)
    names = names[:2] + [name for name in names[2:] if name in CONGESTION]
    listed = ", ".join(f"{TITLES[name]} {percent(evidence.parts.share(name))}" for name in names)
    return f" (mean of ranks: {listed})" if names else ""


def bound_by_link(evidence, row, share, alone):
    """`alone`: messages of others, placement and paths do not change what goes over the link."""
    same = "" if alone else ", with the same traffic there,"
    links = evidence.facts.links
    return (f"A busy link bounds {evidence.whole()}: {links.name(row)} ({links.link_class[row]}) was busy for "
            f"{percent(share)} of it, so that{same} all else together can save at most "
            f"{rest(evidence, share)}{mostly(evidence)}{also_a_straggler(evidence)}.")


def bound_by_edge(evidence):
    """Of the busiest link of a host."""
    return bound_by_link(evidence, evidence.demands.edge_row, evidence.demands.edge, alone=not evidence.guest[0])


def bound_by_busiest(evidence):
    """Of the busiest link of all: others' messages, placement and paths change what goes over links inside the network."""
    row = evidence.demands.row
    return bound_by_link(evidence, row, evidence.demands.link, alone=evidence.is_edge(row) and not evidence.several_jobs)


def edge_advice(evidence):
    """Of a link of a host that is busy all the time: other paths, and senders that hold back, change nothing."""
    row, links = evidence.demands.edge_row, evidence.facts.links
    of_class = links.values["rate"][links.link_class == links.link_class[row]].max()
    slower = links.values["rate"][row] < of_class
    rates = (f"That link has {rate_text(links.values['rate'][row])}, and others of its class have {rate_text(of_class)}: "
             if slower else "")
    towards = links.reaches_server()[row]
    host = links.target_name[row] if towards else links.source_name[row]
    guest, share = evidence.guest
    apart = f"job {guest}, which has {percent(share)} of what passes it, at another place, " if guest else ""
    text = f"only {apart}less data {'to' if towards else 'from'} {host}, or a faster link, would help by more"
    return f"{rates}{text if slower else text[0].upper() + text[1:]}."
