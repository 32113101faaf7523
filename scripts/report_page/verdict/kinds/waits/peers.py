# SPDX-License-Identifier: GPL-2.0-only
from report_page.verdict.kind import Kind


class Peers(Kind):
    name = "peers"
    helps_under_congestion = True
    help = "A more even distribution of work may help, and in a pipeline more micro-batches or another schedule"

    def hides_congestion(self, evidence):
        return not evidence.path
