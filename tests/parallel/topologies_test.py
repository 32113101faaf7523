#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Machines of every family, with every routing of theirs, give the same results on any number of MPI processes, and with
ns-3's own engine."""

# Time limit: 600 s

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from weft_testing import NETWORK, ProgramTest

LINKS = {"link_rate": "400 Gb/s", "link_delay": "500 ns"}
SERVER = {"gpus": 2, "inside": "nvswitch", "nvlink_rate": "2 Tb/s", "nvlink_delay": "100 ns", "nics": 2,
          "pcie_rate": "500 Gb/s", "pcie_delay": "200 ns", "wiring": "rail", "pxn": True}  # fmt: skip
DRAGONFLY = {"kind": "dragonfly", "p": 1, "a": 4, "h": 2, "arrangement": "palmtree", **LINKS}

MACHINES = [
    ({"kind": "torus", "dims": [4, 3, 2], **LINKS}, ["dimension_order", "dimension_order_lanes", "minimal_adaptive"]),
    ({"kind": "mesh", "dims": [4, 4], **LINKS}, ["dimension_order"]),
    ({"kind": "torus", "dims": [8, 4], "twist": [{"across": 1, "shift": [4, 0]}], **LINKS}, ["shortest_path"]),
    ({"kind": "hyperx", "dims": [3, 4], "hosts_per_switch": 2, **LINKS}, ["dimension_order", "minimal_adaptive"]),
    ({"kind": "hypercube", "dimensions": 4, **LINKS}, ["dimension_order"]),
    ({"kind": "fully_connected", "switches": 5, "hosts_per_switch": 3, **LINKS}, ["dimension_order"]),
    (DRAGONFLY, ["dragonfly_minimal", "dragonfly_minimal_lanes", "dragonfly_valiant", "dragonfly_ugal",
                 "dragonfly_ugal_g", "dragonfly_progressive", "shortest_path"]),
    ({"kind": "dragonfly_plus", "p": 2, "leaves": 2, "spines": 2, "h": 1, **LINKS},
     ["dragonfly_plus_minimal", "dragonfly_plus_valiant", "dragonfly_plus_ugal", "dragonfly_plus_ugal_g",
      "dragonfly_plus_progressive"]),
    ({"kind": "xgft", "m": [3, 4, 2], "w": [1, 2, 2], "p": [1, 1, 2], **LINKS}, ["up_down", "d_mod_k"]),
    ({"kind": "leaf_spine", "leaves": 4, "hosts_per_leaf": 4, "spines": 2, **LINKS}, ["up_down", "d_mod_k"]),
    ({"kind": "slim_fly", "q": 3, "p": 1, **LINKS}, ["shortest_path"]),
    ({"kind": "leaf_spine", "leaves": 4, "hosts_per_leaf": 4, "spines": 2, "server": SERVER, **LINKS}, ["server"]),
    ({"kind": "rails", "rails": 2, "rail": {"kind": "star", "hosts": 6, **LINKS}, "server": SERVER}, ["server"]),
]


class Topologies(ProgramTest):
    def check(self, topology, routing, number):
        path = self.write({
            "topology": topology, "network": {**NETWORK, "routing": routing},
            "workload": {"kind": "traffic", "pattern": "all_to_all", "size": "20 kB"},
        }, name=f"machine{number}.yaml")
        reference = self.simulate(path, output=f"one{number}.h5")[1]
        for ranks in (2, 3) if number % 4 else (2, 3, 4, 8):
            other = self.simulate(path, output=f"other{number}.h5", ranks=ranks)[1]
            self.assert_same_results(reference, other, context=f"{topology['kind']}, {routing}, {ranks} processes")
        other = self.simulate(path, "--engine", "ns3-default", output=f"other{number}.h5")[1]
        self.assert_same_results(reference, other, ["engine"], f"{topology['kind']}, {routing}, ns-3's engine")

    def test_every_family_and_routing(self):
        cases = [(topology, routing) for topology, routings in MACHINES for routing in routings]
        for number, (topology, routing) in enumerate(cases):
            with self.subTest(kind=topology["kind"], routing=routing):
                self.check(topology, routing, number)


if __name__ == "__main__":
    unittest.main()
