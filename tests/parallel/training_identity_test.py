#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# Time limit: 300 s
"""Training jobs give the same file on 1, 2, 3, 4 and 8 MPI processes, and under ns-3's own engine."""

import json
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from weft_testing import FAT_TREE, SOURCE, ProgramTest  # noqa: E402

DENSE = {
    "model_type": "llama", "max_position_embeddings": 1024, "hidden_size": 64, "intermediate_size": 128,
    "num_hidden_layers": 8, "num_attention_heads": 8, "num_key_value_heads": 4, "vocab_size": 256,
}  # fmt: skip
MIXTURE = {**DENSE, "model_type": "mixtral", "num_hidden_layers": 4, "num_local_experts": 8, "num_experts_per_tok": 2}
# Its GEMMs have more tiles than the multiprocessors that collectives leave.
WIDE = {**DENSE, "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 2}
# Name: model, parallelism, other keys, fidelity.
CASES = {
    "tensor and pipeline": (DENSE, {"tensor": 2, "pipeline": 2, "sequence": True, "sharding": "optimizer"},
                            {"micro_batches": 3, "steps": 2, "overlap_parameters": True}, "packet"),
    "context and shards": (DENSE, {"context": 2, "sharding": "parameters", "prefetch": 2}, {"micro_batches": 2}, "packet"),
    "persistent GEMMs beside collectives": (WIDE, {"sharding": "parameters", "prefetch": 1},
                                            {"framework": "pytorch_compiled", "micro_batch": 4, "sequence_length": 1024,
                                             "bucket_size": "8 MiB"}, "packet"),
    "experts": (MIXTURE, {"tensor": 2, "expert": 4, "expert_tensor": 1, "sequence": True, "pipeline": 2,
                          "schedule": "zb_h1"},
                {"micro_batches": 4, "routing": {"spread": 1}, "capacity_factor": 1.5}, "packet"),
    "experts of servers": (MIXTURE, {"expert": 8, "expert_server": 4, "servers_per_token": 1, "pipeline": 2},
                           {"micro_batches": 2, "routing": {"spread": 1}}, "packet"),
    "experts of servers in parts": (MIXTURE, {"expert": 8, "expert_server": 4, "expert_forwarding": "parts"},
                                    {"micro_batches": 2, "routing": {"spread": 1}}, "packet"),
    "multi-token prediction": (MIXTURE, {"tensor": 2, "expert": 4, "expert_tensor": 1, "sequence": True, "pipeline": 2,
                                         "prediction_stage": 0},
                               {"micro_batches": 2, "prediction_blocks": 1, "routing": {"spread": 1}}, "packet"),
    "both ways": (MIXTURE, {"expert": 4, "pipeline": 4, "schedule": "dualpipe"},
                  {"micro_batches": 8, "compute_noise": {"jitter": "5 %", "spread": "3 %"}}, "packet"),
    "forward beside backward passes": (MIXTURE, {"expert": 4, "pipeline": 2, "virtual_stages": 2, "schedule": "combined_1f1b"},
                                       {"micro_batches": 4, "framework": "megatron_core", "routing": {"spread": 1}}, "packet"),
    "copies that stand for others": (DENSE, {"tensor": 2, "data": 24},
                                     {"symmetry": {"data": 4}, "compute_noise": {"spread": "3 %"}}, "packet"),
    "storage and failures": (DENSE, {"tensor": 2, "pipeline": 2, "data": 3},
                             {"micro_batches": 2, "steps": 6, "efficiency": 0.001,
                              "data_loading": {"bytes_per_sample": "100 kB", "targets": 2, "prefetch": 2},
                              "checkpoint": {"every": 2, "targets": 2, "piece": "100 kB", "asynchronous": True},
                              "failures": {"mean_time": "8 ms", "step_time": "2 ms", "seed": 3, "detection": "100 us"}},
                             "packet"),
    "a tied embedding and largest magnitudes of fp8": (
        {**DENSE, "tie_word_embeddings": True}, {"tensor": 2, "pipeline": 2, "sharding": "optimizer"},
        {"micro_batches": 2, "framework": "megatron_core", "precision": "fp8", "gradient_precision": "bf16"}, "packet"),
    "current scaling of fp8": (DENSE, {"tensor": 2, "pipeline": 2, "sequence": True, "sharding": "optimizer"},
                               {"micro_batches": 2, "framework": "megatron_core", "precision": "fp8",
                                "fp8_scaling": "current", "fused_loss": True}, "packet"),
    "MXFP8": (MIXTURE, {"tensor": 2, "expert": 4, "expert_tensor": 1, "sequence": True},
              {"device": str(SOURCE / "workloads" / "devices" / "b200-sxm.yaml"), "micro_batches": 2,
               "framework": "megatron_core", "precision": "mxfp8", "fused_loss": True}, "packet"),
    "sums that begin on all stages at once": (DENSE, {"data": 2, "pipeline": 4, "virtual_stages": 2, "schedule": "interleaved"},
                                              {"micro_batches": 4, "align_gradients": True, "bucket_size": "8 MiB"}, "packet"),
    "Megatron-Core's own buckets and sums": (
        DENSE, {"data": 2, "pipeline": 4, "virtual_stages": 2, "schedule": "interleaved", "sharding": "optimizer"},
        {"micro_batches": 4, "framework": "megatron_core", "bucket_size": None}, "packet"),
    "ideal": (DENSE, {"tensor": 2, "pipeline": 4, "virtual_stages": 2, "schedule": "interleaved"},
              {"micro_batches": 4, "recompute": "full"}, "ideal"),
}  # fmt: skip


class Identity(ProgramTest):
    def experiment(self, name):
        model, parallelism, more, fidelity = CASES[name]
        stem = name.replace(" ", "_")
        config = self.write(json.dumps(model), f"{stem}.json")
        workload = {
            "kind": "training", "model": str(config), "device": str(SOURCE / "workloads" / "devices" / "h100-sxm.yaml"),
            "parallelism": parallelism, "micro_batch": 1, "sequence_length": 64, "bucket_size": "64 KiB", **more,
        }  # fmt: skip
        workload = {key: value for key, value in workload.items() if value is not None}
        text = {"topology": FAT_TREE, "network": {"fidelity": fidelity}, "workload": workload,
                "output": {"operations": True}}  # fmt: skip
        return self.write(text, f"{stem}.yaml"), fidelity

    def test_same_for_all_numbers_of_processes(self):
        for name in CASES:
            path, fidelity = self.experiment(name)
            one, expected = self.simulate(path, output=f"{path.stem}.h5")
            self.assertGreater(one["messages"], 0)
            for ranks, partition in ((2, "auto"), (3, "random"), (4, "auto"), (8, "random")):
                words = ["--set", f"simulation.partition={partition}"]
                summary, other = self.simulate(path, *words, output=f"{path.stem}{ranks}.h5", ranks=ranks)
                self.assertEqual(summary["fingerprint"], one["fingerprint"], (name, ranks))
                self.assert_same_results(expected, other, context=f"{name} on {ranks}")
            if fidelity == "packet":
                summary, other = self.simulate(path, "--engine", "ns3-default", output=f"{path.stem}_ns3.h5")
                self.assertEqual(summary["fingerprint"], one["fingerprint"], (name, "ns3-default"))


if __name__ == "__main__":
    unittest.main()
