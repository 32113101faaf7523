# SPDX-License-Identifier: GPL-2.0-only
"""What all kinds of congestion share: delays in the network, the link to blame, and what may help there."""

from report_page.attribution import CONGESTION, TITLES
from report_page.values import percent, time_text
from report_page.verdict import registry
from report_page.verdict.beside import on_path
from report_page.verdict.busy_link import bound_by_edge, edge_advice
from report_page.verdict.kind import Kind
from report_page.verdict.thresholds import SHOWN


class Congestion(Kind):
    # The beginning of the sentence on the place.
    found = "Congestion was found"
    # Whether it is known how much a better use of the same links can save.
    limited = True

    @property
    def cause(self):
        return f"Congestion, mostly {TITLES[self.name]},"

    def at_edge(self, evidence):
        """Whether a link of a host would be as busy without congestion."""
        return evidence.parts.exact and evidence.demands.edge_bounds()

    def bound(self, evidence, single):
        if self.at_edge(evidence):
            return bound_by_edge(evidence)
        if evidence.parts.exact:
            return self.delayed(evidence)
        if not evidence.parts.total:
            return super().bound(evidence, single)
        # Messages do not tell by how much a slow link delayed them.
        share = evidence.shares.get(self.name)
        said = f"; {TITLES[self.name]} is {percent(share)} of the time of messages" if share is not None else ""
        return (f"Exposed communication slowed by congestion, mostly {TITLES[self.name]}, bounds {evidence.whole()} "
                f"({evidence.measured()}{said}).")

    def delayed(self, evidence):
        """Delays in the network, and waits that follow from them."""
        share, whole = evidence.parts.share, evidence.whole()
        delays = sorted((name for name in (*CONGESTION, *evidence.follows()) if share(name) >= SHOWN),
                        key=lambda name: (name != self.name, -share(name)))
        listed = ", ".join(f"{TITLES[name]} {percent(share(name))}" for name in delays[:3])
        compute = f", {percent(share('compute'))} compute" if share("compute") >= SHOWN else ""
        critical = f", and of its critical path {percent(on_path(evidence))}" if evidence.path else ""
        if self.explains(evidence, share(*delays)):
            return f"{self.cause} bounds {whole}: {percent(share(*delays))} of it are delays ({listed}){critical}{compute}."
        # Of messages that are handed over at once all but the first wait behind others on an idle network, too.
        saves = evidence.demands.network_saves()
        return (f"{self.cause} delays {whole}, by at most {time_text(saves * evidence.job_time)}, {percent(saves)}"
                f"{busy_without_congestion(evidence)} (mean of ranks: {listed}){critical}{compute}.")

    def explains(self, evidence, delays):
        """Whether the network could save all that is delayed."""
        return delays <= evidence.demands.network_saves() + SHOWN

    def advice(self, evidence, single):
        return edge_advice(evidence) if self.at_edge(evidence) else self.advice_against(evidence)

    def advice_against(self, evidence):
        if evidence.demands.crossing_bounds() and crosses_there(evidence):
            return advice_to_widen(evidence)
        return f"{self.first(evidence)}{self.remedy(evidence)}{self.at_most(evidence)}."

    def first(self, evidence):
        """The beginning of the advice: what is known of the link to blame."""
        if evidence.blamed.row in evidence.facts.slowed:
            return "That link is slower than it should be, and repairing it helps first; "
        return self.at_link(evidence) or "What to try first: "

    def at_link(self, evidence):
        return ""

    def remedy(self, evidence):
        """What may help, as a clause."""
        return self.help.format(**self.words(evidence))

    def words(self, evidence):
        """What stands for names in braces in `help`."""
        return {"paths": f"{evidence.paths.text}, " if evidence.paths.text else ""}

    def at_most(self, evidence):
        """How much a better use of the same links can save. More or faster links could save more."""
        if not self.limited or not evidence.parts.exact or evidence.fills(evidence.blamed.row):
            return ""
        return f", by at most {time_text(evidence.demands.network_saves() * evidence.job_time)}"

    def culprit(self, evidence):
        """The row of the link to blame, if this kind of congestion is the worst; None if it is the one that caused most delay."""
        return None

    def what_it_did(self, evidence, row):
        """What the culprit did, between its name and how long it was busy."""
        return ""


class HeldBack(Congestion):
    """Senders are held back: where they share a link inside the network, other paths may lead around it."""

    # Where the link is not that of a destination, flows share it by their placement and paths.
    beside = "another placement of ranks, {paths}"

    def leads_around(self, evidence):
        return True

    def remedy(self, evidence):
        blamed = evidence.blamed
        if evidence.fills(blamed.row):
            return registry.by_name("queueing").remedy(evidence)
        text = super().remedy(evidence)
        if blamed.row is None or blamed.at_host or not self.leads_around(evidence):
            return text
        return self.beside.format(**self.words(evidence)) + text


def crossing(evidence):
    """What keeps the links between a switch and those above it busy, and for how long, as a clause."""
    links, demands = evidence.facts.links, evidence.demands
    rows = demands.crossing_rows
    goes_up = links.tiers[links.to_node[rows[0]]] > links.tiers[links.from_node[rows[0]]]
    switch = links.source_name[rows[0]] if goes_up else links.target_name[rows[0]]
    way = f"goes up from {switch}" if goes_up else f"comes down to {switch}"
    its = f"its {len(rows)} links there" if len(rows) > 1 else "its link there"
    return f"what {way} keeps {its} busy for {percent(demands.crossing)} of it"


def crosses_there(evidence):
    """Whether the link to blame is between the same tiers: of links that are about as bad it is any one."""
    links, row = evidence.facts.links, evidence.blamed.row

    def tiers(place):
        return sorted((links.tiers[links.from_node[place]], links.tiers[links.to_node[place]]))

    return row is not None and tiers(row) == tiers(evidence.demands.crossing_rows[0])


def advice_to_widen(evidence):
    """The network is too narrow for what its hosts send to each other, however that is spread over it."""
    clause = crossing(evidence)
    saves = time_text(evidence.demands.paths_save() * evidence.job_time)
    return (f"{clause[0].upper() + clause[1:]}, whatever paths it takes: more or faster links there, another placement of ranks or less data "
            f"would help; all else, such as other paths and other congestion control, by at most {saves}.")


def busy_without_congestion(evidence):
    """The link of a host for which a job takes long even without congestion, if that is the longest such resource."""
    row, demands = evidence.demands.edge_row, evidence.demands
    if row is None or demands.edge < max(demands.compute, demands.host):
        return ""
    return f", because what has to pass {evidence.facts.links.name(row)} keeps it busy for {percent(demands.edge)} of it"
