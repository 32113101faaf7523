# SPDX-License-Identifier: GPL-2.0-only
from report_page.verdict.kind import Kind


class Local(Kind):
    name = "local"
    helps_under_congestion = True
    help = ("Another algorithm or protocol of the collectives, more channels (`workload.channels`), larger messages or fewer "
            "launches may help")

    def hides_congestion(self, evidence):
        return not evidence.path
