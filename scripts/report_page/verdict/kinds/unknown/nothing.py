# SPDX-License-Identifier: GPL-2.0-only
from report_page.verdict.kind import Kind


class Nothing(Kind):
    """The file has no times of ranks, or congestion causes all of these."""

    name = "nothing"

    def bound(self, evidence, single):
        return f"The file does not say what bounds {evidence.whole()}."
