# SPDX-License-Identifier: GPL-2.0-only
"""Which kind of verdict bounds a run: the largest part of its time, unless another kind alone takes more than that can."""

from report_page.attribution import CONGESTION
from report_page.verdict import registry


def decide(evidence):
    """(kind, whether it follows from a single link or rank, and not from means)"""
    largest = what_is_largest(evidence) or "nothing"
    for kind in registry.kinds().values():
        if largest != "nothing" and kind.claims(evidence, largest):
            return kind, kind.name != largest
    return registry.by_name(largest), False


def what_is_largest(evidence):
    parts, congested = evidence.parts, evidence.congested
    if not parts.total:
        return evidence.worst_congestion.name if congested else None
    delays = (*CONGESTION, *evidence.follows())
    # Without congestion, delays in the network are short waits. Under congestion, ranks are idle that have ended before the slowest one.
    caused = (*delays, "idle") if congested else CONGESTION
    shares = {name: parts.share(name) for name in parts.sums if name not in caused}
    # Without computation, ranks that have begun wait for what others do, which parts of these tell.
    if not parts.share("compute") and "peers" in shares:
        shares["peers"] = min(shares["peers"], evidence.for_late_ranks())
    largest = max(shares, key=lambda name: shares[name]) if shares else None
    if parts.exact and congested and parts.share(*delays) >= shares.get(largest, 0):
        return evidence.worst_congestion.name
    return evidence.worst_congestion.name if largest == "exposed" and congested else largest
