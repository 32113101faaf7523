# SPDX-License-Identifier: GPL-2.0-only
from report_page.verdict.kind import Kind


class Sending(Kind):
    name = "sending"
    follows_congestion = True
    help = "Faster links, less data, or more overlap with compute may help"
