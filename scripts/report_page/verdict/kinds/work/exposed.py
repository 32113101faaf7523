# SPDX-License-Identifier: GPL-2.0-only
from report_page.values import time_text
from report_page.verdict.kind import Kind


class Exposed(Kind):
    name = "exposed"

    def what_helps(self, evidence):
        return ("Faster links, another algorithm or protocol of the collectives, or more overlap with compute "
                f"may help, by at most {time_text(evidence.network_saves())}")
