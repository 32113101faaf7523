#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# Time limit: 600 s
"""The verdict on the page of `weft report` about work of ranks: compute, launches, transfer as on an idle network."""

import json
import pathlib
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from report_testing import PageTest, TRAINING
from weft_testing import NETWORK, table

# Llama 3.2 1B; its head is tied.
LLAMA_1B = {"model_type": "llama", "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16,
            "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 64, "vocab_size": 128256,
            "max_position_embeddings": 8192, "tie_word_embeddings": True}  # fmt: skip


class Work(PageTest):
    def test_latencies_bound_small_messages(self):
        """Of 14 steps of two links with 2 us each nearly all is latency: no slot is missing, and links are idle."""
        star = {"kind": "star", "hosts": 8, "link_rate": "400 Gb/s", "link_delay": "2 us"}
        _, file = self.simulate({"topology": star, "workload": {
            "kind": "collective", "collective": "all_reduce", "algorithm": "ring", "size": "1 KiB"}})
        self.show(file)
        self.assertEqual(self.verdict()["verdict"], "transfer")
        self.assertIn("latencies count", self.text(".verdict"))

    def test_latencies_bound_messages_of_busier_links(self):
        """A ring all-reduce of 1 MB on 4 ranks sends 250 kB in each step, in two slices (NCCL's): 2.5 us for 125 kB at 400 Gb/s, and two
        links of 10 us. 20 / 22.5 = 89 % are latency, though links are busy for more than a tenth of the time."""
        star = {"kind": "star", "hosts": 4, "link_rate": "400 Gb/s", "link_delay": "10 us"}
        _, file = self.simulate({"topology": star, "network": {**NETWORK, "window": "1 MiB"}, "workload": {
            "kind": "collective", "collective": "all_reduce", "algorithm": "ring", "size": "1 MB"}})
        self.show(file)
        self.assertEqual(self.verdict()["verdict"], "transfer")
        self.assertGreater(table(file, "links")["utilization"].max(), 0.1)
        self.assertIn("latencies are 89 % of the time of messages", self.text(".verdict"))

    def test_slots_and_latencies_of_a_long_ring(self):
        """A ring over two leaves with long links between them, in chunks of 16 KiB: NCCL's four slices of 8 KiB are less than what
        is under way to the next rank and back. Only ranks at these links wait for slots; all others wait for these ranks."""
        experiment = {"topology": {"kind": "leaf_spine", "leaves": 2, "hosts_per_leaf": 16, "spines": 16, "link_rate": "400 Gb/s",
                                   "host_link_rate": "400 Gb/s", "host_link_delay": "100 ns", "link_delay": "1 us"},
                      "network": {**NETWORK, "mtu": "4096 B", "ack": "66 B"},
                      "workload": {"kind": "collective", "collective": "all_reduce", "algorithm": "ring", "size": "512 KiB"},
                      "output": {"attribution": "full", "operations": True}}  # fmt: skip
        summary, file = self.simulate(experiment)
        self.show(file)
        self.assertEqual(self.verdict()["verdict"], "transfer")
        said = re.search(r"against waiting for free slots at receivers, ([0-9.]+) % of the critical path", self.text(".verdict"))
        self.assertIsNotNone(said, self.text(".verdict"))
        more, _ = self.simulate(experiment, "--set", "workload.credits=16")
        saved = 100 * (1 - more["simulated_time_ps"] / summary["simulated_time_ps"])
        self.assertGreater(saved, 10)
        self.assertGreater(float(said[1]), saved)
        self.assertIn("fewer steps of the algorithm, shorter ways", self.text(".verdict"))

    def test_storage_that_is_busy_all_the_time(self):
        """Four ranks write 4 MiB each to two targets with devices of 10 Gb/s, which take 8 MiB / 10 Gb/s = 6.7 ms; links take a tenth."""
        file = self.simulate({
            "topology": {"kind": "leaf_spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 4, "link_rate": "100 Gb/s",
                         "link_delay": "500 ns", "storage_hosts": 2}, "network": NETWORK,
            "workload": {"kind": "checkpoint", "ranks": 4, "size": "4 MiB", "device_rate": "10 Gb/s"}})[1]
        self.show(file)
        self.assertEqual(self.verdict()["verdict"], "compute")
        self.assertIn("rank 4 computes, or serves storage", self.text(".verdict"))

    def test_compute_bounds_a_step_with_little_communication(self):
        _, file = self.simulate(TRAINING, "--set", "topology.link_rate=1600 Gb/s")
        self.show(file)
        self.assertEqual(self.verdict()["verdict"], "compute")

    def test_launches_bound_a_step_of_short_kernels(self):
        """Llama 1B eager on B200s: launches of some 700 kernels take longer than these, if sequences are short. CUDA graphs save
        three tenths of a step then. With 1,792 tokens instead of 1,024 they save an eighth, because the optimizer's long kernels
        follow, and with sixteen longer sequences nothing. The device computes for more than half of all these steps."""
        def saved(sequence, batch):
            (self.folder / "config.json").write_text(json.dumps(LLAMA_1B))
            workload = {"kind": "training", "model": "config.json", "device": "b200-sxm", "framework": "pytorch_eager",
                        "parallelism": {"data": 8}, "micro_batch": batch, "sequence_length": sequence}  # fmt: skip
            experiment = {"topology": {"kind": "star", "hosts": 8, "link_rate": "3600 Gb/s", "link_delay": "500 ns"},
                          "network": {**NETWORK, "window": "1 MiB"}, "workload": workload, "output": {"operations": True, "attribution": "full"}}
            file = self.simulate(experiment)[1]
            graphs = self.simulate({**experiment, "workload": {**workload, "cuda_graphs": True}}, output="graphs.h5")[1]
            self.show(file)
            self.assertGreater(table(file, "jobs")["compute"][0], 0.5 * table(file, "jobs")["time"][0])
            return 1 - float(table(graphs, "jobs")["time"][0]) / float(table(file, "jobs")["time"][0])

        self.assertGreater(saved(1024, 1), 3 / 10)
        self.assertEqual(self.verdict()["verdict"], "host")
        self.assertIn("CUDA graphs", self.text(".verdict"))
        path = json.loads(self.run_weft("explain", self.folder / "out.h5", "--json").out)["critical_path"]
        self.assertGreater(path["sums"]["host"], 0.6 * path["time"])
        self.assertGreater(saved(1792, 1), 1 / 8)
        self.assertEqual(self.verdict()["verdict"], "compute")
        self.assertIn("of waiting for the host CUDA graphs", self.text(".verdict"))
        self.assertLess(saved(4096, 16), 0.02)
        self.assertEqual(self.verdict()["verdict"], "compute")
        self.assertNotIn("CUDA graphs", self.text(".verdict"))


if __name__ == "__main__":
    unittest.main()
