# SPDX-License-Identifier: GPL-2.0-only
"""A small machine of every family, with every routing of the program that suits it: those below, and what else has a
sample in tests/samples."""

import pathlib

import yaml

SAMPLES = pathlib.Path(__file__).resolve().parent / "samples"
LINKS = {"link_rate": "400 Gb/s", "link_delay": "500 ns"}
SERVER = {"gpus": 2, "inside": "nvswitch", "nvlink_rate": "2 Tb/s", "nvlink_delay": "100 ns", "nics": 2,
          "pcie_rate": "500 Gb/s", "pcie_delay": "200 ns", "wiring": "rail", "pxn": True}  # fmt: skip
LEAF_SPINE = {"kind": "leaf_spine", "leaves": 4, "hosts_per_leaf": 4, "spines": 2, **LINKS}
DRAGONFLY = {"kind": "dragonfly", "p": 1, "a": 4, "h": 2, "arrangement": "palmtree", **LINKS}
RAILS = {"kind": "rails", "rails": 2, "rail": {"kind": "star", "hosts": 6, **LINKS}, "server": SERVER}


def link(one, other):
    return {"from": one, "to": other, "rate": "400 Gb/s", "delay": "500 ns"}


# Two ways round, of which one host takes the longer one.
SQUARE = {
    "kind": "graph", "hosts": 4, "switches": 4,
    "links": [*(link(f"host{i}", f"switch{i}") for i in range(4)),
              *(link(f"switch{i}", f"switch{(i + 1) % 4}") for i in range(4))],
    "paths": [["host0", "switch0", "switch3", "switch2", "switch1", "host1"]],
}  # fmt: skip

MACHINES = [
    ({"kind": "torus", "dims": [4, 3, 2], **LINKS}, ["dimension_order", "dimension_order_lanes", "minimal_adaptive"]),
    ({"kind": "mesh", "dims": [4, 4], **LINKS}, ["dimension_order"]),
    ({"kind": "torus", "dims": [8, 4], "twist": [{"across": 1, "shift": [4, 0]}], **LINKS}, ["shortest_path"]),
    ({"kind": "hyperx", "dims": [3, 4], "hosts_per_switch": 2, **LINKS}, ["dimension_order", "minimal_adaptive"]),
    ({"kind": "hypercube", "dimensions": 4, **LINKS}, ["dimension_order"]),
    ({"kind": "fully_connected", "switches": 5, "hosts_per_switch": 3, **LINKS}, ["dimension_order"]),
    (DRAGONFLY, ["dragonfly_minimal", "dragonfly_minimal_lanes", "dragonfly_valiant", "dragonfly_ugal",
                 "dragonfly_ugal_g", "dragonfly_progressive", "dragonfly_ugal_local", "shortest_path"]),
    ({"kind": "dragonfly_plus", "p": 2, "leaves": 2, "spines": 2, "h": 1, **LINKS},
     ["dragonfly_plus_minimal", "dragonfly_plus_valiant", "dragonfly_plus_ugal", "dragonfly_plus_ugal_g",
      "dragonfly_plus_progressive"]),
    ({"kind": "fat_tree", "k": 4, **LINKS}, ["fat_tree"]),
    ({"kind": "xgft", "m": [3, 4, 2], "w": [1, 2, 2], "p": [1, 1, 2], **LINKS}, ["up_down", "d_mod_k"]),
    (LEAF_SPINE, ["up_down", "d_mod_k"]),
    ({**LEAF_SPINE, "switch_reduction": {"at": ["leaf"]}}, ["switch_reduction"]),
    ({"kind": "slim_fly", "q": 3, "p": 1, **LINKS},
     ["shortest_path", "shortest_path_lanes", "shortest_path_valiant", "shortest_path_ugal"]),
    (SQUARE, ["static"]),
    ({**LEAF_SPINE, "server": SERVER}, ["server"]),
    (RAILS, ["server"]),
]
WITHIN_OTHERS = {"rails"}  # routes rails that servers join: a part of "server"
OF_OTHERS = {"file"}  # a machine that a file describes, as others are


def samples(folder):
    return {path.stem: yaml.safe_load(path.read_text()) for path in sorted((SAMPLES / folder).glob("*.yaml"))}


def cases():
    """(machine, routing); None: the routing that the family takes by itself."""
    found = [(topology, routing) for topology, routings in MACHINES for routing in routings]
    known = {routing for _, routing in found} | WITHIN_OTHERS
    found += [(topology, routing) for routing, topology in samples("routing").items() if routing not in known]
    known = {topology["kind"] for topology, _ in found} | OF_OTHERS
    return found + [(topology, None) for kind, topology in samples("topologies").items() if kind not in known]


CASES = cases()
