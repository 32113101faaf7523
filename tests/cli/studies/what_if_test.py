#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""`weft what-if`: what each change saves, against what follows from the machine by hand; its study, and its errors."""

import json
import pathlib
import sys
import unittest

import yaml

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from weft_testing import EXIT_INPUT, NETWORK, SOURCE, ProgramTest, weft

# Four hosts of one leaf send 4 MB each to the other leaf, over one link.
ONE_LINK = {
    "topology": {"kind": "leaf_spine", "leaves": 2, "spines": 1, "hosts_per_leaf": 4, "link_rate": "100 Gb/s", "link_delay": "100 ns"},
    "network": {**NETWORK, "window": "1 MiB"},
    "workload": {"kind": "traffic", "pattern": "pairs", "size": "4 MB", "pairs": [[i, i + 4] for i in range(4)]}}  # fmt: skip


class WhatIf(ProgramTest):
    def what_if(self, experiment, *words):
        path = experiment if isinstance(experiment, pathlib.Path) else self.write(experiment)
        return json.loads(self.run_weft("what-if", path, "-o", "study.yaml", "--json", *words).out)

    def refused(self, *words):
        done = weft("what-if", *words, folder=self.folder)
        self.assertEqual(done.code, EXIT_INPUT, done)
        self.assertEqual(len(done.err.strip().splitlines()), 1, done.err)
        return done.err

    @staticmethod
    def saves(found):
        return {row["change"]: row["saves"] for row in found["changes"]}

    def test_a_link_that_all_share(self):
        """Four flows take 4 S / r over the shared link. Twice as fast it takes half; twice as fast hosts change nothing; alone, as
        on the ideal network, each flow takes S / r, which saves three quarters."""
        found = self.what_if(ONE_LINK)
        saves = self.saves(found)
        expected = {"all links 2 times as fast": 0.5, "leaf-spine links 2 times as fast": 0.5, "host links 2 times as fast": 0,
                    "no contention (ideal network)": 0.75, "links of 1/2 the delay": 0, "a window 2 times as large": 0}
        for name, share in expected.items():
            self.assertAlmostEqual(saves[name], share, delta=0.01, msg=name)
        self.assertEqual(found["refused"], {})
        self.assertNotIn("devices 2 times as fast", saves)  # nothing is computed
        self.assertEqual([row["time_ps"] for row in found["changes"]], sorted(row["time_ps"] for row in found["changes"]))

    def test_another_factor(self):
        """Three times as fast, it takes a third: until the hosts' links are what counts, of which each carries one flow."""
        saves = self.saves(self.what_if(ONE_LINK, "--factor", "3"))
        self.assertAlmostEqual(saves["leaf-spine links 3 times as fast"], 2 / 3, delta=0.01)

    def test_another_placement_and_load_balancing(self):
        """Ranks of a ring on every second host of two leaves, in an order that crosses the spine with each message: packed on
        neighbouring hosts two of eight messages cross."""
        workload = {"kind": "collective", "collective": "all_reduce", "algorithm": "ring", "ranks": 8, "size": "8 MiB"}
        experiment = {"topology": {**ONE_LINK["topology"], "hosts_per_leaf": 8, "spines": 2}, "network": ONE_LINK["network"],
                      "workload": {**workload, "placement": {"hosts": [0, 8, 2, 10, 4, 12, 6, 14]}}}  # fmt: skip
        saves = self.saves(self.what_if(experiment))
        self.assertGreater(saves["ranks packed on neighbouring hosts"], 0.3)
        self.assertGreater(saves["adaptive load balancing"], 0)
        self.assertNotIn("ranks packed on neighbouring hosts", self.saves(self.what_if({**experiment, "workload": workload})))

    def test_a_window_that_a_long_way_empties(self):
        """64 KiB in each round trip of 4 x 5 us: the time is that of round trips, and half with twice as much in each."""
        experiment = {"topology": {"kind": "star", "hosts": 2, "link_rate": "400 Gb/s", "link_delay": "5 us"},
                      "network": {**NETWORK, "window": "64 KiB"},
                      "workload": {"kind": "traffic", "pattern": "pairs", "size": "16 MiB", "pairs": [[0, 1]]}}  # fmt: skip
        saves = self.saves(self.what_if(experiment))
        self.assertAlmostEqual(saves["a window 2 times as large"], 0.5, delta=0.03)
        self.assertGreater(saves["links of 1/2 the delay"], 0.4)
        self.assertLess(saves["all links 2 times as fast"], 0.05)
        self.assertNotIn("packets sprayed over all paths", saves)  # there is one

    def test_jobs_failures_and_devices(self):
        """Job a of two that share a spine is faster alone; its longest computation is halved on devices twice as fast."""
        found = self.what_if(SOURCE / "workloads" / "two_jobs_sharing_a_spine.yaml")
        saves = self.saves(found)
        self.assertEqual(found["job"], "a")
        self.assertGreater(saves["job a alone"], 0.3)
        self.assertGreater(saves["devices 2 times as fast"], 0)
        experiment = {**ONE_LINK, "network": {**ONE_LINK["network"], "failures": [
            {"at": "1 us", "link": ["leaf0", "spine0"], "rate": "50 Gb/s"}]}}  # fmt: skip
        saves = self.saves(self.what_if(experiment))
        self.assertAlmostEqual(saves["no failures"], 0.5, delta=0.01)
        self.assertAlmostEqual(saves["no contention, no faults (ideal network)"], 7 / 8, delta=0.01)

    def test_hosts_that_launch(self):
        """With CUDA graphs no launch is left, and with hosts twice as fast half of them."""
        experiment = {"topology": {"kind": "star", "hosts": 2, "link_rate": "3200 Gb/s", "link_delay": "500 ns"},
                      "network": {**NETWORK, "fidelity": "ideal"}, "workload": {
                          "kind": "training", "model": "gpt2", "device": "b200-sxm", "framework": "pytorch_eager",
                          "parallelism": {"data": 2}, "micro_batch": 1, "sequence_length": 256}}  # fmt: skip
        saves = self.saves(self.what_if(experiment))
        self.assertGreater(saves["CUDA graphs"], saves["hosts launch 2 times as fast"])
        self.assertGreater(saves["hosts launch 2 times as fast"], 0.3)
        self.assertLess(saves["devices 2 times as fast"], 0.1)
        self.assertNotIn("no contention (ideal network)", saves)

    def test_a_slow_rank(self):
        """Rank 5 of 8 computes 150 us, the others 100, and then all wait for each other: without it a third is saved, and with
        all devices twice as fast a half."""
        workload = {"kind": "program", "ranks": 8, "operations": [
            {"rank": "all", "id": "work", "compute": "100 us"},
            {"collective": "all_reduce", "size": "8 B", "after": "work"}],
            "transform": [{"scale": {"kernels": "*", "ranks": [5], "by": 1.5}}]}  # fmt: skip
        topology = {"kind": "star", "hosts": 8, "link_rate": "400 Gb/s", "link_delay": "1 ns"}
        saves = self.saves(self.what_if({"topology": topology, "network": NETWORK, "workload": workload}))
        self.assertAlmostEqual(saves["rank 5 no slower than the median"], 1 / 3, delta=0.01)
        self.assertAlmostEqual(saves["devices 2 times as fast"], 1 / 2, delta=0.01)
        self.assertNotIn("all_reduce by double_binary_tree", saves)  # it takes too little time
        even = self.saves(self.what_if({"topology": topology, "network": NETWORK, "workload": {**workload, "transform": []}}))
        self.assertEqual([name for name in even if name.startswith("rank")], [])

    def test_a_slow_link(self):
        """One link of 8 has a quarter of the rate, and each host sends once: as fast as the others it takes a quarter."""
        topology = {"kind": "star", "hosts": 8, "link_rate": "100 Gb/s", "link_delay": "100 ns",
                    "what_if": [{"link": ["host3", "switch0"], "rate": 0.25}]}
        workload = {"kind": "traffic", "pattern": "pairs", "size": "4 MB", "pairs": [[i, (i + 1) % 8] for i in range(8)]}
        network = {**NETWORK, "window": "1 MiB"}
        saves = self.saves(self.what_if({"topology": topology, "network": network, "workload": workload}))
        self.assertAlmostEqual(saves["host3 - switch0 as fast as other host links"], 0.75, delta=0.01)

    def test_algorithms_of_collectives(self):
        """Messages of a few bytes take the latency L of a way. The ring takes 2 (n - 1) L for n ranks, recursive doubling log2 n L,
        and halving and doubling twice that (Thakur et al. 2005, doi:10.1177/1094342005051521)."""
        topology = {"kind": "star", "hosts": 16, "link_rate": "400 Gb/s", "link_delay": "5 us"}
        workload = {"kind": "collective", "collective": "all_reduce", "algorithm": "ring", "ranks": 16, "size": "64 B"}
        found = self.what_if({"topology": topology, "network": NETWORK, "workload": workload})
        saves = self.saves(found)
        self.assertAlmostEqual(saves["all_reduce by recursive_doubling"], 1 - 4 / 30, delta=0.005)
        self.assertAlmostEqual(saves["all_reduce by halving_doubling"], 1 - 8 / 30, delta=0.005)
        self.assertNotIn("all_reduce by ring", saves)
        # Of several jobs it is that of the longest one that is changed.
        jobs = [{"name": "short", "workload": {**workload, "ranks": 2}},
                {"workload": workload, "set": ["ranks=8"]}]
        found = self.what_if({"topology": topology, "network": NETWORK, "workload": {"kind": "jobs", "jobs": jobs}})
        self.assertEqual((found["job"], found["refused"]), ("job1", {}))
        changed = {row["change"]: row for row in found["changes"]}["all_reduce by recursive_doubling"]
        self.assertEqual(changed["settings"], {"workload.jobs.1.set": ["ranks=8", "algorithm=recursive_doubling"]})
        self.assertAlmostEqual(changed["saves"], 1 - 3 / 14, delta=0.005)
        # The same if the job's workload is a file, be it a workload or an experiment.
        for content in (workload, {"topology": topology, "workload": workload}):
            (self.folder / "ring.yaml").write_text(json.dumps(content))
            jobs[1]["workload"] = "ring.yaml"
            found = self.what_if({"topology": topology, "network": NETWORK, "workload": {"kind": "jobs", "jobs": jobs}})
            again = {row["change"]: row for row in found["changes"]}["all_reduce by recursive_doubling"]
            self.assertEqual(again, changed)

    def test_a_routing_by_queues_on_a_dragonfly(self):
        """Each group sends to the next one over one global link of rate r: h p a = 8 messages share it. Over all groups, which
        minimal routing does not use, there is more room (Kim et al. 2008)."""
        topology = {"kind": "dragonfly", "a": 4, "h": 2, "p": 2, "link_rate": "100 Gb/s", "link_delay": "100 ns"}
        workload = {"kind": "traffic", "pattern": "pairs", "size": "256 KiB", "pairs": [[i, (i + 8) % 72] for i in range(72)]}
        saves = self.saves(self.what_if({"topology": topology, "network": {**NETWORK, "flow_control": "credit"}, "workload": workload}))
        self.assertGreater(saves["routing dragonfly_ugal"], 0.6)
        self.assertAlmostEqual(saves["global links 2 times as fast"], 0.5, delta=0.05)

    def test_a_routing_that_knows_queues_of_other_routers(self):
        """The same without flow control, under UGAL-L: no buffers fill on the way to the global link, so that three of four routers of a
        group see none of its queue. UGAL-G knows it from reports. Load balancings by switches are refused by these routings."""
        topology = {"kind": "dragonfly", "a": 4, "h": 2, "p": 2, "link_rate": "100 Gb/s", "link_delay": "100 ns"}
        workload = {"kind": "traffic", "pattern": "pairs", "size": "256 KiB", "pairs": [[i, (i + 8) % 72] for i in range(72)]}
        found = self.what_if({"topology": topology, "network": {**NETWORK, "routing": "dragonfly_ugal"}, "workload": workload})
        self.assertGreater(self.saves(found)["routing dragonfly_ugal_g"], 0.3)
        self.assertEqual(found["refused"], {})
        self.assertNotIn("adaptive load balancing", self.saves(found))

    def test_slots_of_a_long_ring(self):
        """NCCL's four slices of 8 KiB, S / 32 ranks / 2, are under way between the leaves for 4 x (slice + two ways of 2.2 us and more).
        With 16 of them, twice NCCL's eight steps, slots are free and the longest chain of the ring counts."""
        topology = {"kind": "leaf_spine", "leaves": 2, "hosts_per_leaf": 16, "spines": 16, "link_rate": "400 Gb/s",
                    "host_link_delay": "100 ns", "link_delay": "1 us"}  # fmt: skip
        workload = {"kind": "collective", "collective": "all_reduce", "algorithm": "ring", "size": "512 KiB"}
        saves = self.saves(self.what_if({"topology": topology, "network": NETWORK, "workload": workload}))
        self.assertGreater(saves["16 messages in flight per connection"], 0.3)
        short = {"kind": "star", "hosts": 4, "link_rate": "400 Gb/s", "link_delay": "100 ns"}
        saves = self.saves(self.what_if({"topology": short, "network": NETWORK, "workload": {**workload, "size": "8 MiB"}}))
        self.assertNotIn("16 messages in flight per connection", saves)

    def test_congestion_control_and_buffers(self):
        """Eight senders of one receiver take 8 S / r with congestion control or without it: DCQCN leaves the link idle meanwhile."""
        experiment = {"topology": {"kind": "star", "hosts": 9, "link_rate": "100 Gb/s", "link_delay": "500 ns"},
                      "network": {"congestion_control": "dcqcn"},
                      "workload": {"kind": "traffic", "pattern": "incast", "destination": 0, "sources": 8, "size": "1 MiB"}}  # fmt: skip
        found = self.what_if(experiment)
        packets = 256  # of 4096 B, with 82 B around each
        least = 8 * packets * (4096 + 82) * 8 / 100e9 * 1e12
        self.assertAlmostEqual(self.saves(found)["congestion control none"], 1 - least / found["time_ps"], delta=0.01)
        # The other preset is that of a run with it, and each offers the other.
        control = {"congestion_control": "dcqcn", "dcqcn": {"preset": "connectx"}}
        adapters = self.what_if({**experiment, "network": control})
        self.assertAlmostEqual(self.saves(found)["dcqcn with preset connectx"], 1 - adapters["time_ps"] / found["time_ps"], places=6)
        self.assertIn("dcqcn with preset paper", self.saves(adapters))
        lossless = {**experiment, "network": {"flow_control": "pfc", "buffer": {"size": "256 KiB"}}}
        self.assertAlmostEqual(self.saves(self.what_if(lossless))["buffers 2 times as large"], 0, delta=0.01)

    def test_machines_of_files(self):
        """A machine of a file is changed as one whose parameters the experiment has: GraphML, another file's map, and a list of
        links."""
        self.write({"topology": ONE_LINK["topology"], "workload": ONE_LINK["workload"]}, "machine.yaml")
        for kind in ("graphml", "yaml"):
            self.run_weft("topology", "machine.yaml", "--export", kind, "-o", f"exported.{kind}", "--quiet")
        graph = yaml.safe_load((self.folder / "exported.yaml").read_text())
        for topology in ({"kind": "file", "path": "exported.graphml"}, {"kind": "file", "path": "machine.yaml"}, graph):
            with self.subTest(topology["kind"]):
                found = self.what_if({**ONE_LINK, "topology": topology})
                self.assertEqual(found["refused"], {})
                self.assertAlmostEqual(self.saves(found)["all links 2 times as fast"], 0.5, delta=0.01)

    def test_the_same_on_any_number_of_processes_and_again(self):
        """The same figures, and in each run's file all tables, on 1, 2, 3, 4 and 8 processes."""
        traffic = {**ONE_LINK["workload"], "size": "40 kB"}
        experiment = self.write({**ONE_LINK, "workload": traffic})
        one = self.what_if(experiment, "-j", "1")
        again = self.run_weft("what-if", experiment, "-o", "study.yaml", "--json")
        self.assertEqual(json.loads(again.out), one)
        self.assertIn("0 to run", again.err)
        self.assertEqual({line.split(":")[0] for line in again.err.splitlines()}, {"weft what-if"})
        files = sorted((self.folder / "study.runs").glob("*.h5"))
        self.assertEqual(len(files), 1 + len(one["changes"]))
        for processes in (2, 3, 4, 8):
            study = f"of_{processes}"
            more = self.run_weft("what-if", experiment, "-o", f"{study}.yaml", "--json", "-n", str(processes), "-j", "1")
            self.assertEqual(more.out.replace(f"{study}.yaml", "study.yaml"), again.out)
            for file in files:
                self.assert_same_results(file, self.folder / f"{study}.runs" / file.name, context=f"{processes} processes")

    def test_what_is_refused_is_told(self):
        """TCP in the background needs packets: the ideal network is refused with weft's own words, and all else is run."""
        found = self.what_if({**ONE_LINK, "background": [{"kind": "tcp", "from": 0, "to": 4, "size": "20 kB"}]})
        self.assertEqual(list(found["refused"]), ["no contention (ideal network)"])
        self.assertIn("background", found["refused"]["no contention (ideal network)"])
        self.assertIn("no background", self.saves(found))

    def test_errors_leave_nothing(self):
        path = self.write({**ONE_LINK, "workload": {"kind": "traffic", "patern": "pairs"}})
        self.assertIn("patern", self.refused(path, "-o", "study.yaml", "--quiet"))
        self.assertEqual([path.name for path in self.folder.iterdir() if path.name.startswith("study")], [])
        path = self.write(ONE_LINK)
        for words, said in ((("--factor", "1"), "above 1"), (("--set", "workload"), "KEY.PATH=VALUE"),
                            (("-o", "study.h5"), "study.yaml")):
            with self.subTest(words):
                self.assertIn(said, self.refused(path, *words))
        self.assertIn("nope.yaml", self.refused("nope.yaml"))


if __name__ == "__main__":
    unittest.main()
