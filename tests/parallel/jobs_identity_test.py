#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Several jobs, placements, background traffic and checkpoints: the same results for every number of MPI ranks."""
# Time limit: 600 s

import functools
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from weft_testing import FAT_TREE, NETWORK, SOURCE, ProgramTest, table, two_at_a_time

RANKS = (2, 3, 4, 8)
IGNORE = ["/manifest/effective_experiment"]

ALL_REDUCE = {"kind": "collective", "collective": "all_reduce", "ranks": 6, "size": "600 kB", "iterations": 2,
              "gap": "20 us"}


def experiment(workload, **more):
    return {"topology": FAT_TREE, "network": NETWORK, "workload": workload, "simulation": {"seed": 5}, **more}


class JobsIdentity(ProgramTest):
    def check(self, text, reference=True):
        """One MPI rank against 2, 3, 4 and 8, and against ns-3's own engine. Gives summary and results of the first."""
        runs = [functools.partial(self.simulate, text, output="one.h5")]
        runs += [functools.partial(self.simulate, text, output=f"{ranks}.h5", ranks=ranks) for ranks in RANKS]
        if reference:
            runs.append(functools.partial(self.simulate, text, "--engine", "ns3-default", output="reference.h5"))
        one, *others = two_at_a_time(runs)
        self.assertTrue(one[0]["complete"])
        for summary, results in others:
            for key in ["fingerprint", "simulated_time_ps", "messages", "jobs", "collectives", "complete"]:
                self.assertEqual(one[0][key], summary[key], key)
            self.assert_same_results(one[1], results, IGNORE, f"{summary['mpi_ranks']} ranks, {summary['engine']}")
        return one

    def test_jobs_on_shared_hosts(self):
        summary, results = self.check(experiment({
            "kind": "jobs",
            "jobs": [
                {"name": "a", "placement": "random", "workload": ALL_REDUCE},
                {"name": "b", "start": "30 us", "placement": {"kind": "random", "seed": 9}, "share": True,
                 "workload": {"kind": "collective", "collective": "all_to_all", "algorithm": "nccl_p2p", "size": "1 MB"}},
                {"name": "c", "start": "10 us", "placement": {"first": 3, "stride": 2}, "share": True,
                 "workload": {"kind": "traffic", "pattern": "permutation", "ranks": 5, "size": "90 kB",
                              "start": {"process": "poisson", "load": 0.3, "count": 6}}},
            ],
        }))
        jobs = summary["jobs"]
        self.assertEqual([job["name"] for job in jobs], ["a", "b", "c"])
        self.assertEqual([job["ranks"] for job in jobs], [6, 16, 5])
        self.assertEqual([job["start_ps"] for job in jobs], [0, 30_000_000, 10_000_000])
        ranks = table(results, "ranks")
        for number, job in enumerate(jobs):
            own = ranks["job"] == number
            self.assertEqual(own.sum(), job["ranks"])
            self.assertEqual(ranks["finished"][own].max(), job["end_ps"])
            self.assertEqual(ranks["bytes_sent"][own].sum(), job["bytes"])
            self.assertEqual(job["time_ps"], job["end_ps"] - job["start_ps"])
            self.assertAlmostEqual(job["step_time_ps"] * job["steps"], job["time_ps"], delta=1)
            parts = job["compute_ps"] + job["exposed_ps"] + job["waiting_ps"] + job["idle_ps"]
            self.assertAlmostEqual(parts, job["time_ps"], delta=1)
        # By hand: 2 (n - 1) / n of the buffer per rank, twice; (n - 1) / n; each 6 flows.
        self.assertEqual(jobs[0]["bytes"], 2 * 2 * 5 * 600_000)
        self.assertEqual(jobs[1]["bytes"], 15 * 1_000_000)
        self.assertEqual(jobs[2]["bytes"], 5 * 6 * 90_000)
        collectives = table(results, "collectives")
        self.assertEqual(collectives["job"].tolist(), [0, 0, 1])
        self.assertEqual(collectives["start"][2], 30_000_000)

    def test_background_ends_with_the_others(self):
        workload = {
            "kind": "jobs",
            "background_check": "50 us",
            "jobs": [
                {"name": "work", "placement": {"stride": 2}, "workload": ALL_REDUCE},
                {"name": "noise", "background": True, "placement": {"first": 1, "stride": 2},
                 "workload": {"kind": "traffic", "pattern": "permutation", "ranks": 8, "size": "64 kB",
                              "start": {"process": "on_off", "on": "20 us", "off": "30 us", "load": 0.8}}},
                {"name": "bursts", "background": True, "share": True, "placement": {"first": 4},
                 "workload": {"kind": "traffic", "pattern": "incast", "ranks": 9, "size": "20 kB",
                              "start": {"process": "periodic", "interval": "50 us"}}},
            ],
        }
        summary, results = self.check(experiment(workload))
        work, noise, bursts = summary["jobs"]
        # 1 ps before the first multiple of 50 us after the end of the work.
        checks = -(-(work["end_ps"] + 2) // 50_000_000)
        self.assertEqual(summary["simulated_time_ps"], checks * 50_000_000 - 1)
        # Some operations of the noise are open when the run ends, and end with it.
        self.assertEqual(noise["end_ps"], summary["simulated_time_ps"])
        self.assertGreaterEqual(noise["idle_ps"], 0)
        # Bursts of 8 sources start at 0, 50 us, ... and not at the end any more.
        self.assertEqual(bursts["bytes"], checks * 8 * 20_000)
        self.assertEqual(work["bytes"], 2 * 2 * 5 * 600_000)
        self.assertGreater(noise["bytes"], 0)
        # Others in its way cost time.
        workload["only"] = "work"
        alone, _ = self.simulate(experiment(workload), output="alone.h5")
        self.assertGreater(work["end_ps"], alone["jobs"][0]["end_ps"])

    def test_jobs_that_are_cut_off(self):
        """Compute, exposed communication and idle time are a job's time also if the run ends in the middle of it."""
        work = {"kind": "program", "ranks": 2, "operations": [{"rank": "all", "id": "c", "compute": "70 us"},
                                                              {"collective": "all_reduce", "size": "9 MB", "after": "c"}]}
        background = {"kind": "jobs", "background_check": "50 us", "jobs": [
            {"name": "short", "workload": {**ALL_REDUCE, "ranks": 4}},
            {"name": "long", "background": True, "placement": {"first": 8}, "workload": work},
        ]}
        for until in ("60 us", "71 us", "90 us", None):
            text = experiment(background)
            words = ["--set", f"simulation.until={until}"] if until else []
            summary, results = self.simulate(text, *words)
            jobs = table(results, "jobs")
            with self.subTest(until=until):
                self.assertGreaterEqual(jobs["idle"].min(), 0)
                self.assertLessEqual(jobs["end"].max(), summary["simulated_time_ps"])
                self.assertEqual(jobs["end"][1], summary["simulated_time_ps"])
                for job in range(2):
                    parts = sum(jobs[column][job] for column in ("compute", "exposed", "idle"))
                    self.assertAlmostEqual(parts, jobs["time"][job], delta=1)

    def test_background_that_ends_by_itself(self):
        """Then the run ends with its last event, as without background jobs."""
        summary, _ = self.check(experiment({
            "kind": "jobs",
            "jobs": [
                {"name": "work", "workload": {"kind": "collective", "collective": "all_gather", "ranks": 4, "size": "4 kB"}},
                {"name": "noise", "background": True,
                 "workload": {"kind": "traffic", "pattern": "incast", "ranks": 3, "size": "1 kB"}},
            ],
        }))
        self.assertLess(summary["simulated_time_ps"], 99_999_999)

    def test_placement_decides_who_meets(self):
        """Of a ring, rank after rank behind the same edge switch, and by chance."""
        times = {}
        for placement in ["packed", "random"]:
            summary, results = self.check(experiment({**ALL_REDUCE, "ranks": 16, "placement": placement}),
                                          reference=placement == "random")
            times[placement] = summary["simulated_time_ps"]
            self.assertEqual(sorted(table(results, "ranks")["node"].tolist()), list(range(16)))
        self.assertLess(times["packed"], times["random"])

    def test_checkpoints_and_loading_beside_collectives(self):
        storage = {"kind": "checkpoint", "ranks": 12, "targets": 3, "size": "300 kB", "piece": "64 kB"}
        summary, _ = self.check(experiment({
            "kind": "jobs",
            "jobs": [
                {"name": "work", "workload": {**ALL_REDUCE, "ranks": 12}},
                {"name": "write", "share": True, "start": "40 us", "placement": [{"ranks": 12}, {"first": 13}],
                 "workload": {**storage, "device_rate": "100 Gb/s", "device_latency": "1 us"}},
                {"name": "load", "share": True, "background": True, "placement": [{"ranks": 12}, {"first": 13}],
                 "workload": {**storage, "operation": "read", "size": "20 kB", "interval": "25 us"}},
            ],
        }))
        work, write, load = summary["jobs"]
        self.assertEqual(write["bytes"], 12 * (300_000 + 64))
        self.assertEqual(write["messages"], 12 * (5 + 1))
        self.assertGreater(load["bytes"], 12 * 20_000)
        # Serving takes at least as long as the device of the busiest target: 4 ranks, 5 pieces each.
        self.assertGreater(write["time_ps"], 4 * (5 * 1_000_000 + 300_000 * 80))

    def test_checkpoint_burst_as_shipped(self):
        path = SOURCE / "workloads" / "checkpoint_burst.yaml"
        training = self.check(path, reference=False)[0]["jobs"][0]
        alone, _ = self.simulate(path, "--set", "workload.only=training")
        self.assertLess(alone["jobs"][0]["time_ps"], training["time_ps"])

    def test_two_jobs_as_shipped(self):
        path = SOURCE / "workloads" / "two_jobs_sharing_a_spine.yaml"
        both = self.check(path, reference=False)[0]["jobs"]
        for job in both:
            alone, _ = self.simulate(path, "--set", f"workload.only={job['name']}")
            self.assertEqual(alone["jobs"][0]["bytes"], job["bytes"])
            self.assertLess(alone["jobs"][0]["time_ps"], job["time_ps"], "sharing costs each of them time")


if __name__ == "__main__":
    unittest.main()
