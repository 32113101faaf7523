# SPDX-License-Identifier: GPL-2.0-only
from dragonflies import SOURCES, check_load_curve

SOURCE = SOURCES["dragonfly_plus"]


def check(case):
    check_load_curve(case)
