# SPDX-License-Identifier: GPL-2.0-only
"""What delays a run beside its bound, and what may help against that."""

from report_page.attribution import CONGESTION
from report_page.demands import LONG_WAITS
from report_page.values import percent, time_text
from report_page.verdict.thresholds import NOTEWORTHY


def also_a_straggler(evidence):
    straggler = evidence.straggler
    if straggler is None:
        return ""
    waited = ", and others wait for it" if evidence.others_wait() else ""
    return f"; rank {straggler.rank} computes {time_text(straggler.late)} longer than the median{waited}"


def against_straggler(evidence):
    """What a slow rank may save where it is not the limit."""
    straggler = evidence.straggler
    if straggler is None:
        return ""
    return f"; less work for rank {straggler.rank}, or a faster one, by at most {time_text(straggler.late)}"


def on_path(evidence):
    """Share of the critical path that congestion delays; without it what the ranks of the job were delayed on average."""
    return sum(evidence.path.get(name, 0.0) for name in CONGESTION) if evidence.path else sum(evidence.shares.values())


def against_delays(evidence, kind):
    """What may help against congestion that is not the limit."""
    share = on_path(evidence)
    if not evidence.congested or share < (NOTEWORTHY if kind.hides_congestion(evidence) else LONG_WAITS):
        return ""
    where = "of the critical path" if evidence.path else "of it"
    return f"; and against delays by congestion, {percent(share)} {where}: {evidence.worst_congestion.remedy(evidence)}"


def against_waits_of_compute(evidence):
    """What may help beside less compute where ranks wait much for their hosts, a rank for acknowledgements, or ranks for each
    other, as in the bubble of a pipeline."""
    parts, demands = evidence.parts, evidence.demands
    if parts.share("host") >= LONG_WAITS:
        return (f", and against {evidence.portion('host')}, of waiting for the host CUDA graphs (`workload.cuda_graphs`) or fused "
                "kernels")
    if demands.window_saves() >= LONG_WAITS:
        return (f", and against {time_text(demands.waits * evidence.job_time)} for which rank {demands.rank} waits for "
                "acknowledgements a larger window (`network.window`)")
    if parts.share("peers") < LONG_WAITS:
        return ""
    return (f", and against {evidence.portion('peers')}, of waiting for peers more even work, or more micro-batches or another "
            "schedule of a pipeline")
