# SPDX-License-Identifier: GPL-2.0-only
"""The machine for an input without one."""

from .errors import InputError, read_text
from .imported import Input, Map

RATE, DELAY = "400 Gb/s", "500 ns"
PORTS = 65535  # of a switch: src/graph/machine/cluster_graph.hpp


def default_topology(imported):
    """A non-blocking switch, as in `weft workload` for configurations of models."""
    if imported.ranks > PORTS:
        raise InputError(imported.inputs[0], imported.line_of_ranks, f"{imported.ranks} ranks: expected up to {PORTS}, "
                         "the ports of one switch, or --topology with the machine")
    topology = Map(kind="star", hosts=max(2, imported.ranks), link_rate=RATE, link_delay=DELAY)
    topology.about = ("The input says nothing of a network: this is one non-blocking switch, "
                      f"{RATE} to each host. Put yours here, or import with --topology SPEC.yaml.")
    return topology


def default_network():
    """Packets of RoCE v2 (docs/reference/experiment.md), written out because users will change the experiment."""
    return Map(mtu="4096 B", header="62 B", wire_overhead="20 B", ack="66 B", window="256 KiB")


def topology_of_file(path):
    """--topology SPEC.yaml: a topology map, an experiment, or a machine of another program, read at its place."""
    text = read_text(path)
    if not text.strip():
        raise InputError(path, None, "it is empty; expected a topology map or an experiment")
    topology = Map(kind="file", path=Input(path))
    topology.about = f"The machine of {path}."
    return topology
