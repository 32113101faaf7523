#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Nothing grows with simulated time: eight times the traffic at the same load takes the same memory, whatever the
fabric does to packets."""

import pathlib
import sys
import unittest

import h5py

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from weft_testing import ProgramTest, weft

FABRICS = {
    "departures known on arrival": {},
    "queues": {"queues": "output"},
    "pause frames, marks and DCQCN": {"flow_control": "pfc", "buffer": {"size": "32 MiB"}, "congestion_control": "dcqcn"},
    "credits": {"flow_control": "credit"},
    "losses": {"recovery": "selective_repeat", "loss": [{"link": "all", "probability": 1e-4}]},
    "spraying and telemetry": {"load_balancing": "spray", "congestion_control": "hpcc"},
}
SIZES = ["1 MiB", "8 MiB"]  # of each host's message
# Blocks of packets are allocated in 2 MiB, and congestion differs a little with the length of a run.
SLACK = 6 * 2**20


class ConstantMemory(ProgramTest):
    def peak(self, network, size):
        path = self.write({
            "topology": {"kind": "fat_tree", "k": 4, "link_rate": "400 Gb/s", "link_delay": "500 ns"},
            "network": {"mtu": "4096 B", "window": "64 KiB", **network},
            "workload": {"kind": "traffic", "pattern": "permutation", "size": size},
            "output": {"messages": "none"},
        })
        _, output = self.simulate(path, output="memory.h5", start=weft)
        with h5py.File(output) as file:
            return int(file["manifest/parallel/peak_memory"][:].sum())

    def test_memory_does_not_follow_the_length_of_a_run(self):
        for name, network in FABRICS.items():
            with self.subTest(fabric=name):
                short, long = (self.peak(network, size) for size in SIZES)
                self.assertLess(long, short + SLACK, f"{short} bytes for {SIZES[0]}, {long} for {SIZES[1]}")

    def test_the_memory_of_whoever_starts_a_run_does_not_count(self):
        """The kernel hands a process the largest resident set of the one that it was made from."""
        before = self.peak({}, SIZES[0])
        large = bytearray(400 * 2**20)
        large[::4096] = b"x" * len(large[::4096])  # resident
        self.assertLess(self.peak({}, SIZES[0]), before + SLACK)


if __name__ == "__main__":
    unittest.main()
