# SPDX-License-Identifier: GPL-2.0-only
"""The marking probability at which a DCQCN flow keeps its share (Zhu et al., SIGCOMM 2015,
doi:10.1145/2785956.2787484)."""

from math import exp

ADDITIVE, TIMER, ALPHA, SILENCE, FAST = 40e6, 55e-6, 55e-6, 50e-6, 5  # bit/s, s; the paper's at 40 Gb/s
STEPS = 1000  # of the timer; there are never more between two marks


def drift(marked, share, packet):
    """Loss of a flow minus its gain, in packets/s, from one cut to the next, when it sends `share` packets/s and a share
    `marked` of them is marked. A CNP comes with the first mark after a silence: after SILENCE and an exponential
    time."""
    hazard = marked * share

    def silent(time):
        """Probability of no CNP for this time after the last one."""
        return 1.0 if time <= SILENCE else exp(-hazard * (time - SILENCE))

    def spent(time):
        """Mean time until the next CNP, counted up to `time`."""
        return min(time, SILENCE) + (0 if time <= SILENCE else (1 - silent(time)) / hazard)

    # alpha gains g (1 - alpha) per CNP and loses g alpha per period of ALPHA without one
    alpha = 1 / (1 + sum(silent(n * ALPHA) for n in range(1, STEPS)))
    raised, rate = 0.0, share  # packets/s; `rate`: at the time of cuts, such that `share` is the mean
    for _ in range(4):
        gap, raised, lost, below, total = rate * alpha / 2, 0.0, 0.0, 0.0, 0.0
        for n in range(STEPS):
            ends = silent(n * TIMER) - silent((n + 1) * TIMER)
            lasts = spent((n + 1) * TIMER) - spent(n * TIMER)
            lost += ends * (gap - raised)
            below += lasts * (gap - raised)
            total += lasts
            step = ADDITIVE / 8 / packet if n >= FAST else 0
            raised += step
            gap = (gap + step) / 2
        rate = share + below / total
    return lost


def marking_of_share(share, packet):
    """Marking probability at which a flow keeps its rate of `share` packets/s of `packet` bytes."""
    low, high = 1e-6, 0.3
    while high / low > 1.0001:
        middle = (low * high) ** 0.5
        if drift(middle, share, packet) > 0:
            high = middle
        else:
            low = middle
    return low
