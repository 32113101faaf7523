# SPDX-License-Identifier: GPL-2.0-only
"""Other paths for what passes a link."""

from functools import cached_property

from report_page.demands import LONG_WAITS
from support.grids import choices, same_way
from support.routings import BETWEEN_DIMENSIONS, BY_HASH, BY_THEMSELVES, alternatives


class Paths:
    """`routings` names routings to try, `text` all that may choose better paths; empty texts if nothing may."""

    def __init__(self, evidence):
        self.facts = evidence.facts
        self.routing, self.key = self.routing_and_key()
        even = self.evenly_busy(evidence.blamed.row)
        self.routings = "" if even else self.other_routings()
        self.text = "" if even else ", ".join(text for text in (self.routings, self.other_balancing()) if text)

    def routing_and_key(self):
        """The routing between switches, and its key: on servers the machine's own leads to NICs, and the network has another one."""
        name = self.facts.run.attribute("manifest/model", "network_routing", "")
        if name:
            return str(name), "topology.server.network_routing"
        return str(self.facts.run.attribute("manifest/model", "routing", "")), "network.routing"

    @cached_property
    def choices(self):
        """On tori and grids the shares of the delay of messages that another order of dimensions, or the other way around a ring, may
        avoid: traffic along one dimension has neither."""
        return choices(self.facts.run, self.facts.links)

    def evenly_busy(self, row):
        """Whether all links of its class are about as busy, so that other paths of the same lengths save little."""
        if row is None:
            return False
        links = self.facts.links
        # Messages that cannot take a ring the other way stay on the links of their way.
        there = same_way(links, row) if self.choices[1] < LONG_WAITS else links.link_class == links.link_class[row]
        busy = links.values["busy"][there]
        return bool(busy.mean() > (1 - LONG_WAITS) * busy.max())

    def other_routings(self):
        names = [f"`{name}`" for name in alternatives(self.routing)
                 if name not in BETWEEN_DIMENSIONS or self.choices[0] >= LONG_WAITS]
        return f"another routing ({' or '.join(names).replace('`', f'`{self.key}: ', 1)})" if names else ""

    def other_balancing(self):
        if self.routing in BY_HASH:
            balances = not self.routing.endswith("_minimal_lanes")
            return "a path for each packet (`network.load_balancing: spray`)" if balances else ""
        if self.routing in BY_THEMSELVES:
            return ""
        # In tori and grids load balancing chooses between both ways around.
        either = self.routing.startswith("dimension") and self.choices[1] >= LONG_WAITS
        no_other = not self.routings and not self.routing.startswith("dimension")
        return "better load balancing (`network.load_balancing`)" if no_other or either else ""
