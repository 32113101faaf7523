# SPDX-License-Identifier: GPL-2.0-only
"""How equally queue pairs share: Jain's index, (sum of x)^2 / (n sum of x^2). It is 1 if all n have the same, and k/n if k of
them have the same and the others nothing. R. Jain, D. Chiu, W. Hawe, "A quantitative measure of fairness and discrimination
for resource allocation in shared computer systems", DEC-TR-301, 1984."""

import numpy as np

MOST_POINTS = 100


def jain(values):
    """The index of these values; not a number if all are 0."""
    values = np.asarray(values, dtype=float)
    squares = (values * values).sum()
    return float(values.sum() ** 2 / (len(values) * squares)) if squares > 0 else float("nan")


def jain_over_time(pair, interval, sent, points=MOST_POINTS):
    """(numbers of last intervals, indices) of at most so many equal stretches of `/rates_series`. `pair` numbers the queue
    pairs. Each with a row in the stretch counts, as it had something to send or to wait for, by what it sent; stretches of less
    than two have no index. In stretches of few packets, whole packets make the index smaller."""
    pair, sent = np.asarray(pair), np.asarray(sent)
    width = max(1, -(-(int(np.max(interval, initial=0)) + 1) // points))
    stretch = np.asarray(interval, dtype=np.int64) // width
    ends, found = [], []
    for one in np.unique(stretch):
        rows = stretch == one
        who, place = np.unique(pair[rows], return_inverse=True)
        if len(who) < 2:
            continue
        index = jain(np.bincount(place, weights=sent[rows], minlength=len(who)))
        if index == index:
            ends.append(int((one + 1) * width - 1))
            found.append(index)
    return np.array(ends, dtype=np.int64), np.array(found)
