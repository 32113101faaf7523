#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# Runs in: full
"""Every algorithm runs on 1,024 ranks, in memory that does not grow with the number of ranks per rank; where a rank has a
connection to each other one, by less than a KiB for each."""

import pathlib
import sys
import unittest

import h5py

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from weft_testing import NETWORK, ProgramTest, registered, two_at_a_time, weft  # noqa: E402

LINKS = {"link_rate": "400 Gb/s", "link_delay": "500 ns", "switch_reduction": {}}
KINDS = {"chain": "broadcast", "binomial": "broadcast", "scatter_allgather": "broadcast", "pat": "all_gather",
         "bruck": "all_to_all", "pairwise": "all_to_all", "nccl_p2p": "all_to_all", "linear": "all_to_all"}  # fmt: skip
# A rank has a connection to each other one: compared at 256 ranks, as is what differs little from another algorithm.
TO_ALL = ["pairwise", "nccl_p2p", "linear", "direct"]
TO_FEW = ["ring", "double_binary_tree", "chain", "pat", "recursive_doubling", "halving_doubling", "bruck", "binomial",
          "scatter_allgather", "hierarchical", "bucket", "by_dimension", "swing", "nvls",
          "nvls_tree", "collnet"]  # fmt: skip
LIKE_OTHERS = ["bidirectional_ring"]
# Bytes for each further rank, if not 48 KiB: copies in, reductions and copies out are lanes of their own for each head of 32.
PER_RANK = {"nvls_tree": 60 << 10}


class ManyRanks(ProgramTest):
    def peak(self, algorithm, ranks):
        """Bytes of the process, once all is done."""
        topology = {"kind": "leaf_spine", "leaves": ranks // 32, "hosts_per_leaf": 32, "spines": 2, **LINKS}
        if algorithm == "nvls":  # one switch above all
            topology = {"kind": "star", "hosts": ranks, **LINKS}
        size = 64 if algorithm not in ("nvls", "nvls_tree", "collnet") else 1024  # a chunk for each head
        workload = {"kind": "collective", "collective": KINDS.get(algorithm, "all_reduce"), "algorithm": algorithm,
                    "size": f"{size * ranks} B"}  # fmt: skip
        if algorithm == "nvls_tree":
            workload["ranks_per_server"] = 32
        if algorithm == "collnet":
            workload["ranks_per_leaf"] = 32
        name = f"{algorithm}_{ranks}"
        path = self.write({"topology": topology, "network": NETWORK, "workload": workload,
                           "output": {"messages": "none"}}, f"{name}.yaml")  # fmt: skip
        done = weft("run", path, "-o", f"{name}.h5", "--quiet", "--summary", "json", folder=self.folder)
        self.assertEqual(done.code, 0, done)
        self.assertTrue(done.summary()["complete"])
        with h5py.File(self.folder / f"{name}.h5") as file:
            return int(file["manifest/parallel/peak_memory"][:].sum())

    def growth(self, algorithm, few, many):
        """More bytes for more ranks."""
        less, more = two_at_a_time([lambda: self.peak(algorithm, few), lambda: self.peak(algorithm, many)])
        return more - less

    def test_all_are_here(self):
        self.assertEqual(set(TO_ALL + TO_FEW + LIKE_OTHERS), registered("collectives"))

    def test_connections_to_few(self):
        for algorithm in TO_FEW:
            with self.subTest(algorithm):
                self.assertLess(self.growth(algorithm, 256, 1024), (1024 - 256) * PER_RANK.get(algorithm, 48 << 10))

    def test_connections_to_all(self):
        for algorithm in TO_ALL:
            with self.subTest(algorithm):
                self.assertLess(self.growth(algorithm, 64, 256), (256 - 64) * (48 << 10) + (256**2 - 64**2) * 1024)
        self.assertLess(self.growth("linear", 256, 1024), (1024 - 256) * (48 << 10) + (1024**2 - 256**2) * 1024)


if __name__ == "__main__":
    unittest.main()
