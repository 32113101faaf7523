#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""The norm of gradients is one number of all ranks: a tree sums it up unless the experiment says otherwise."""

import json
import math
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from weft_testing import NETWORK, STAR, ProgramTest  # noqa: E402

RANKS = 16
MODEL = {"model_type": "gpt2", "vocab_size": 512, "n_positions": 64, "n_embd": 64, "n_layer": 1, "n_head": 4}


class GradientNorm(ProgramTest):
    def norm(self, topology=None, **workload):
        (self.folder / "config.json").write_text(json.dumps(MODEL))
        summary, _ = self.simulate({
            "topology": topology or {**STAR, "hosts": RANKS}, "network": {**NETWORK, "fidelity": "ideal"},
            "workload": {"kind": "training", "model": "config.json", "device": "h100-sxm", "micro_batch": 1, "sequence_length": 64,
                         "parallelism": {"data": RANKS, "sharding": "optimizer"}, **workload},
        })  # fmt: skip
        (found,) = [row for row in summary["collectives"] if row["bytes"] == 4]
        return found["algorithm"], found["time_ps"] / 1e6

    def test_a_tree_by_default(self):
        """A message of 4 B takes two links of 500 ns and little more. A ring has 2 (P - 1) of them one after another; two trees
        of P ranks go up and down ceil(log2 P) levels, and over one more edge (P. Sanders, J. Speck, J. Träff, "Two-tree
        algorithms for full bandwidth broadcast, reduction and scan", Parallel Computing 35, 2009)."""
        message = 1.0
        algorithm, time = self.norm()
        self.assertEqual(algorithm, "double_binary_tree")
        self.assertLess(time, 2 * (math.ceil(math.log2(RANKS)) + 1) * 1.1 * message)
        algorithm, time = self.norm(algorithm="ring")
        self.assertEqual(algorithm, "ring")
        self.assertGreater(time, 2 * (RANKS - 1) * message)
        self.assertEqual(self.norm(collectives={"world": {"algorithm": "recursive_doubling"}})[0], "recursive_doubling")
        # Where NCCL chooses, it does here as well.
        servers = {"kind": "leaf_spine", "leaves": 8, "hosts_per_leaf": 2, "spines": 1, "link_rate": "400 Gb/s",
                   "link_delay": "500 ns", "server": {"design": "hgx_h100", "wiring": "rail"}}  # fmt: skip
        self.assertEqual(self.norm(servers), self.norm(servers, algorithm="nccl"))


if __name__ == "__main__":
    unittest.main()
