# SPDX-License-Identifier: GPL-2.0-only
"""Stops by flow control and their causes: a switch stops the links that fill it, with pause frames or by withholding
credits; their senders fill up and stop others. The result is a tree of stopped links for each link at which such a
chain begins (its root), with the ranks that sent there, and the ranks whose messages to other hosts were delayed."""

import numpy as np

from weft_results.pauses import root_of, stopped_links

MAX_PAIRS = 3


def held_up(run):
    """{(source rank, destination rank): ps for which flow control held their messages}, and {the same: bytes}."""
    times, sizes = {}, {}
    if not run.has("messages", "source", "destination", "paused", "bytes"):
        return times, sizes
    for block in run.blocks("messages", ["source", "destination", "paused", "bytes"]):
        pairs, where = np.unique(np.stack([block["source"], block["destination"]], axis=1), axis=0, return_inverse=True)
        for sums, column in ((times, "paused"), (sizes, "bytes")):
            totals = np.zeros(len(pairs), dtype=np.int64)
            np.add.at(totals, where.reshape(-1), block[column].astype(np.int64))
            for (source, destination), total in zip(pairs.tolist(), totals.tolist()):
                sums[source, destination] = sums.get((source, destination), 0) + total
    return times, sizes


def largest(pairs, value):
    return sorted(({"source": source, "destination": destination, value: amount}
                   for (source, destination), amount in pairs.items() if amount > 0),
                  key=lambda pair: (-pair[value], pair["source"], pair["destination"]))


class Machine:
    """Hosts of ranks, and names of links."""

    def __init__(self, run):
        links = run.table("links", ["from", "to", "from_name", "to_name"])
        self.starts, self.ends = links["from"].tolist(), links["to"].tolist()
        self.names = list(zip(links["from_name"].tolist(), links["to_name"].tolist()))
        self.nodes = {int(rank): int(node) for rank, node in zip(*run.table("ranks", ["rank", "node"]).values())}
        names = dict(zip(*run.table("jobs", ["job", "name"]).values()))
        self.jobs = {int(rank): str(names[job]) for rank, job in zip(*run.table("ranks", ["rank", "job"]).values())}

    def by_job(self, sizes):
        """{job: sum}, the largest first."""
        sums = {}
        for (source, _), size in sizes.items():
            sums[self.jobs[source]] = sums.get(self.jobs[source], 0) + size
        return dict(sorted(sums.items(), key=lambda pair: (-pair[1], pair[0])))

    def ends_of(self, link):
        return dict(zip(("link", "from", "to"), (link, *map(str, self.names[link]))))


def tree(machine, root, members, stopped, times, sizes):
    links = [{**machine.ends_of(link), "time": sum(cause[0] for cause in stopped[link].values()),
              "stops": sum(cause[1] for cause in stopped[link].values()),
              "cause": max(stopped[link], key=lambda cause: (stopped[link][cause][0], -cause))} for link in members]
    links.sort(key=lambda link: (-link["time"], link["link"]))
    end = machine.ends[root]
    senders = {pair: size for pair, size in sizes.items() if machine.nodes[pair[1]] == end}
    held = {machine.starts[link] for link in members}
    victims = {pair: time for pair, time in times.items()
               if machine.nodes[pair[0]] in held and machine.nodes[pair[1]] != end and senders}
    causes = [cause for link in members for cause in stopped[link].values()]
    return {**machine.ends_of(root), "time": sum(link["time"] for link in links),
            "first": min(cause[2] for cause in causes), "last": max(cause[3] for cause in causes), "links": links,
            "jobs": machine.by_job(senders), "senders": largest(senders, "bytes"), "victims": largest(victims, "time")}


def pause_trees(run):
    """[{link, from, to, time, first, last, links, jobs, senders, victims}], a tree for each root, the largest time first. Times
    in ps: of `links`, the time for which they were stopped; of `victims`, the time for which messages were held that leave
    hosts whose link the tree stopped, and that do not go to the host where its root ends. `senders`: to the host where the
    root ends, `jobs` the bytes of each job there; none if it is a switch, and then victims cannot be identified either."""
    stopped = stopped_links(run)
    if not stopped:
        return []
    machine, (times, sizes) = Machine(run), held_up(run)
    members = {}
    for link in stopped:
        members.setdefault(root_of(link, stopped), []).append(link)
    trees = [tree(machine, root, links, stopped, times, sizes) for root, links in members.items()]
    return sorted(trees, key=lambda found: (-found["time"], found["link"]))


def pairs_text(pairs, text):
    shown = [f"{pair['source']} -> {pair['destination']} {text(pair)}" for pair in pairs[:MAX_PAIRS]]
    return ", ".join(shown) + (f", and {len(pairs) - MAX_PAIRS} more" if len(pairs) > MAX_PAIRS else "")
