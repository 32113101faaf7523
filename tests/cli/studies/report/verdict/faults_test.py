#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# Time limit: 600 s
"""The verdict on the page of `weft report` about links that the experiment slows down or lets fail, and runs that were cut short."""

import pathlib
import sys
import unittest

import h5py

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from report_testing import INCAST, PageTest
from weft_testing import NETWORK, STAR, table, weft


class Faults(PageTest):
    def test_a_link_that_the_experiment_slows_down(self):
        """In a ring one rank sends to another. A link with a quarter of its rate is busy for 4 times as long: 3 b / R longer."""
        slow = [{"at": "0 us", "link": ["host3", "switch0"], "rate": "25 Gb/s"}]
        _, file = self.simulate({
            "topology": {**STAR, "hosts": 8, "link_rate": "100 Gb/s"}, "network": {**NETWORK, "failures": slow},
            "workload": {"kind": "collective", "collective": "all_reduce", "algorithm": "ring", "size": "8 MiB"}})
        self.show(file)
        self.assertEqual(self.verdict()["link"], "switch0 → host3")
        self.assertNotIn("Many send", self.text(".verdict"))
        links = table(file, "links")
        size = links["bytes"][(links["from_name"] == "switch0") & (links["to_name"] == "host3")][0]
        self.assertIn(f"switch0 → host3 (host) sent at 25 Gb/s instead of 100 Gb/s, for {3 * size * 8 / 100e9 * 1e3:.4g} ms longer",
                      self.text(".verdict"))
        self.assertIn("repairing it helps first", self.text(".verdict"))
        self.assertEqual(self.verdict()["verdict"], "slowed")
        self.assertIn("A link that is slower than it should be bounds the run", self.text(".verdict"))

    def test_a_slow_link_in_a_file_without_parts_of_times(self):
        """Messages tell that they queued at the link, and not by how much its rate delayed them."""
        _, file = self.simulate({
            "topology": {**STAR, "hosts": 8, "link_rate": "100 Gb/s"}, "output": {"attribution": "none"},
            "network": {**NETWORK, "failures": [{"at": "0 us", "link": ["host3", "switch0"], "rate": "25 Gb/s"}]},
            "workload": {"kind": "collective", "collective": "all_reduce", "algorithm": "ring", "size": "8 MiB"}})
        self.show(file)
        self.assertEqual(self.verdict(), {"verdict": "slowed", "congested": "1", "link": "switch0 → host3"})
        self.assertRegex(self.text(".verdict"), r"slower than they should be, bounds the run.*exposed communication [0-9.]+ ms, [0-9]+ %\)")

    def test_a_failed_link_is_named(self):
        file = self.simulate({
            "topology": {"kind": "leaf_spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 4, "link_rate": "100 Gb/s",
                         "link_delay": "500 ns"},
            "network": {**NETWORK, "failures": [{"at": "1 us", "link": ["leaf0", "spine0"]}], "reconvergence": "10 us"},
            "workload": {"kind": "collective", "collective": "all_to_all", "algorithm": "nccl_p2p", "size": "1 MiB"}})[1]
        self.show(file)
        self.assertIn("leaf0 – spine0 was down from 1 us on", self.text(".verdict"))

    def test_one_rank_that_waits_for_a_timer(self):
        """Of 256 hosts one has its link down while its last packets are in flight: without later packets only the timer of lossless
        links, 67.1 ms (4.096 us x 2^14), tells of the loss. All others have ended; they are idle, and no compute could fill that."""
        _, file = self.simulate({
            "topology": {**STAR, "hosts": 256, "link_rate": "400 Gb/s"},
            "network": {**NETWORK, "flow_control": "pfc", "buffer": {"size": "64 MiB"},
                        "failures": [{"at": "20 us", "until": "200 us", "link": ["host5", "switch0"]}], "reconvergence": "1 ms"},
            "workload": {"kind": "traffic", "pattern": "permutation", "shift": 9, "size": "1 MiB"}})
        self.assertAlmostEqual(table(file, "jobs")["time"][0] / (4.096e6 * 2**14), 1, delta=0.01)
        ranks = table(file, "ranks")
        waits = ranks["part_retransmission"] > 0.9 * ranks["part_idle"].max()
        self.assertGreater(waits.sum(), 0)
        self.show(file)
        verdict = self.text(".verdict")
        self.assertRegex(verdict, f"Most ranks have ended long before rank ({'|'.join(map(str, ranks['rank'][waits]))}), which spends .* on retransmission")
        self.assertRegex(verdict, r"a shorter timer .*go_back_n.timeout.*, which expired 2 times")
        self.assertNotIn("micro-batches", verdict)

    def test_an_incomplete_run_is_marked(self):
        path = self.write({**INCAST, "simulation": {"until": "100 us"}})
        done = weft("run", path, "-o", "out.h5", folder=self.folder)
        with h5py.File(self.folder / "out.h5") as results:
            self.assertEqual(results.attrs["complete"], 0, done)
        self.show(self.folder / "out.h5")
        self.assertIn("INCOMPLETE", self.text("[data-incomplete]"))


if __name__ == "__main__":
    unittest.main()
