# SPDX-License-Identifier: GPL-2.0-only
from report_page.attribution import CONGESTION
from report_page.values import percent, time_text
from report_page.verdict.beside import against_waits_of_compute
from report_page.verdict.busy_link import mostly, rest
from report_page.verdict.kind import Kind


class Compute(Kind):
    name = "compute"
    helps_under_congestion = True

    def claims(self, evidence, largest):
        # Where launches and local handling are largest, one rank that computes for longer does not change that.
        alone = evidence.parts.exact and largest not in (*CONGESTION, "local")
        return alone and evidence.demands.compute_bounds()

    def bound(self, evidence, single):
        demands = evidence.demands
        if not single:
            return super().bound(evidence, single)
        return (f"Compute of one rank bounds {evidence.whole()}: rank {demands.slowest} computes, or serves storage, for "
                f"{percent(demands.compute)} of it, so that all else together can save at most "
                f"{rest(evidence, demands.compute)}{mostly(evidence)}.")

    def what_helps(self, evidence):
        return (f"Faster devices, lower precision or less recomputation may help{against_waits_of_compute(evidence)}; a better network "
                f"would save at most {time_text(evidence.network_saves())}")

    def also_helps(self, evidence):
        return ""
