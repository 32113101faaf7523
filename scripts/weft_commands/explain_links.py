# SPDX-License-Identifier: GPL-2.0-only
"""Links ranked by the delay that they caused, with the jobs that waited, the jobs in front, and the collectives that were delayed;
and links at which packets were lost, or that sent below their rate."""

import numpy as np

from weft_results import slowed_links

MAX_COLLECTIVES = 3


def named_job(name):
    """A single job without a name is called "job" in results."""
    return "the job" if name in ("", "job") else f"job {name}"


def job_names(run):
    names = {int(job): str(name) for job, name in zip(*run.table("jobs", ["job", "name"]).values())}
    return lambda job: "nobody or several jobs" if job < 0 else named_job(names.get(job, ""))


def shares(names, jobs, times):
    found = {}
    for job, time in zip(jobs.tolist(), times.tolist()):
        found[names(job)] = found.get(names(job), 0) + time
    return dict(sorted(found.items(), key=lambda pair: (-pair[1], pair[0])))


def waits_of_collectives(run):
    """{link: {collective: ps}} of the links for which last packets of messages waited longest; {} without messages."""
    columns = [f"{name}_{place}" for place in (1, 2, 3) for name in ("slow_link", "slow_wait")]
    if not run.has("messages", "collective", *columns):
        return {}
    found = {}
    for block in run.blocks("messages", ["collective", *columns]):
        for place in (1, 2, 3):
            some = (block[f"slow_wait_{place}"] > 0) & (block["collective"] >= 0)
            keys = np.stack([block[f"slow_link_{place}"][some], block["collective"][some]], axis=1)
            pairs, where = np.unique(keys, axis=0, return_inverse=True)
            times = np.zeros(len(pairs), dtype=np.int64)
            np.add.at(times, where.reshape(-1), block[f"slow_wait_{place}"][some])
            for (link, collective), time in zip(pairs.tolist(), times.tolist()):
                of_link = found.setdefault(link, {})
                of_link[collective] = of_link.get(collective, 0) + time
    return found


def delaying_links(run):
    """[{link, from, to, time, first, last, waiting, ahead, collectives}], the largest time first; [] if nothing waited
    or the file does not have this data."""
    if run.rows("link_waits") == 0:
        return []
    waits, names = run.table("link_waits"), job_names(run)
    ends = run.table("links", ["from_name", "to_name"])
    of_collectives = waits_of_collectives(run)
    labels = run.column("collectives", "label") if run.rows("collectives") else []
    links = []
    for link in np.unique(waits["link"]).tolist():
        rows = {name: column[waits["link"] == link] for name, column in waits.items()}
        hit = sorted(of_collectives.get(link, {}).items(), key=lambda pair: (-pair[1], pair[0]))[:MAX_COLLECTIVES]
        links.append({"link": link, "from": str(ends["from_name"][link]), "to": str(ends["to_name"][link]),
                      "time": int(rows["time"].sum()), "first": int(rows["first"].min()),
                      "last": int(rows["last"].max()), "waiting": shares(names, rows["job"], rows["time"]),
                      "ahead": shares(names, rows["ahead"], rows["time"]),
                      "collectives": [{"id": number, "label": str(labels[number]), "time": time}
                                      for number, time in hit]})
    return sorted(links, key=lambda link: (-link["time"], link["link"]))


def lossy_links(run):
    """[{link, from, to, lost, dropped}] of links on which packets got lost, or to which packets found no room: most first."""
    if not run.has("links", "from_name", "to_name", "lost", "dropped"):
        return []
    links = run.table("links", ["from_name", "to_name", "lost", "dropped"])
    missing = links["lost"].astype(np.int64) + links["dropped"].astype(np.int64)
    order = np.argsort(-missing, kind="stable")
    return [{"link": link, "from": str(links["from_name"][link]), "to": str(links["to_name"][link]),
             "lost": int(links["lost"][link]), "dropped": int(links["dropped"][link])}
            for link in order[:np.count_nonzero(missing)].tolist()]


def links_below_their_rate(run):
    """[{link, from, to, rate, average, longer}] of links whose rate the experiment lowers: the one that this took longest
    first. `average`: bit/s at which it sent; `longer`: ps."""
    found = slowed_links.slowed_links(run)
    if not found:
        return []
    links = run.table("links", ["id", "from_name", "to_name", "rate"])
    rows = {int(number): row for row, number in enumerate(links["id"])}
    return [{"link": link, "from": str(links["from_name"][rows[link]]), "to": str(links["to_name"][rows[link]]),
             "rate": int(links["rate"][rows[link]]), "average": average, "longer": round(longer)}
            for link, (average, longer) in sorted(found.items(), key=lambda pair: (-pair[1][1], pair[0]))]
