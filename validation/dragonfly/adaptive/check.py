# SPDX-License-Identifier: GPL-2.0-only
from dragonflies import SOURCES, check_throughput

SOURCE = SOURCES["dragonfly"]


def check(case):
    check_throughput(case, "2 MB")
