#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""The ready-made machines agree with their sources."""

import json
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from weft_testing import SOURCE, ProgramTest

SPECS = SOURCE / "topologies" / "specs"
TERABYTE = 8 * 10**12  # bits


class Machines(ProgramTest):
    def report(self, name):
        return json.loads(self.run_weft("topology", SPECS / f"{name}.yaml", "--json", "--processes", "2").out)

    def rate(self, report, link_class):
        return next(item["rate_bps"] for item in report["links_by_class"] if item["class"] == link_class)

    def test_tpu_pods(self):
        """Google's tables: bisection 1.6 and 3.2 TB/s, all-reduce 51.2 and 102.4 TB/s of 256 chips on a 2D torus; all-reduce
        is the rate at which all chips together can send."""
        for name, bisection, all_reduce in [("tpu_v5e_pod", 1.6, 51.2), ("tpu_v6e_pod", 3.2, 102.4)]:
            report = self.report(name)
            self.assertEqual(report["hosts"], 256)
            self.assertEqual(report["bisection_bps"], bisection * TERABYTE)
            self.assertEqual(report["hosts"] * self.rate(report, "host"), all_reduce * TERABYTE)
        cube = self.report("tpu_v5p_slice")
        self.assertEqual(2 * self.rate(cube, "host"), 1.2 * TERABYTE)  # per chip, in both directions
        self.assertEqual(self.report("tpu_v4_pod")["hosts"], 4096)

    def test_frontier(self):
        """74 groups of 32 switches and 512 endpoints; 4 links between any two groups."""
        report = self.report("frontier")
        self.assertEqual((report["hosts"], report["switches"]), (74 * 512, 74 * 32))
        links = {item["class"]: item["count"] for item in report["links_by_class"]}
        self.assertEqual(links, {"host": 74 * 512, "local": 74 * 32 * 31 // 2, "global": 4 * 74 * 73 // 2})
        self.assertEqual(report["diameter"], 5)

    def test_servers(self):
        nvl72 = self.report("gb200_nvl72")
        self.assertEqual(nvl72["hosts"], 72)
        self.assertEqual(2 * 72 * self.rate(nvl72, "nvlink"), 129.6 * TERABYTE)  # "130 TB/s"
        for name, gpus in [("h100_rail_optimised", 256), ("h100_rail_only", 256), ("h100_dual_tor", 128),
                           ("h100_full_clos", 256), ("h800_multi_plane", 256), ("mi300x_pod", 128),
                           ("frontier_three_groups", 3072)]:
            self.assertEqual(self.report(name)["hosts"], gpus)


if __name__ == "__main__":
    unittest.main()
