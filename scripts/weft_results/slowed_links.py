# SPDX-License-Identifier: GPL-2.0-only
"""Links whose rate the experiment lowers (`network.failures` with a `rate`), and the time that this took them."""

import numpy as np

FRAMED = "nvlink"  # busy with flits that `bytes` does not count, so that its rate does not follow from both


def lowers(entry, first, second, link_class):
    """Whether an entry of `network.failures` is about a link between two nodes, as weft reads it."""
    if not isinstance(entry, dict) or "rate" not in entry:
        return False
    link = entry.get("link")
    if isinstance(link, list):
        return {str(name) for name in link} == {first, second}
    return link == "all" or entry.get("class") == link_class or str(entry.get("switch")) in (first, second)


def slowed_links(run):
    """{link: (bit/s at which it sent on average, ps by which it was busy longer than at its rate)}."""
    if run.has("links", "id", "rate", "busy", "slowed"):
        links = run.table("links", ["id", "rate", "busy", "slowed"])
        return {int(links["id"][row]): (float(links["rate"][row] * (1 - links["slowed"][row] / links["busy"][row])),
                                        float(links["slowed"][row])) for row in np.flatnonzero(links["slowed"] > 0).tolist()}
    return slowed_by_bytes(run)


def slowed_by_bytes(run):
    """The same in files without a column for it."""
    wanted = ["id", "from_name", "to_name", "link_class", "rate", "bytes", "busy", "packets"]
    if "failures" not in run.experiment_text or not run.has("links", *wanted):
        return {}
    network = run.experiment.get("network") or {}
    entries = [entry for entry in network.get("failures") or [] if isinstance(entry, dict) and "rate" in entry]
    if not entries:
        return {}
    links = run.table("links", wanted)
    # Times of packets are rounded to whole ps.
    longer = links["busy"] - links["bytes"] * (8e12 / links["rate"]) - links["packets"]
    found = {}
    for row in np.flatnonzero(longer > 0).tolist():
        name, first, second = (str(links[column][row]) for column in ("link_class", "from_name", "to_name"))
        if name != FRAMED and any(lowers(entry, first, second, name) for entry in entries):
            found[int(links["id"][row])] = float(links["bytes"][row] * 8e12 / links["busy"][row]), float(longer[row])
    return found
