# SPDX-License-Identifier: GPL-2.0-only
"""The sentence on congestion: at which link it was, and what it delayed."""

from report_page.values import bytes_text, percent, time_text


def place(evidence):
    if not evidence.congested:
        return f"No congestion was found: {calm(evidence)}."
    link = evidence.blamed.link
    if link is None:
        return "Congestion was found, but the file does not say at which links."
    found = evidence.worst_congestion.found if evidence.blamed.by_kind else "Congestion was found"
    return (f"{found}: {link['name']} ({link['class']}){what_it_did(evidence, link)}it was busy for "
            f"{percent(link['utilization'])} of the run and its queue reached {bytes_text(link['peak_queue'])}"
            f"{delayed_most(evidence, link)}.")


def calm(evidence):
    facts = evidence.facts
    if str(facts.run.attribute("manifest/model", "fidelity", "")) == "ideal":
        return "the network was simulated as an ideal one, in which nothing waits"
    if not evidence.parts.exact and facts.messages.seen == 0:
        return "no queue stood for long, as far as a file without messages says"
    of_what = "the job's time" if evidence.parts.exact and evidence.parts.total else "the time of messages"
    return f"queueing, pauses and retransmissions are {percent(sum(evidence.shares.values()))} of {of_what}"


def delayed_most(evidence, link):
    """The group of collectives that was delayed most, if it is one of a job whose messages waited for the link."""
    facts = evidence.facts
    group = facts.collectives.most_delayed(facts.messages.excess_of_collective)
    if not group or evidence.several_jobs and all(name != group["job"] for name, _ in link["waiting"]):
        return ""
    return (f"; {group['kind']} of {group['ranks']} ranks and {bytes_text(group['bytes'])}"
            f"{' of job ' + group['job'] if evidence.several_jobs else ''} was delayed most")


def what_it_did(evidence, link):
    if evidence.blamed.by_kind:
        return evidence.worst_congestion.what_it_did(evidence, evidence.blamed.row)
    if not link["delay"]:
        return f"{others(evidence, link)} "
    jobs = " and ".join(f"{name} ({percent(share)})" for name, share in (link["front"] or link["waiting"])[:2])
    who = f", {'behind' if link['front'] else 'to'} packets of {jobs}" if evidence.several_jobs and jobs else ""
    span = f", mostly between {time_text(link['from'])} and {time_text(link['to'])}"
    return f"{others(evidence, link)} caused {percent(link['share'])} of the delay at links{who}{span}; "


def others(evidence, link):
    """Text with the number of links with similar delay."""
    of_link = evidence.facts.delays.of_link
    count = int((of_link >= link["delay"] / 2).sum()) - 1 if link["delay"] else 0
    return f", worst of {count + 1} that are about as bad," if count else ""
