#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Machines of 65,536 hosts are built by two processes within 12 GiB, and a message of each host arrives."""

# Time limit: 600 s
# Runs in: full

import pathlib
import sys
import unittest

import h5py

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from weft_testing import NETWORK, ProgramTest, weft

HOSTS = 65536
LINKS = {"link_rate": "400 Gb/s", "link_delay": "500 ns"}
# Links: a torus has three per router and one per host. 128 groups of 32 routers with 16 hosts each: each pair of groups
# has as many links as fit, floor(32 * 16 / 127) = 4.
MACHINES = [
    ({"kind": "fat_tree", "k": 64, **LINKS}, 3 * HOSTS),
    ({"kind": "torus", "dims": [64, 32, 32], **LINKS}, 4 * HOSTS),
    ({"kind": "dragonfly", "p": 16, "a": 32, "h": 16, "g": 128, **LINKS},
     HOSTS + 128 * 32 * 31 // 2 + 4 * 128 * 127 // 2),
]  # fmt: skip


class LargeMachines(ProgramTest):
    def test_memory(self):
        for topology, links in MACHINES:
            with self.subTest(kind=topology["kind"]):
                path = self.write({
                    "topology": topology, "network": NETWORK,
                    "workload": {"kind": "traffic", "pattern": "permutation", "shift": HOSTS // 2 + 1, "size": "1 kB"},
                    "output": {"messages": "none"},
                })
                summary, output = self.simulate(path, output="large.h5", ranks=2, start=weft)
                self.assertEqual(summary["messages"], HOSTS)
                with h5py.File(output) as file:
                    self.assertEqual(len(file["links/bytes"]), 2 * links)
                    memory = int(file["manifest/parallel/peak_memory"][:].sum())
                self.assertLess(memory, 12 * 2**30)
                self.assertGreater(memory, HOSTS)  # it was measured


if __name__ == "__main__":
    unittest.main()
