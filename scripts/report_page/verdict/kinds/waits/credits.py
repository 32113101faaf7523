# SPDX-License-Identifier: GPL-2.0-only
from report_page.verdict.kind import Kind


class Credits(Kind):
    name = "credits"
    follows_congestion = True
    help = "More or larger slots of the protocol (`workload.credits`, `chunk_size`), or more channels, may help"
