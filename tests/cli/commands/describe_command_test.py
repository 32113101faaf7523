#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""weft describe counts what jobs of thousands of ranks put on which links, in seconds."""

import pathlib
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from weft_testing import ProgramTest, quantities, table

UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
LINK = {"link_rate": "400 Gb/s", "link_delay": "500 ns"}


class DescribeCommand(ProgramTest):
    def describe(self, experiment):
        return self.run_weft("describe", self.write(experiment)).out

    def wire(self, text, links):
        number, unit = re.search(rf"on the wire, {links} +([\d.]+) (\w+)", text).groups()
        return float(number) * UNITS[unit]

    def test_ranks_that_stand_for_others_are_in_all_places_below_leaves(self):
        """2,048 ranks in one ring, 16 below each leaf: each message takes two links of hosts, and one of 16 messages
        takes two links between leaves and spines, too."""
        model = '{"model_type": "gpt2", "n_embd": 64, "n_head": 4, "n_layer": 2, "n_positions": 64, "vocab_size": 256}'
        pathlib.Path(self.folder, "model.json").write_text(model, encoding="utf-8")
        topology = {"kind": "leaf_spine", "leaves": 128, "spines": 16, "hosts_per_leaf": 16, **LINK}
        text = self.describe({"topology": topology, "workload": {
            "kind": "training", "model": "model.json", "device": "h100-sxm", "micro_batch": 1,
            "parallelism": {"data": 2048}, "channels": 1}})
        self.assertIn("on 256 of the ranks", text)
        # Four digits are printed.
        self.assertAlmostEqual(self.wire(text, "leaf-spine") / self.wire(text, "host"), 1 / 16, delta=1e-4)

    def test_ring_of_65535_ranks(self):
        """n blocks of 1 KiB, each a message, pass over n - 1 links, twice. These are 8.6 billion steps, of which a part is
        walked."""
        ranks = 65535
        text = self.describe({"topology": {"kind": "star", "hosts": ranks, **LINK}, "workload": {
            "kind": "collective", "collective": "all_reduce", "algorithm": "ring", "size": f"{ranks} KiB"}})
        self.assertEqual(quantities(text, "messages"), ranks * 2 * (ranks - 1))
        self.assertEqual(quantities(text, "data packets"), ranks * 2 * (ranks - 1))
        self.assertEqual(len(re.findall(r"^  ranks  ", text, re.MULTILINE)), 1)

    def test_ranks_stand_once_and_targets_beside_them(self):
        """All kinds of workload have the line of their ranks from the same place."""
        topology = {"kind": "star", "hosts": 6, **LINK}
        text = self.describe({"topology": topology, "workload": {"kind": "checkpoint", "targets": 2, "size": "1 MiB"}})
        self.assertRegex(text, r"\n  ranks +6\n  operation +write\n  targets +the last 2 of the ranks\n")
        traffic = {"kind": "traffic", "pattern": "permutation", "size": "1 MB"}
        for text in (self.describe({"topology": topology, "workload": traffic}),
                     self.run_weft("workload", self.write({"topology": topology, "workload": traffic})).out):
            self.assertEqual(len(re.findall(r"^  ranks +6$", text, re.MULTILINE)), 1)

    def test_equal_calls_are_walked_once_and_counted_each_time(self):
        """In a ring of n ranks each of n blocks is sent 2 (n - 1) times. A block of 4,000 B is one packet, of 10,000 B three.
        Rank 3 is in no call of 12,000 B."""
        sizes = ["16000 B", "40000 B", "16000 B", "12000 B", "12000 B", "16000 B"]
        calls = [{"collective": "all_reduce", "size": size, **({"communicator": "three"} if size == "12000 B" else {})}
                 for size in sizes]  # fmt: skip
        experiment = {"topology": {"kind": "star", "hosts": 4, **LINK}, "network": {"mtu": "4096 B"},
                      "workload": {"kind": "program", "ranks": 4, "algorithm": "ring", "channels": 1,
                                   "communicators": {"three": [0, 1, 2]}, "operations": calls}}  # fmt: skip
        text = self.describe(experiment)
        packets = 4 * 6 * (1 + 3 + 1 + 1) + 3 * 4 * (1 + 1)
        self.assertEqual(quantities(text, "data packets"), packets)
        _, results = self.simulate(experiment)
        self.assertEqual(quantities(text, "messages"), len(table(results, "messages")["id"]))


if __name__ == "__main__":
    unittest.main()
