#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# Time limit: 600 s
"""Experiments whose cause of delay is known beforehand: what the verdict advises saves what another run says."""

import json
import pathlib
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from report_testing import PageTest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3]))
from weft_testing import NETWORK, table  # noqa: E402

FULL = {"operations": True, "attribution": "full"}
LEAVES = {"kind": "leaf_spine", "leaves": 2, "hosts_per_leaf": 8, "spines": 4, "link_rate": "200 Gb/s",
          "host_link_rate": "100 Gb/s", "link_delay": "500 ns"}  # fmt: skip


class Advice(PageTest):
    def simulated(self, experiment, *words):
        file = self.simulate(experiment, *words)[1]
        return file, int(table(file, "jobs")["time"].max())

    def torus(self, pairs):
        return {"topology": {"kind": "torus", "dims": [8, 8], "link_rate": "100 Gb/s", "link_delay": "500 ns"},
                "network": {**NETWORK, "window": "256 KiB"},
                "workload": {"kind": "traffic", "pattern": "pairs", "pairs": pairs, "size": "256 KiB"}}  # fmt: skip

    def test_traffic_along_one_dimension_has_no_other_path(self):
        """Tornado: each router sends three further along its ring. All links of that way are as busy, and minimal paths leave no
        choice: `minimal_adaptive` saves nothing, and is not advised."""
        experiment = self.torus([[8 * y + x, 8 * y + (x + 3) % 8] for y in range(8) for x in range(8)])
        adaptive = self.simulated(experiment, "--set", "network.routing=minimal_adaptive")[1]
        file, time = self.simulated(experiment)
        self.assertGreater(adaptive, 0.98 * time)
        self.show(file)
        self.assertEqual(self.verdict()["verdict"], "queueing")
        self.assertNotIn("minimal_adaptive", self.text(".verdict"))
        self.assertNotIn("load_balancing", self.text(".verdict"))

    def test_traffic_across_dimensions_has_other_paths(self):
        """The four routers of a square send to its opposite corners, those of one row to one column: dimension order puts all on one
        link, and the other order of dimensions leads around it."""
        experiment = self.torus([[x, 8 * (x + 1) + 4] for x in range(4)])
        adaptive = self.simulated(experiment, "--set", "network.routing=minimal_adaptive")[1]
        file, time = self.simulated(experiment)
        self.assertLess(adaptive, 0.9 * time)
        self.show(file)
        self.assertIn("minimal_adaptive", self.text(".verdict"))

    def test_a_network_that_is_too_narrow(self):
        """Eight hosts of a leaf send 1 MB each to those of the other, over two spines of 100 Gb/s each: together they take
        8 MB with headers / 200 Gb/s however the flows are spread, so that other load balancing saves the rest at most, and six more
        spines save more."""
        experiment = {"topology": {**LEAVES, "spines": 2, "link_rate": "100 Gb/s"}, "output": FULL,
                      "network": {**NETWORK, "flow_control": "pfc", "buffer": {"size": "16 MiB"}},
                      "workload": {"kind": "traffic", "pattern": "pairs", "size": "1 MB", "pairs": [[i, 8 + i] for i in range(8)]}}
        packets = -(-1_000_000 // 4096)
        crossing = 8 * (1_000_000 + packets * (62 + 20)) * 8 / 200e9 * 1e12
        for control in ("none", "dctcp"):
            file, time = self.simulated(experiment, "--set", f"network.congestion_control={control}")
            self.show(file)
            text = self.text(".verdict").replace("\N{NO-BREAK SPACE}", " ")
            found = re.search(r"What (?:goes up from leaf0|comes down to leaf1) keeps its 2 links there busy for ([0-9]+) % of it, whatever paths it "
                              r"takes: more or faster links there, .* by at most ([0-9.]+) µs", text)
            self.assertIsNotNone(found, text)
            share = crossing / time
            self.assertAlmostEqual(float(found[1]), 100 * share, delta=0.51)
            saves = time - crossing
            self.assertAlmostEqual(float(found[2]) * 1e6, saves, delta=0.01 * time)
            for change, more in (("network.load_balancing=adaptive", False), ("topology.spines=8", True)):
                other = self.simulated(experiment, "--set", f"network.congestion_control={control}", "--set", change)[1]
                self.assertEqual(time - other > saves, more, (control, change))

    def test_another_job_at_the_link_of_a_host(self):
        """Seven hosts of the job `storm` send 2 MiB each to a host of a ring, whose three all-reduces of 1 MiB need 3 x 2 x 15/16 MiB
        there: of what passes that link 14/19.6 is of the storm, and nothing helps but to place it apart."""
        jobs = [{"name": "storm", "share": True, "placement": {"first": 0}, "workload": {
                    "kind": "traffic", "pattern": "incast", "sources": 7, "destination": 0, "size": "2 MiB"}},
                {"name": "ring", "share": True, "placement": {"first": 0}, "workload": {
                    "kind": "collective", "collective": "all_reduce", "algorithm": "ring", "ranks": 16, "size": "1 MiB",
                    "iterations": 3}}]
        experiment = {"topology": LEAVES, "network": {**NETWORK, "flow_control": "pfc", "buffer": {"size": "2 MiB"}},
                      "workload": {"kind": "jobs", "jobs": jobs}}
        alone = self.simulated(experiment, "--set", "workload.only=ring")[1]
        file, time = self.simulated(experiment)
        self.assertLess(alone, 0.5 * time)
        pauses = json.loads(self.run_weft("explain", file, "--json").out)["pauses"][0]
        self.assertEqual((pauses["from"], pauses["to"]), ("leaf0", "host0"))
        self.assertEqual(pauses["jobs"], {"storm": 14 << 20, "ring": 6 * (15 << 16)})
        self.assertIn("jobs that sent there: job storm 14.68 MB, job ring 5.898 MB", self.run_weft("explain", file).out)
        self.show(file)
        text = self.text(".verdict")
        self.assertIn("bounds job ring", text)
        self.assertIn("with the same traffic there", text)
        self.assertIn(f"Only job storm, which has {100 * 14 / (14 + 6 * 15 / 16):.0f} % of what passes it, at another place", text)

    def test_a_slow_rank_beside_what_bounds_the_run(self):
        """Rounds of 1 ms compute and an all-reduce that takes longer; one rank computes 1.3 ms. A run without it saves no more than
        what it computes longer, and the verdict says so."""
        def rounds(factor):
            operations = [one for number in range(5) for one in (
                {"rank": "all", "id": f"work {number}", "compute": "1 ms", **({"after": f"sum {number - 1}"} if number else {})},
                {"id": f"sum {number}", "collective": "all_reduce", "size": "16 MiB", "algorithm": "ring", "after": f"work {number}"})]
            return {"topology": LEAVES, "network": NETWORK, "output": FULL, "workload": {
                "kind": "program", "ranks": 16, "operations": operations,
                "compute_noise": {"slow_ranks": [{"ranks": [5], "factor": factor}]}}}

        even = self.simulated(rounds(1))[1]
        file, time = self.simulated(rounds(1.3))
        self.show(file)
        self.assertEqual(self.verdict()["verdict"], "transfer")
        self.assertIn("less work for rank 5, or a faster one, by at most 1.5 ms", self.text(".verdict"))
        self.assertLessEqual(time - even, 1.5e9 * 1.01)
        self.assertGreater(time - even, 0.5e9)

    def test_a_slow_link_costs_no_more_than_the_run(self):
        """A link at a fifth of its rate, with a queue that makes senders repeat packets, is busy when the job has ended, too."""
        failures = [{"at": "0 us", "link": ["leaf0", "spine2"], "rate": "20 Gb/s"}]
        workload = {"kind": "collective", "collective": "all_to_all", "algorithm": "nccl_p2p", "size": "4 MiB"}
        file, time = self.simulated({"topology": LEAVES, "network": {**NETWORK, "failures": failures}, "workload": workload})
        self.show(file)
        self.assertEqual(self.verdict()["verdict"], "slowed")
        self.assertRegex(self.text(".verdict"), "leaf0 → spine2|spine2 → leaf0")
        longer = float(self.text(".verdict").split("instead of 200 Gb/s, for ")[1].split()[0])
        self.assertLessEqual(longer * 1e9, 0.9 * time * 1.001)


if __name__ == "__main__":
    unittest.main()
