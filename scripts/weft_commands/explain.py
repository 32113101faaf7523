# SPDX-License-Identifier: GPL-2.0-only
"""Shows why a run took as long as it did:

* what each job spent its time on;
* the critical path through operations and messages, and by how much operations off this path could have been longer
  (slack);
* the links that delayed messages most, with the jobs that waited and the jobs that were in front;
* the links at which packets were lost, and those that sent below their rate;
* for each link that flow control stopped, the link where the stop began, with the ranks that sent there and the ranks
  that were held up.

Jobs, links and pauses need output.attribution (summary is the default); the critical path and slack need output:
{attribution: full, operations: true} and rows of all messages.

Exit code 0: done; 2: the file or an argument is wrong."""

import argparse
import json
import sys

import weft_results
from support.quantities import counted
from weft_commands.explain_links import delaying_links, links_below_their_rate, lossy_links, named_job
from weft_commands.explain_pauses import pairs_text, pause_trees
from weft_commands.program import Parser, number_of_rows
from weft_commands.quantities import rate_text, size_text, time_text
from weft_results import critical_path, slack


def parse(words):
    parser = Parser(prog="weft explain", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", metavar="FILE.h5", help="a result file of `weft run`")
    parser.add_argument("--top", metavar="N", type=number_of_rows, default=10, help="rows of each table (10)")
    parser.add_argument("--json", action="store_true", help="everything as one JSON object; times in ps")
    return parser.parse_args(words)


def inputs(options):
    return [options.file]


def folders(_):
    return []


def jobs(run):
    """[{name, ranks, time, parts}] with the largest part first; parts in ps of all ranks, {} without attribution."""
    parts = run.parts("jobs")
    table = run.table("jobs", ["name", "ranks", "time", *parts])
    found = []
    for row, name in enumerate(table["name"]):
        shares = {part.removeprefix("part_"): int(table[part][row]) for part in parts if table[part][row] > 0}
        found.append({"name": str(name), "ranks": int(table["ranks"][row]), "time": int(table["time"][row]),
                      "parts": dict(sorted(shares.items(), key=lambda pair: (-pair[1], pair[0])))})
    return found


def path(run):
    """The critical path as data for JSON, or the reason why there is none."""
    reason = critical_path.missing(run)
    if reason is not None:
        return {"missing": f"the critical path {reason}"}
    steps = critical_path.critical_path(run)
    return {"time": sum(step.time for step in steps), "messages": sum(step.kind == "message" for step in steps),
            "ranks": sorted({step.rank for step in steps}), "sums": critical_path.sums(steps),
            "operations": critical_path.stretches(critical_path.by_operation(steps))}


def slacks(run):
    """Slack of the ranks' compute and of communication as data for JSON, or the reason why there is none."""
    reason = slack.missing(run)
    if reason is not None:
        return {"missing": f"slack {reason}"}
    found = slack.slack(run)
    return {"ranks": slack.of_ranks(run, found), "communication": slack.of_communication(run, found)}


def explain(run):
    return {"file": run.path, "complete": run.complete, "simulated_time": run.simulated_time, "message_sample": run.message_sample,
            "jobs": jobs(run),
            "critical_path": path(run), "slack": slacks(run), "links": delaying_links(run), "losses": lossy_links(run),
            "slowed": links_below_their_rate(run), "pauses": pause_trees(run)}


def shares_text(sums, most=6):
    whole = sum(sums.values())
    shown = [(name, 100 * time / whole) for name, time in list(sums.items())[:most]] if whole > 0 else []
    return ", ".join(f"{share:.1f} % {name}" for name, share in shown if share >= 0.05)


def job_lines(result):
    for job in result["jobs"]:
        name = named_job(job["name"])
        spent = "it took no time" if job["time"] == 0 else (
            shares_text(job["parts"]) or "on what is not in the file: output.attribution is none")
        yield f"{name}: {time_text(job['time'])} on {counted(job['ranks'], 'rank')}: {spent}"


def stretch_line(group):
    communicates = group["kind"] == "communication"
    messages = f", {counted(group['messages'], 'message')}" if communicates else ""
    ranks = ", ".join(str(rank) for rank in group["ranks"][:4]) + (", ..." if len(group["ranks"]) > 4 else "")
    why = f": {shares_text(group['sums'], 4)}" if communicates else ""
    return (f"  {time_text(group['start']):>10}  {time_text(group['end'] - group['start']):>10}  "
            f"{critical_path.name_of(group)}{messages}, rank{'s' if len(group['ranks']) > 1 else ''} {ranks}{why}")


def path_lines(result, top):
    path = result["critical_path"]
    if "missing" in path:
        yield path["missing"]
        return
    yield (f"critical path: {time_text(path['time'])} over {counted(len(path['ranks']), 'rank')} and "
           f"{counted(path['messages'], 'message')}: {shares_text(path['sums'])}")
    groups = path["operations"]
    longest = sorted(range(len(groups)), key=lambda i: (groups[i]["start"] - groups[i]["end"], i))[:top]
    yield f"  {'from':>10}  {'time':>10}  what (the {len(longest)} longest of {len(groups)} stretches)"
    for place in sorted(longest):
        yield stretch_line(groups[place])


def slack_lines(result, top):
    found = result["slack"]
    if "missing" in found:
        return
    some = [rank for rank in found["ranks"] if rank["slack"] > 0]
    if found["ranks"]:
        yield (f"slack: {len(found['ranks']) - len(some)} of {len(found['ranks'])} ranks compute something that makes the "
               "run longer if it takes longer" + ("; the others could have taken longer by:" if some else ""))
    for rank in some[:top]:
        yield f"  {time_text(rank['slack']):>10}  rank {rank['rank']} ({rank['label'] or 'compute'})"
    if found["communication"]:
        yield "slack of communication, by how much longer a call could have taken:"
        yield f"  {'min':>10}  {'median':>10}  {'calls':>6}  {'without':>7}  which"
    for one in found["communication"][:top]:
        yield (f"  {time_text(one['min']):>10}  {time_text(one['median']):>10}  {one['calls']:>6}  {one['critical']:>7}  "
               f"{one['name']}")


def link_lines(result, top):
    links = result["links"]
    if not links:
        yield "no message waited for others in a queue of a switch"
        return
    yield f"links that delayed messages most, of {len(links)}:"
    for link in links[:top]:
        yield (f"  {link['from']} -> {link['to']} by {time_text(link['time'])} in all, between "
               f"{time_text(link['first'])} and {time_text(link['last'])}: {shares_text(link['waiting'])}; "
               f"behind {shares_text(link['ahead'])}")
        if link["collectives"]:
            first = link["collectives"][0]
            of = f" of one message in {result['message_sample']:,}" if result["message_sample"] > 1 else ""
            yield f"      most of all {first['label']} (/collectives/id {first['id']}), by {time_text(first['time'])}{of}"


def loss_lines(result, top):
    losses = result["losses"]
    if losses:
        yield f"links at which packets were lost, of {len(losses)}:"
    for link in losses[:top]:
        yield (f"  {link['from']} -> {link['to']}: {link['lost']} were sent and did not arrive, {link['dropped']} found no "
               "room on their way to it")


def slowed_lines(result, top):
    slowed = result["slowed"]
    if slowed:
        yield f"links that sent below their rate, of {len(slowed)}:"
    for link in slowed[:top]:
        yield (f"  {link['from']} -> {link['to']} at {rate_text(link['average'])} instead of {rate_text(link['rate'])}, for "
               f"{time_text(link['longer'])} longer")


def pause_lines(result, top):
    trees = result["pauses"]
    if trees:
        yield f"stops by flow control, by the link at which they begin, of {len(trees)}:"
    for tree in trees[:top]:
        yield (f"  {tree['from']} -> {tree['to']} had {len(tree['links'])} links stopped for {time_text(tree['time'])} in "
               f"all, between {time_text(tree['first'])} and {time_text(tree['last'])}")
        for link in tree["links"][:3]:
            yield f"      {link['from']} -> {link['to']} for {time_text(link['time'])}, {link['stops']} times"
        if len(tree["jobs"]) > 1:
            yield ("      jobs that sent there: "
                   + ", ".join(f"{named_job(name)} {size_text(size)}" for name, size in list(tree["jobs"].items())[:3]))
        if tree["senders"]:
            yield f"      ranks that sent there: {pairs_text(tree['senders'], lambda pair: size_text(pair['bytes']))}"
        if tree["victims"]:
            yield ("      held up on their way elsewhere: "
                   f"{pairs_text(tree['victims'], lambda pair: time_text(pair['time']))}")


def run(options):
    with weft_results.open(options.file) as run:
        run.expect_run()
        result = explain(run)
    if options.json:
        sys.stdout.write(json.dumps(result, indent=1) + "\n")
        return
    lines = [f"{result['file']}: {time_text(result['simulated_time'])} of simulated time"
             + ("" if result["complete"] else ", INCOMPLETE: the run was interrupted or cut short")]
    lines += [*job_lines(result), *path_lines(result, options.top), *slack_lines(result, options.top), *link_lines(result, options.top),
              *loss_lines(result, options.top), *slowed_lines(result, options.top), *pause_lines(result, options.top)]
    sys.stdout.write("\n".join(lines) + "\n")
