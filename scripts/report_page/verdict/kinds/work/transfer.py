# SPDX-License-Identifier: GPL-2.0-only
from report_page.attribution import TITLES
from report_page.demands import BUSY, LONG_WAITS
from report_page.values import percent, ratio
from report_page.verdict import registry
from report_page.verdict.beside import against_waits_of_compute
from report_page.verdict.busy_link import bound_by_busiest
from report_page.verdict.kind import Kind

# Below this utilization of all links their rates hardly matter.
IDLE_LINKS = 0.1
# From this share on latencies are most of what messages take.
MOST_LATENCY = 0.5


class Transfer(Kind):
    name = "transfer"
    helps_under_congestion = True

    def claims(self, evidence, largest):
        row = evidence.link_claims(largest)
        return row is not None and row != evidence.slowed and not evidence.waits_inside(row)

    def hides_congestion(self, evidence):
        return True

    def bound(self, evidence, single):
        return bound_by_busiest(evidence) if single else super().bound(evidence, single)

    def advice(self, evidence, single):
        busiest = evidence.facts.links.values["utilization"].max(initial=0)
        latency = self.latency(evidence)
        if not 0 < busiest < IDLE_LINKS and not latency:
            return super().advice(evidence, single)
        share = f", and latencies are {percent(latency)} of the time of messages" if latency else ""
        return (f"Links were busy for at most {percent(busiest)} of the run{share}, so that latencies count: an algorithm with "
                "fewer steps, fewer and larger messages, or shorter ways may help.")

    def what_helps(self, evidence):
        # Where latencies are most of what messages take, though a link is busy for long, both count.
        both = share_of_latency(evidence) >= MOST_LATENCY and not evidence.demands.edge_bounds()
        shorter = "fewer steps of the algorithm, shorter ways, " if both else ""
        waits = against_waits_of_compute(evidence) if evidence.parts.share("compute") >= LONG_WAITS else ""
        return f"Faster links, less data, {shorter}or more overlap with compute may help{waits}"

    def also_helps(self, evidence):
        return against_waits(evidence) + super().also_helps(evidence)

    def latency(self, evidence):
        """The share of latencies in the time of messages, if that is most of it, and no link is busy for so long; else None."""
        share = share_of_latency(evidence)
        rates_count = evidence.demands.link > evidence.parts.share("transfer") / 2
        return share if share >= MOST_LATENCY and not rates_count else None


def share_of_latency(evidence):
    sums = evidence.facts.messages.sums
    return ratio(sums["latency"], sums["alone"])


def against_waits(evidence):
    """What may help beside against the longest waits on the critical path that congestion does not cause: means over ranks
    hide them, as few ranks wait for slots or behind their own messages, and all others for these ranks."""
    # Messages that wait behind others at a link that is busy for long wait for its rate, and not for more channels.
    waits = ("credits", "window") if evidence.demands.edge >= BUSY else ("credits", "own", "window")
    share, name = max((evidence.path.get(name, 0.0), name) for name in waits)
    if share < LONG_WAITS:
        return ""
    text = registry.by_name(name).help.removesuffix(" may help").removesuffix(",")
    return f"; against {TITLES[name]}, {percent(share)} of the critical path, {text[0].lower()}{text[1:]}"
