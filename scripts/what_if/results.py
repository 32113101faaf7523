# SPDX-License-Identifier: GPL-2.0-only
"""What a run's results say about where changes may help."""

import h5py
import numpy as np

# Of the time of a job: what takes less is not worth a change.
NOTEWORTHY = 0.05


class Results:
    """Of the job that takes longest where jobs differ, not counting background jobs."""

    def __init__(self, path):
        with h5py.File(path, "r") as file:
            self.attributes = {name: value for name, value in file["manifest/model"].attrs.items()}
            self.read_jobs(file["jobs"])
            self.read_ranks(file["ranks"])
            self.read_links(file["links"])
            self.read_collectives(file["collectives"] if "collectives" in file else None)

    def read_jobs(self, jobs):
        self.jobs = jobs["name"].asstr()[:].tolist()
        times = np.where(jobs["background"][:] != 0, -1, jobs["time"][:])
        self.job = int(times.argmax())
        self.time = max(int(times.max()), 1)

    def read_ranks(self, ranks):
        columns = {name: ranks[name][:] for name in ranks if isinstance(ranks[name], h5py.Dataset)}
        self.computes = bool((columns["compute"] > 0).any())
        self.launches = bool((columns.get("host", np.zeros(1)) > 0).any())
        self.paused = bool((columns.get("part_paused", np.zeros(1)) > 0).any())
        mine = columns["job"] == self.job
        # Without the time in which others had not begun to communicate yet.
        self.communicates = float((columns["exposed"][mine] - columns["waiting"][mine].astype(np.float64)).mean()) / self.time
        slots = columns.get("part_credits", np.zeros(len(mine)))[mine].astype(np.float64)
        self.waits_for_slots = bool(slots.max(initial=0) / self.time >= NOTEWORTHY)
        self.slow_ranks = slow_ranks(columns["rank"][mine], columns["compute"][mine].astype(np.float64), self.time)

    def read_links(self, links):
        names, busy, rates = links["link_class"].asstr()[:], links["busy"][:], links["rate"][:]
        most = {name: int(busy[names == name].max()) for name in np.unique(names)}
        # Classes of links that carried something, the busiest first.
        self.links = sorted((name for name in most if most[name] > 0), key=lambda name: (-most[name], name))
        self.drops = bool((links["dropped"][:] > 0).any())
        ends = list(zip(links["from_name"].asstr()[:].tolist(), links["to_name"].asstr()[:].tolist()))
        self.slow_links = {}  # {class: [(from, to, how many times slower than the others)]}
        for name in self.links:
            rows = np.flatnonzero(names == name)
            self.slow_links.update({name: found for found in [slow_links(ends, rates, busy, rows)] if found})

    def read_collectives(self, collectives):
        """{kind: (time of all calls, algorithms)}"""
        self.collectives = {}
        if collectives is None:
            return
        mine = collectives["job"][:] == self.job
        kinds, algorithms = (collectives[name].asstr()[:][mine] for name in ("kind", "algorithm"))
        times = collectives["time"][:][mine]
        for kind in np.unique(kinds):
            of_kind = kinds == kind
            self.collectives[str(kind)] = (int(times[of_kind].sum()), set(algorithms[of_kind].tolist()))


def few(count, of):
    """Whether so many are outliers: in a group that is larger, it is the group that differs."""
    return 0 < count <= max(of // 8, 1) < of


def slow_ranks(rank, compute, time):
    """[(rank, how many times longer than the median it computes)] of few ranks whose computation is longer by what is much of
    the job's time."""
    if len(rank) < 3 or not np.median(compute):
        return []
    usual = float(np.median(compute))
    slow = np.flatnonzero(compute - usual > max(NOTEWORTHY * time, (compute.max() - usual) / 2))
    return [(int(rank[i]), compute[i] / usual) for i in slow] if few(len(slow), len(rank)) else []


def slow_links(ends, rates, busy, rows):
    """Links of `rows` slower than all others of their class, which have one rate, if they are few and carry something."""
    usual = rates[rows].max()
    pairs = {}
    for row in rows.tolist():
        pairs.setdefault(frozenset(ends[row]), []).append(row)
    slow = [of_pair for of_pair in pairs.values() if len(ends[of_pair[0]]) == 2 and (rates[of_pair] < usual).all()
            and len(set(rates[of_pair].tolist())) == 1]
    if not few(len(slow), len(pairs)) or (rates[rows] < usual).sum() != sum(map(len, slow)):
        return []
    return [(*ends[of_pair[0]], float(usual / rates[of_pair[0]])) for of_pair in slow if busy[of_pair].any()]
