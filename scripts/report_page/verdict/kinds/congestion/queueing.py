# SPDX-License-Identifier: GPL-2.0-only
from report_page.values import rate_text
from report_page.verdict.busy_link import bound_by_busiest
from report_page.verdict.congestion import Congestion


class Queueing(Congestion):
    name = "queueing"
    help = "more or faster links there, another placement of ranks, {paths}or fewer senders at a time may help"
    # Where the link is that of a destination, all paths end there.
    at_destination = "fewer senders at a time, less data to it, or a faster link may help; other paths would not"
    # Faster links save what queues take, and more.
    limited = False

    def claims(self, evidence, largest):
        row = evidence.link_claims(largest)
        return row is not None and row != evidence.slowed and evidence.waits_inside(row)

    def bound(self, evidence, single):
        return bound_by_busiest(evidence) if single and not self.at_edge(evidence) else super().bound(evidence, single)

    def at_link(self, evidence):
        links, blamed = evidence.facts.links, evidence.blamed
        if blamed.link is None:
            return ""
        fastest = links.slower(blamed.row)
        if fastest is None and blamed.at_host:
            return f"Many send to {links.target_name[blamed.row]} at once: "
        if len(blamed.link["waiting"]) > 1:
            return "Jobs share that link, so that placing them apart helps first; "
        if fastest is None:
            return ""
        return f"That link has {rate_text(links.values['rate'][blamed.row])}, and links before it have {rate_text(fastest)}: "

    def remedy(self, evidence):
        return self.at_destination if evidence.blamed.at_host else super().remedy(evidence)
