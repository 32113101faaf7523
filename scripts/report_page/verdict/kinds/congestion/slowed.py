# SPDX-License-Identifier: GPL-2.0-only
from report_page.attribution import CONGESTION
from report_page.verdict.congestion import Congestion
from report_page.verdict.faults import slower


class Slowed(Congestion):
    name = "slowed"
    help = "until then another placement of ranks, or paths around it, may help"
    found = "A slow link was found"
    cause = "A link that is slower than it should be"
    # A repair saves more than a better use of the slow link.
    limited = False

    def claims(self, evidence, largest):
        if largest in CONGESTION:
            demands = evidence.demands
            return evidence.parts.exact and demands.edge_bounds() and demands.edge_row == evidence.slowed
        row = evidence.link_claims(largest)
        return row is not None and row == evidence.slowed

    def at_edge(self, evidence):
        """The link would be less busy at its rate."""
        return False

    def explains(self, evidence, delays):
        """The slow link itself may be the busiest one."""
        return True

    def culprit(self, evidence):
        return evidence.slowed

    def what_it_did(self, evidence, row):
        return f" sent {slower(evidence, row)}; "
