# SPDX-License-Identifier: GPL-2.0-only
from report_page.verdict.congestion import Congestion


class Reordering(Congestion):
    name = "reordering"
    help = ("paths of more equal length and load, by another load balancing (`network.load_balancing`) or more links, may "
            "help")
