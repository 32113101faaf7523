# SPDX-License-Identifier: GPL-2.0-only
"""The link to blame for the worst congestion."""

import numpy as np

from report_page.demands import LONG_WAITS


class Blamed:
    """`row` of the links, and `link`, its row of the table of delays; both None if the file does not tell which link it is."""

    def __init__(self, evidence):
        facts = evidence.facts
        row = evidence.worst_congestion.culprit(evidence)
        # Whether the kind of congestion names the link, and not the delay at links.
        self.by_kind = row is not None
        if row is None:
            row = self.most_delay(facts) if facts.delays.order else evidence.bottleneck
        self.link = facts.delays.row(row) if row is not None else None
        self.row = int(np.flatnonzero(facts.links.id == self.link["id"])[0]) if self.link else None
        self.at_host = self.link is not None and bool(facts.links.reaches_server()[self.row])

    @staticmethod
    def most_delay(facts):
        """The row of the link that caused most delay; of the network, if much of the delay is there: what waits at the ports of
        servers are packets that these send themselves, which a full network holds back there."""
        order, delay = facts.delays.order, facts.delays.of_link
        inside = facts.links.queues_own()
        return next((row for row in order if not inside[row] and delay[row] >= LONG_WAITS * delay[order[0]]), order[0])
