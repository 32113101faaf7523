# SPDX-License-Identifier: GPL-2.0-only
"""`weft bench`: its cases and ratios, for people and in JSON. Bounds are far below what docs/performance.md tells, because
other programs may run beside; what the hot path costs exactly is counted by tests/performance/instructions_test.py."""

import json
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from weft_testing import ProgramTest  # noqa: E402


class Bench(ProgramTest):
    def bench(self, ranks=None):
        done = self.run_weft("bench", "--quick", "--json", "bench.json", ranks=ranks)
        return done.out, json.loads((self.folder / "bench.json").read_text())

    def check(self, text, result):
        for case in result["cases"]:
            self.assertEqual(list(case), ["name", "hosts", "mpi_ranks", "engine", "packet_hops", "wall_seconds",
                                          "ns_per_packet_hop"])
            self.assertGreater(case["packet_hops"], 0)
            self.assertAlmostEqual(case["ns_per_packet_hop"], case["wall_seconds"] * 1e9 / case["packet_hops"])
        for name in result["ratios"]:
            self.assertIn(name, text)
        self.assertEqual({(case["hosts"], case["engine"]) for case in result["cases"] if case["mpi_ranks"] == 1},
                         {(128, "weft"), (128, "ns3-default"), (128, "ns3-stack"), (1024, "weft"), (8192, "weft")})
        self.assertGreater(result["ratios"]["weft_over_ns3_engine"], 2)
        self.assertGreater(result["ratios"]["weft_over_ns3_stack"], 20)

    def test_alone(self):
        text, result = self.bench()
        self.check(text, result)
        costs = {(case["hosts"], case["engine"]): case["ns_per_packet_hop"] for case in result["cases"]}
        self.assertEqual(len(costs), len(result["cases"]))
        for name, over, under in [("weft_over_ns3_engine", (128, "ns3-default"), (128, "weft")),
                                  ("weft_over_ns3_stack", (128, "ns3-stack"), (128, "weft")),
                                  ("cost_1024_hosts_over_128", (1024, "weft"), (128, "weft")),
                                  ("cost_8192_hosts_over_128", (8192, "weft"), (128, "weft"))]:
            self.assertAlmostEqual(result["ratios"][name], costs[over] / costs[under], msg=name)

    def test_two_ranks(self):
        text, result = self.bench(ranks=2)
        self.check(text, result)
        for name, case in [("speedup_permutation_1024_hosts", "permutation"), ("speedup_all_reduce_1024_hosts", "all_reduce")]:
            one, two = (next(c["ns_per_packet_hop"] for c in result["cases"]
                             if c["name"] == case and c["hosts"] == 1024 and c["engine"] == "weft" and c["mpi_ranks"] == n)
                        for n in (1, 2))
            self.assertAlmostEqual(result["ratios"][name], one / two, msg=name)


if __name__ == "__main__":
    unittest.main()
