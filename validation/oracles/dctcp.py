# SPDX-License-Identifier: GPL-2.0-only
"""The sawtooth of DCTCP's window: Alizadeh et al., SIGCOMM 2010, section 3.3, for a sender that does not grow its window on
marked ACKs (RFC 3168, 6.1.2) and cuts it by the alpha that it has when the first mark returns."""


def sawtooth(peak, gain, part=0.5):
    """Rounds of growth, and the factor of a cut, of a window that peaks at `peak` packets.

    A window of packets is marked per period of rounds of growth and one without; between, alpha decays by 1 - gain a round.
    `part` of 0 to 1 of the marked packets count in the observation window that is open when the first mark returns.
    """
    low, high = 0.0, 1.0  # bisection: what alpha decays to falls as alpha grows, because the period grows with it
    while high - low > 1e-12:
        alpha = (low + high) / 2
        period = peak * alpha / 2 + 1
        decayed = gain * (1 - gain) ** (period - 2) * (1 - gain * part) / (1 - (1 - gain) ** period)
        low, high = (alpha, high) if decayed > alpha else (low, alpha)
    return peak * alpha / 2, 1 - alpha / 2
