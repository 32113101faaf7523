# SPDX-License-Identifier: GPL-2.0-only
from oracles.steady import Steady

SOURCE = "Bertsekas, Gallager; Li et al. 2019"
SINCE = 5 * 10**9  # ps


def check(case):
    steady = Steady(*case.run(), SINCE)
    shares = [steady.load(f"host{host}", "switch0" if host < 2 else "switch1") for host in (0, 1, 3)]
    case.within("HPCC: long flow, short flows; max-min", [(0.5, 0.03, share) for share in shares])
