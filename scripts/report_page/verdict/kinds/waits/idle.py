# SPDX-License-Identifier: GPL-2.0-only
from report_page.verdict.kind import Kind


class Idle(Kind):
    name = "idle"
    helps_under_congestion = True
    help = "More micro-batches or another schedule may fill the idle time"
