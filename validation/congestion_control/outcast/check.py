# SPDX-License-Identifier: GPL-2.0-only
from oracles.steady import Steady

SOURCE = "Handley et al. 2017"
RATE, SINCE = 10, 20 * 10**9  # Gb/s, ps


def check(case):
    for algorithm in ("nscc", "dctcp", "swift", "dcqcn"):
        steady = Steady(*case.run({"network.congestion_control": algorithm}), SINCE)
        other = steady.load("host5", "switch0")
        shares = [steady.load("switch0", "host1"), steady.load("switch0", "host4") - other, other]
        case.within(
            f"{algorithm}: 0 to 1, 0 to 4, 5 to 4",
            [(RATE * law, 0.1, RATE * share) for law, share in zip((0.25, 0.25, 0.75), shares, strict=True)],
            "Gb/s",
            2,
        )
