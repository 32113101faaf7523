#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Machines of every family, with every routing of theirs, give the same results on any number of MPI processes, and with
ns-3's own engine."""

# Time limit: 600 s

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from every_machine import CASES, OF_OTHERS, WITHIN_OTHERS
from weft_testing import NETWORK, ProgramTest, registered


class Topologies(ProgramTest):
    def check(self, topology, routing, number):
        path = self.write({
            "topology": topology, "network": {**NETWORK, **({"routing": routing} if routing else {})},
            "workload": {"kind": "traffic", "pattern": "all_to_all", "size": "20 kB"},
        }, name=f"machine{number}.yaml")
        reference = self.simulate(path, output=f"one{number}.h5")[1]
        for ranks in (2, 3) if number % 4 else (2, 3, 4, 8):
            other = self.simulate(path, output=f"other{number}.h5", ranks=ranks)[1]
            self.assert_same_results(reference, other, context=f"{topology['kind']}, {routing}, {ranks} processes")
        other = self.simulate(path, "--engine", "ns3-default", output=f"other{number}.h5")[1]
        self.assert_same_results(reference, other, ["engine"], f"{topology['kind']}, {routing}, ns-3's engine")

    def test_no_routing_and_no_family_is_left_out(self):
        self.assertEqual({routing for _, routing in CASES if routing} | WITHIN_OTHERS, registered("routing"))
        self.assertEqual({topology["kind"] for topology, _ in CASES} | OF_OTHERS, registered("topologies"))

    def test_every_family_and_routing(self):
        for number, (topology, routing) in enumerate(CASES):
            with self.subTest(kind=topology["kind"], routing=routing):
                self.check(topology, routing, number)


if __name__ == "__main__":
    unittest.main()
