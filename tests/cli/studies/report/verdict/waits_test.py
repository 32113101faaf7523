#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# Time limit: 600 s
"""The verdict on the page of `weft report` about ranks that wait: for a straggler, for each other, for acknowledgements."""

import pathlib
import sys
import unittest

import h5py

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from report_testing import IDLE, PageTest
from weft_testing import NETWORK, STAR, table


class Waits(PageTest):
    def test_a_straggler_is_named(self):
        """Synthetic: one rank computes for half of the run, and the others wait for it."""
        _, file = self.simulate(IDLE)
        with h5py.File(file, "a") as results:
            end = int(results.attrs["simulated_time"])
            for place in ("jobs", "ranks"):
                for name in [name for name in results[place] if name.startswith("part_")]:
                    results[place][name][:] = 0
            ranks = results["ranks"]
            ranks["compute"][:] = [end // 10, end // 10, end // 2, end // 10]
            ranks["part_compute"][:] = ranks["compute"][:]
            ranks["part_peers"][:] = end - ranks["compute"][:]
            results["jobs/part_compute"][:] = ranks["compute"][:].sum()
            results["jobs/part_peers"][:] = ranks["part_peers"][:].sum()
        self.show(file)
        self.assertEqual(self.verdict()["verdict"], "straggler")
        self.assertIn("rank 2 computes", self.text(".verdict"))

    def steps(self, ranks, compute, slow=None, rounds=10):
        """Rounds of compute and an all-reduce of 4 KiB; one rank may compute longer."""
        operations = [operation for number in range(rounds) for operation in (
            {"rank": "all", "id": f"work {number}", "compute": compute, **({"after": f"sum {number - 1}"} if number else {})},
            {"id": f"sum {number}", "collective": "all_reduce", "size": "4 KiB", "algorithm": "ring", "after": f"work {number}"})]
        workload = {"kind": "program", "ranks": ranks, "operations": operations}
        if slow:
            workload["compute_noise"] = {"slow_ranks": [slow]}
        return {"topology": {**STAR, "hosts": ranks}, "network": NETWORK, "workload": workload}

    def test_a_straggler_is_named_where_compute_is_most(self):
        """Eight ranks compute 10 x 1 ms, and one of them 1.3 times as long: the others wait for 3 of some 13 ms. No network makes the
        run shorter than the 13 ms of that rank."""
        _, file = self.simulate(self.steps(8, "1 ms", {"ranks": [3], "factor": 1.3}))
        self.show(file)
        self.assertEqual(self.verdict()["verdict"], "straggler")
        self.assertIn("rank 3 computes 3 ms longer", self.text(".verdict"))
        self.assertIn("by at most 3 ms", self.text(".verdict"))
        time = table(file, "jobs")["time"][0] / 10**9
        self.assertLess(time, 13.5)
        _, file = self.simulate(self.steps(8, "1 ms"), output="even.h5")
        self.show(file)
        self.assertEqual(self.verdict()["verdict"], "compute")
        left = table(file, "jobs")["time"][0] / 10**6 - 10_000
        self.assertIn(f"a better network would save at most {left:.4g} µs", self.text(".verdict"))

    def test_a_slow_rank_for_which_nobody_waits(self):
        """Rank 3 computes 60 us longer beside an all-reduce of 4 ranks that takes 2 x 3/4 of 8 MiB at 100 Gb/s, 1 ms: it is told,
        and not that others wait."""
        operations = [{"rank": rank, "compute": "160 us" if rank == 3 else "100 us"} for rank in range(4)]
        operations.append({"collective": "all_reduce", "algorithm": "ring", "size": "8 MiB", "stream": "communication"})
        _, file = self.simulate({"topology": STAR, "network": NETWORK, "workload": {
            "kind": "program", "ranks": 4, "operations": operations}})
        self.show(file)
        self.assertEqual(self.verdict()["verdict"], "transfer")
        self.assertIn("rank 3 computes 60 µs longer than the median.", self.text(".verdict"))

    def test_a_bubble_is_not_blamed_on_the_last_stage(self):
        """1F1B of 4 stages and 4 micro-batches: ranks wait for 3/7 of the step even if all stages are equal (Narayanan et al., SC
        2021: (p - 1)/(m + p - 1)). The last stage has the head, and computes longer by less than a third of these waits."""
        _, file = self.simulate({
            "topology": STAR, "network": {**NETWORK, "window": "1 MiB"},
            "workload": {"kind": "training", "model": "llama-3.1-8b", "device": "h100-sxm", "parallelism": {"pipeline": 4},
                         "micro_batch": 1, "micro_batches": 4, "sequence_length": 2048, "algorithm": "ring", "steps": 1}})
        jobs = table(file, "jobs")
        self.assertGreater(jobs["part_peers"][0] / (jobs["time"][0] * jobs["ranks"][0]), 3 / 7)
        self.show(file)
        self.assertNotEqual(self.verdict()["verdict"], "straggler")
        self.assertIn("rank 3 computes", self.text(".verdict"))
        self.assertIn("more micro-batches", self.text(".verdict"))

    def test_a_window_that_one_hop_of_a_ring_fills(self):
        """Two hops of a ring have a round trip of 4 x 5 us and more, in which they send 256 KiB, 5.4 us at their rate: they wait for
        three quarters of the time, and all others for them. Half of the ranks do not even have a switch between them."""
        experiment = {
            "topology": {"kind": "leaf_spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 4, "link_rate": "400 Gb/s",
                         "link_delay": "5 us", "host_link_delay": "100 ns"},
            "network": {**NETWORK, "window": "256 KiB"},
            "workload": {"kind": "collective", "collective": "all_reduce", "algorithm": "ring", "size": "64 MiB"}}
        saved = self.saved(experiment, window="4 MiB")
        self.assertGreater(saved, 0.5)
        self.assertEqual(self.verdict()["verdict"], "window")
        self.assertIn("A larger window", self.text(".verdict"))


if __name__ == "__main__":
    unittest.main()
