# SPDX-License-Identifier: GPL-2.0-only
"""Collectives in the form of nccl-tests: size, time, algorithm and bus bandwidth."""

import numpy as np

from report_page.values import packed

COLUMNS = ("id", "job", "kind", "algorithm", "label", "ranks", "bytes", "start", "time", "algbw", "busbw")
MAX_CALLS = 20_000


class Collectives:
    """The table /collectives and its groups: calls of one job, kind, algorithm, number of ranks and size."""

    def __init__(self, run, jobs):
        self.there = run.has("collectives", *COLUMNS) and run.rows("collectives") > 0
        if not self.there:
            return
        for name, values in zip(COLUMNS, run.columns("collectives", *COLUMNS)):
            setattr(self, name, values)
        self.jobs = jobs
        keys = {}
        rows = zip(self.job.tolist(), self.kind, self.algorithm, self.ranks.tolist(), self.bytes.tolist())
        self.group = np.array([keys.setdefault(row, len(keys)) for row in rows])
        self.keys = list(keys)

    def title(self, group):
        job, kind, _, ranks, size = self.keys[group]
        return {"job": self.jobs.name_of(job), "kind": str(kind), "ranks": ranks, "bytes": size}

    def order(self):
        """Sorted from small to large, as in nccl-tests."""
        return sorted(range(len(self.keys)), key=lambda i: (self.keys[i][0], str(self.keys[i][1]), self.keys[i][3:],
                                                            str(self.keys[i][2])))

    def row(self, group):
        job, kind, algorithm, ranks, size = self.keys[group]
        mine = self.group == group
        done = mine & (self.time > 0)
        times = self.time[done]
        return {
            "group": group, "job": self.jobs.name_of(job), "kind": str(kind), "algorithm": str(algorithm),
            "ranks": ranks, "bytes": size, "count": int(mine.sum()), "finished": len(times),
            "min": int(times.min()) if len(times) else -1, "mean": float(times.mean()) if len(times) else -1,
            "max": int(times.max()) if len(times) else -1,
            "algbw": float(self.algbw[done].mean()) if len(times) else 0.0,
            "busbw": float(self.busbw[done].mean()) if len(times) else 0.0,
        }

    def table(self):
        if not self.there:
            return None
        some = np.arange(len(self.id))[:MAX_CALLS]
        labels, number = np.unique(self.label.astype(str)[some], return_inverse=True)
        return {
            "groups": [self.row(group) for group in self.order()], "total": len(self.id), "calls": len(some),
            "id": packed(self.id[some], "uint32"), "group": packed(self.group[some], "uint32"),
            "start": packed(self.start[some], "float64"), "time": packed(self.time[some], "float64"),
            "algbw": packed(self.algbw[some], "float64"), "busbw": packed(self.busbw[some], "float64"),
            "label": packed(number, "uint32"), "labels": labels.tolist(),
        }

    def most_delayed(self, excess):
        """The group whose messages were delayed most against an idle network, and its share."""
        if not self.there or len(excess) == 0 or excess.sum() <= 0:
            return None
        of_row = np.where(self.id < len(excess), excess[np.minimum(self.id, len(excess) - 1)], 0)
        sums = np.bincount(self.group, weights=of_row, minlength=len(self.keys))
        best = int(sums.argmax())
        return self.title(best) | {"share": float(sums[best] / excess.sum())}
