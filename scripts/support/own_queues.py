# SPDX-License-Identifier: GPL-2.0-only
"""Links whose queues hold what hosts and servers send themselves, which is no congestion of the network."""

import numpy as np

from weft_results.nodes import are_hosts

# Classes of links inside servers; those of class `nic` lead out of them, and into them.
IN_SERVERS = ("gpu", "nvlink", "pcie")


def at_ends_of(source, target, rows):
    """True for links that leave a node at an end of these rows of links."""
    return np.isin(source, np.concatenate((source[rows], target[rows])))


def own_queues(link_class, source, target, source_name):
    """They leave a host, in a server the port of an accelerator, or a NIC towards the network."""
    ports = at_ends_of(source, target, link_class == "gpu")
    inside = at_ends_of(source, target, np.isin(link_class, IN_SERVERS))
    return are_hosts(source_name) | ports | (link_class == "nic") & inside
