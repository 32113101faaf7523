# SPDX-License-Identifier: GPL-2.0-only
"""Links that flow control stopped, and the link at which a chain of stops begins."""


def stopped_links(run):
    """{link: {cause: [ps, stops, first, last]}} over all classes; {} if nothing was paused or the file does not have
    this data."""
    if run.rows("link_pauses") == 0:
        return {}
    rows = run.table("link_pauses")
    found = {}
    for link, cause, time, stops, first, last in zip(*(rows[name].tolist() for name in
                                                       ("link", "cause", "time", "stops", "first", "last"))):
        known = found.setdefault(link, {}).setdefault(cause, [0, 0, first, last])
        known[0] += time
        known[1] += stops
        known[2:] = [min(known[2], first), max(known[3], last)]
    return found


def root_of(link, stopped):
    """Follows the cause of most stops while that link was itself stopped for at least a tenth of the time that it caused:
    then flow control limited it, and the cause is the link that stopped it. A link that was stopped less has more to send
    than it can. In a cycle of waiting links: the one with the largest number."""
    chain = [link]
    while chain[-1] in stopped:
        cause, (blamed, *_) = max(stopped[chain[-1]].items(), key=lambda item: (item[1][0], -item[0]))
        if cause in chain:
            return max(chain[chain.index(cause):])
        chain.append(cause)
        if 10 * sum(times[0] for times in stopped.get(cause, {}).values()) < blamed:
            break
    return chain[-1]


def times_of_roots(run):
    """{root: ps for which links were stopped whose chain begins there}"""
    stopped, found = stopped_links(run), {}
    for link, causes in stopped.items():
        root = root_of(link, stopped)
        found[root] = found.get(root, 0) + sum(cause[0] for cause in causes.values())
    return found
