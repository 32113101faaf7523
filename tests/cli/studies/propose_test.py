#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# Time limit: 600 s
"""`weft propose`: machines with the requested number of hosts, in the form of a study, and the nearest of the others."""

import json
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from weft_testing import EXIT_INPUT, SOURCE, ProgramTest, weft

sys.path.insert(0, str(SOURCE / "scripts"))
from studies.families import FAMILIES, factors  # noqa: E402

SECONDS = 300


class Propose(ProgramTest):
    def test_each_has_the_hosts_and_the_rate(self):
        found = json.loads(self.run_weft("propose", "64", "--rate", "200Gb/s", "--json", seconds=SECONDS).out)
        self.assertEqual(sorted([*found["machines"], *found["nearest"]]), sorted(family.name for family in FAMILIES))
        self.assertGreater(len(found["machines"]), 8)
        for name, machine in found["machines"].items():
            with self.subTest(name):
                self.assertEqual(machine["figures"]["hosts"], 64)
                self.assertEqual(machine["figures"]["injection_rate"], 200e9)

    def test_the_words_of_topology(self):
        found = self.run_weft("topology", "--hosts", "16", "--rate", "200Gb/s", "--json", seconds=SECONDS).out
        self.assertEqual(found, self.run_weft("propose", "16", "--rate", "200Gb/s", "--json", seconds=SECONDS).out)
        star = json.loads(found)["machines"]["star"]["figures"]
        # A price for it: 16 ports of 200 Gb/s, 16 cables of 100 m, and two servers of eight, by the middle estimate.
        self.assertEqual(star["network_cost"], 16 * 2 * 168 + 16 * 2 * 330)
        self.assertEqual(star["cost"], star["network_cost"] + 16 * 27500 + 2 * (90000 + 25000))

    def test_full_bisection_is_half_of_the_hosts(self):
        found = json.loads(self.run_weft("propose", "64", "--rate", "200Gb/s", "--json", seconds=SECONDS).out)
        found = found["machines"]
        for name, share in {"fat_tree_xgft": 1, "leaf_spine": 1, "leaf_spine_2_to_1": 0.5, "hypercube": 1}.items():
            self.assertEqual(found[name]["figures"]["bisection"], share * 32 * 200e9, name)
        # A torus of 8 x 8: two links each of eight lines, and both ways round.
        self.assertEqual(found["torus_2d"]["figures"]["bisection"], 2 * 8 * 200e9)

    def test_the_nearest_where_there_is_none(self):
        found = json.loads(self.run_weft("propose", "20", "--json", seconds=SECONDS).out)
        hosts = {name: [machine["figures"]["hosts"] for machine in pair] for name, pair in found["nearest"].items()}
        self.assertEqual(hosts["fat_tree"], [16, 54])
        self.assertEqual(hosts["hypercube"], [16, 32])
        self.assertEqual(hosts["rails"], [16, 24])

    def test_switches_have_no_more_ports(self):
        found = json.loads(self.run_weft("propose", "32", "--ports", "8", "--json", seconds=SECONDS).out)["machines"]
        self.assertNotIn("star", found)
        for name, machine in found.items():
            if name == "rails":  # its servers have switches, too
                continue
            with self.subTest(name):
                self.write(json.dumps(machine["topology"]), "machine.yaml")
                report = json.loads(self.run_weft("topology", "machine.yaml", "--json", "--processes", "1").out)
                self.assertLessEqual(max(map(int, report["switches_by_ports"])), 8)

    def test_a_study_takes_what_is_printed(self):
        text = self.run_weft("propose", "16", seconds=SECONDS).out
        grid = "".join(f"  {line}\n" for line in text.splitlines())
        self.write("experiment:\n  topology: {kind: star, hosts: 16, link_rate: 400 Gb/s, link_delay: 500 ns}\n"
                   "  workload: {kind: collective, collective: all_reduce, size: 64 KiB}\n"
                   f"grid:\n{grid}equal: [hosts, injection_rate]\n", "study.yaml")
        done = self.run_weft("sweep", "study.yaml", "--summary", "json", "--quiet", seconds=SECONDS)
        self.assertGreater(done.summary()["done"], 8)
        self.assertEqual(done.summary()["done"], done.summary()["cases"])

    def test_words(self):
        for words in (["1"], ["x"], [], ["16", "--rate", "400"], ["16", "--rate", "1 us"], ["16", "--ports", "0"],
                      ["16", "--hosts", "16"]):
            done = weft("propose", *words, folder=self.folder)
            self.assertEqual(done.code, EXIT_INPUT, done)
            self.assertEqual(len(done.err.splitlines()), 1, done)

    def test_factors(self):
        self.assertEqual(factors(12, 2), [(2, 6), (3, 4)])
        self.assertEqual(factors(16, 3), [(2, 2, 4)])
        self.assertEqual(factors(7, 2), [])


if __name__ == "__main__":
    unittest.main()
