# SPDX-License-Identifier: GPL-2.0-only
from report_page.attribution import CONGESTION
from report_page.values import percent, time_text
from report_page.verdict.busy_link import mostly, rest
from report_page.verdict.kind import Kind


class Host(Kind):
    name = "host"
    helps_under_congestion = True

    def claims(self, evidence, largest):
        return evidence.parts.exact and largest not in CONGESTION and evidence.demands.host_bounds()

    def bound(self, evidence, single):
        demands = evidence.demands
        if not demands.host_bounds():
            return super().bound(evidence, single)
        return (f"Launches bound {evidence.whole()}: the host of rank {demands.launching} launches kernels and collectives for "
                f"{percent(demands.host)} of it, so that all else together can save at most "
                f"{rest(evidence, demands.host)}{mostly(evidence)}.")

    def what_helps(self, evidence):
        return ("CUDA graphs (`workload.cuda_graphs`), fused kernels (`workload.framework`), larger micro-batches, which need fewer "
                f"launches, or a faster host may help, by at most {time_text(evidence.demands.host_saves() * evidence.job_time)}")
