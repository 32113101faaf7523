# SPDX-License-Identifier: GPL-2.0-only
from oracles.permutation import check_permutations

SECONDS = 70
SOURCE = "Bertsekas, Gallager; Mo, Walrand 2000"


def check(case):
    packets = {1: 2000, 2: 2000, 4: 2000, 8: 3000}
    check_permutations(case, k=8, packets=packets, seeds=range(1, 5), ideal_seeds=40)
