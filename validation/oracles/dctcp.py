# SPDX-License-Identifier: GPL-2.0-only
"""The sawtooth of DCTCP's window: Alizadeh et al., SIGCOMM 2010, section 3.3, for a sender that does not grow its window on
marked ACKs (RFC 3168, 6.1.2) and cuts it by the alpha at the time when the first mark returns."""


def sawtooth(peak, gain, part=0.5, cuts=1):
    """Rounds of growth, and the factor of the first cut, of a window that peaks at `peak` packets.

    A period has `cuts` rounds without growth, in which all packets are marked, and the rounds of growth that compensate
    for as many cuts (1 to 2, a mean over periods); in these, alpha decays by 1 - gain per round. A share `part`, from 0
    to 1, of the marked packets of the first round counts in the observation window that is open when the first mark
    returns.
    """
    low, high = 0.0, 1.0  # bisection: the value to which alpha decays falls as alpha grows, because the period grows with it
    while high - low > 1e-12:
        alpha = (low + high) / 2
        again = 1 - (1 - alpha) * (1 - gain)  # alpha of the second cut
        growth = peak * (1 - (1 - alpha / 2) * (1 - (cuts - 1) * again / 2))
        decayed = (1 - (1 - gain) ** cuts) * (1 - gain) ** (growth - 1) * (1 - gain * part) / (1 - (1 - gain) ** (growth + cuts))
        low, high = (alpha, high) if decayed > alpha else (low, alpha)
    return growth, 1 - alpha / 2
