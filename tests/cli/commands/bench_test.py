#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""`weft bench`: its cases and ratios, for people and in JSON. Bounds are far below the values in docs/concepts/performance.md,
because other programs may run beside; tests/performance/instructions_test.py counts the exact cost of the hot path.
scripts/measure_scaling, which `scripts/bench --scaling` runs: its table and pictures."""

import csv
import json
import os
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from weft_testing import SOURCE, WEFT, ProgramTest, environment  # noqa: E402


class Bench(ProgramTest):
    def bench(self, ranks=None):
        done = self.run_weft("bench", "--quick", "--json", "bench.json", ranks=ranks)
        return done.out, json.loads((self.folder / "bench.json").read_text())

    def check(self, text, result):
        self.assertEqual(result["turns"], 1)
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
        costs = {(case["hosts"], case["engine"]): case["ns_per_packet_hop"] for case in result["cases"]
                 if case["name"] == "permutation"}
        others = {case["name"]: case["ns_per_packet_hop"] for case in result["cases"] if case["name"] != "permutation"}
        self.assertEqual(len(costs) + len(others), len(result["cases"]))
        for name, cost in others.items():
            self.assertAlmostEqual(result["ratios"][f"cost_{name}_over_committed"], cost / costs[128, "weft"], msg=name)
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


class Scaling(ProgramTest):
    def measure(self, *words):
        return subprocess.run([SOURCE / "scripts" / "measure_scaling", *words], cwd=self.folder, capture_output=True,
                              text=True, check=False, env={**environment(), "WEFT": os.path.abspath(WEFT)})

    def test_table_and_pictures(self):
        done = self.measure("--quick", "-o", "new/folder", "--processes", "3", "--runs", "2")
        self.assertEqual(done.returncode, 0, done.stderr)
        folder = self.folder / "new" / "folder"
        with open(folder / "scaling.csv", newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        # One process is the measure of the others, so it is always there. A fat-tree of k ports has k^3 / 4 hosts.
        self.assertEqual([(row["experiment"], int(row["hosts"]), int(row["processes"]), int(row["run"])) for row in rows],
                         [(name, hosts, processes, run) for run in (0, 1)
                          for name, hosts in [("permutation", 16), ("permutation", 54), ("ring all-reduce", 16),
                                              ("halving-doubling all-reduce", 16)]
                          for processes in (1, 3)])
        for row in rows:
            hops, wall, cost, waiting = (float(row[name]) for name in
                                         ("packet_hops", "wall_seconds", "ns_per_packet_hop", "waiting"))
            self.assertAlmostEqual(cost, wall * 1e9 / hops)
            self.assertTrue(0 <= waiting < 1 if row["processes"] == "3" else waiting == 0, row)
        hops = {(row["experiment"], row["hosts"]): row["packet_hops"] for row in rows}
        for row in rows:
            self.assertEqual(row["packet_hops"], hops[row["experiment"], row["hosts"]])
        self.assertEqual({path.name for path in folder.iterdir()},
                         {"scaling.csv", "scaling_cost.png", "scaling_speedup.png", "scaling_waiting.png"})
        for picture in folder.glob("*.png"):
            self.assertTrue(picture.read_bytes().startswith(b"\x89PNG\r\n\x1a\n"))

    def test_refusals(self):
        for words, text in [(["--k", "5"], "even"), (["--processes", "0"], "at least 1"), (["--runs", "-1"], "at least 1")]:
            done = self.measure("--quick", *words)
            self.assertEqual(done.returncode, 2, done)
            self.assertIn(text, done.stderr)


if __name__ == "__main__":
    unittest.main()
