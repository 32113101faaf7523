# SPDX-License-Identifier: GPL-2.0-only
"""A rank that computes longer than all others of its job."""

from collections import namedtuple

import numpy as np

from report_page.verdict.thresholds import STRAGGLER

# `late`: by how much longer than the median of its job the rank computed.
Straggler = namedtuple("Straggler", "rank late")


def of_job(facts, job):
    """(rank, compute) of the ranks of a job."""
    rank, compute = facts.run.columns("ranks", "rank", "compute")
    mine = facts.jobs.of_rank(rank.astype(np.int64)) == job
    return rank[mine], compute[mine]


def find_straggler(facts, job):
    """The straggler of a job, if it computes longer by much of the run; else None."""
    if not facts.run.has("ranks", "rank", "compute"):
        return None
    rank, compute = of_job(facts, job)
    if len(rank) < 2:
        return None
    compute = compute.astype(np.float64)
    late = compute.max() - np.median(compute)
    # Stages of a pipeline differ in groups; a straggler is alone.
    alone = (compute > np.median(compute) + late / 2).sum() <= max(len(compute) // 8, 1)
    return Straggler(int(rank[compute.argmax()]), late) if alone and late > STRAGGLER * facts.run.end else None
