# SPDX-License-Identifier: GPL-2.0-only
from report_page.verdict.kind import Kind


class Own(Kind):
    name = "own"
    follows_congestion = True
    help = "More channels or NICs, or fewer messages at a time, may help"
