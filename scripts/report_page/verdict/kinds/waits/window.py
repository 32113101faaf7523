# SPDX-License-Identifier: GPL-2.0-only
from report_page.values import percent, time_text
from report_page.verdict.kind import Kind


class Window(Kind):
    name = "window"
    # A full window leaves resources idle, so that it is asked before these.
    precedence = 1
    follows_congestion = True
    help = "A larger window (`network.window`) may help"

    def claims(self, evidence, largest):
        """Such waits are no consequence of congestion."""
        return evidence.parts.exact and evidence.demands.window_bounds()

    def bound(self, evidence, single):
        if not single:
            return super().bound(evidence, single)
        return (f"{self.title} bounds {evidence.whole()}: rank {evidence.demands.rank} waits for them for "
                f"{percent(evidence.demands.waits)} of it, though what it sends waits in no long queues.")

    def advice(self, evidence, single):
        if not single:
            return super().advice(evidence, single)
        saves = time_text(evidence.demands.window_saves() * evidence.job_time)
        return f"{self.help}, by at most {saves}; faster links would not."
