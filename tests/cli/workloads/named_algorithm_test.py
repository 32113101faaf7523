#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""A job that names an algorithm gets the network alone, also for calls that this algorithm does not support."""

import json
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from weft_testing import NETWORK, ProgramTest  # noqa: E402

MODEL = {"model_type": "mixtral", "vocab_size": 512, "max_position_embeddings": 4096, "hidden_size": 4096,
         "intermediate_size": 1024, "num_hidden_layers": 1, "num_attention_heads": 32, "num_key_value_heads": 8,
         "num_local_experts": 8, "num_experts_per_tok": 2}  # fmt: skip

RING = {"algorithm": "ring", "channels": 1, "chunk_size": "1 GiB", "slices_per_chunk": 1}


class NamedAlgorithm(ProgramTest):
    def exchanges(self, **workload):
        (self.folder / "config.json").write_text(json.dumps(MODEL))
        summary, _ = self.simulate({
            "topology": {"kind": "leaf_spine", "leaves": 8, "hosts_per_leaf": 1, "spines": 1, "link_rate": "400 Gb/s",
                         "link_delay": "500 ns", "server": {"design": "hgx_h100", "wiring": "rail"}},
            "network": {**NETWORK, "fidelity": "ideal"},
            "workload": {"kind": "training", "model": "config.json", "device": "h100-sxm", "micro_batch": 1, "sequence_length": 4096,
                         "parallelism": {"data": 8, "expert": 8}, **RING, **workload},
        })  # fmt: skip
        found = [row for row in summary["collectives"] if row["kind"] == "all_to_all"]
        self.assertEqual({row["algorithm"] for row in found}, {"nccl_p2p"})
        return [row["time_ps"] for row in found]

    def test_experts_beside_a_ring(self):
        """The same exchanges as where the experiment names their algorithm, which has no times of thread blocks. The one
        thread block of NCCL's choice takes three times as long and more."""
        network = self.exchanges()
        self.assertEqual(len(network), 4)  # dispatch and combine, in both passes
        self.assertEqual(network, self.exchanges(collectives={"expert": {**RING, "algorithm": "nccl_p2p"}}))
        blocks = self.exchanges(collectives={"expert": {**RING, "algorithm": "nccl"}})
        self.assertGreater(min(blocks), 3 * max(network))
        # Each GPU sends 7/8 of 4096 tokens x 2 copies x 4096 numbers x 2 B over NVLink's 450 GB/s.
        self.assertGreater(min(network), 7 / 8 * 4096 * 2 * 4096 * 2 / 450e9 * 1e12)

    def test_tables_beside_a_ring(self):
        """The exchanges of a recommendation model, too."""
        def exchanges(**workload):
            summary, _ = self.simulate({
                "topology": {"kind": "server", "design": "hgx_h100"},
                "network": {**NETWORK, "fidelity": "ideal"},
                "workload": {"kind": "recommendation", "device": "h100-sxm", "batch": 4096, "dimension": 64,
                             "bottom_mlp": [13, 64], "top_mlp": [36 + 64, 1], "tables": [1000] * 8, **workload},
            })  # fmt: skip
            return [row["time_ps"] for row in summary["collectives"] if row["kind"] == "all_to_all"]

        network = exchanges(**RING)
        self.assertEqual(network, exchanges(**RING, exchange_algorithm="nccl_p2p"))
        self.assertNotEqual(network, exchanges(**RING, exchange_algorithm="nccl"))


if __name__ == "__main__":
    unittest.main()
