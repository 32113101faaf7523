# SPDX-License-Identifier: GPL-2.0-only
"""The meaning of the names of nodes (`from_name` and `to_name` of /links)."""

import re

import numpy as np

HOST = re.compile(r"host\d+|server\d+/gpu\d+")


def is_host(name):
    """True for host3 and server3/gpu1, where ranks are, and not for switches, NICs and other parts of a server."""
    return HOST.fullmatch(name) is not None


def are_hosts(names):
    """The same for an array of names."""
    return np.array([is_host(str(name)) for name in names], dtype=bool)
