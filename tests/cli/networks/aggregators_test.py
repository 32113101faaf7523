#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Switches that reduce: wait-for cycles of collectives through them are reported, jobs share them, several queue pairs serve
them."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from weft_testing import EXIT_INPUT, NETWORK, ProgramTest, table, weft  # noqa: E402

LINKS = {"link_rate": "400 Gb/s", "link_delay": "500 ns"}
STAR = {"kind": "star", "hosts": 4, **LINKS, "switch_reduction": {}}
LEAVES = {"kind": "leaf_spine", "leaves": 4, "hosts_per_leaf": 4, "spines": 2, **LINKS, "switch_reduction": {}}


def all_reduce(algorithm, size, **options):
    return {"kind": "collective", "collective": "all_reduce", "algorithm": algorithm, "size": size, **options}


class Deadlocks(ProgramTest):
    def crossed(self, algorithm, size):
        """Ranks 0 and 1 are in both communicators: rank 0 starts b when a is done, and rank 1 starts a when b is done."""
        call = {"collective": "all_reduce", "size": size, "algorithm": algorithm, "stream": "none"}
        return {"topology": STAR, "network": NETWORK, "workload": {
            "kind": "program", "ranks": 4, "communicators": {"a": [0, 1, 2], "b": [1, 0, 3]},
            "operations": [
                {"rank": 0, "id": "b_may", "recv": "1 kB", "from": 2},
                {"rank": [1, 3], "id": "b_may", "compute": "1 us"},
                {"rank": 1, "id": "a_may", "recv": "1 kB", "from": 3},
                {"rank": [0, 2], "id": "a_may", "compute": "1 us"},
                {"id": "suma", "communicator": "a", "after": "a_may", **call},
                {"id": "sumb", "communicator": "b", "after": "b_may", **call},
                {"rank": 2, "send": "1 kB", "to": 0, "after": "suma"},
                {"rank": 3, "send": "1 kB", "to": 1, "after": "sumb"},
            ],
        }}  # fmt: skip

    def test_communicators_in_opposite_orders(self):
        # Of 4 MiB there are more chunks than the connections with the switch have slots for: ranks wait to send. Of 1 MiB
        # collnet's ranks have sent all, and wait for channel 1, which sends on what channel 0 reduces.
        for algorithm, size, sends_on in (("collnet", "4 MiB", False), ("nvls", "1 MiB", False), ("collnet", "1 MiB", True)):
            path, told = self.write(self.crossed(algorithm, size)), set()
            for ranks in (None, 2):
                done = weft("run", path, "-o", "out.h5", "--quiet", ranks=ranks, folder=self.folder, seconds=100)
                self.assertEqual(done.code, EXIT_INPUT, done)
                told.add(done.err[done.err.index("This is a deadlock"):])
            self.assertEqual(len(told), 1, told)
            cycle = told.pop().splitlines()[1:]
            # Each switch has one rank's share of its collective already and waits for that of the other one.
            switch = [[(f"the aggregator in collective number {call}, channel {channel}", f"all_reduce number {call}")
                       for channel in ([1, 0] if sends_on else [0])] for call in (0, 1)]  # fmt: skip
            names = [switch[0][-1], ("rank 1", "sumb"), *switch[1], ("rank 0", "suma"), *switch[0][:-1]]
            waits = [f"{a} waits for {b}" for (a, _), (b, _) in zip(names, names[1:] + names[:1], strict=True)]
            self.assertEqual([line.split(": ")[0].strip() for line in cycle], waits)
            for line, (_, name) in zip(cycle, names, strict=True):
                self.assertIn(name, line)
                self.assertRegex(line, r"channel \d, lane \d, step \d+ \(.* (from|to) .*\) waits")

    def test_one_after_the_other_ends(self):
        workload = self.crossed("collnet", "4 MiB")
        workload["workload"]["operations"] = [
            {key: value for key, value in operation.items() if key != "after"}
            for operation in workload["workload"]["operations"] if "collective" in operation
        ]  # fmt: skip
        summary, _ = self.simulate(workload)
        self.assertTrue(summary["complete"])


class Sharing(ProgramTest):
    def time(self, jobs, topology=LEAVES, network=NETWORK, ranks=None):
        summary, results = self.simulate(
            {"topology": topology, "network": network, "workload": {"kind": "jobs", "jobs": jobs}}, ranks=ranks
        )
        self.assertTrue(summary["complete"])
        return summary, table(results, "jobs")["end"] - table(results, "jobs")["start"]

    def test_jobs_on_the_same_leaves(self):
        """Two jobs with every second host each share the units of all leaves and of the top."""
        jobs = [
            {"name": name, "placement": {"first": first, "stride": 2},
             "workload": all_reduce("collnet", "4 MiB", ranks=8, ranks_per_leaf=2)}
            for first, name in enumerate("ab")
        ]  # fmt: skip
        summary, together = self.time(jobs)
        alone = [self.time([job])[1][0] for job in jobs]
        self.assertEqual(summary["collective_count"], 2)
        # A leaf's link upwards has the sums of both jobs instead of one, and nothing else is shared that is as slow: the
        # ranks' own links need as long alone as a leaf's link alone. So at least as long as alone, at most twice.
        for one, both in zip(alone, together, strict=True):
            self.assertGreater(both, 1.5 * one)
            self.assertLessEqual(both, 2 * one)
        self.assertEqual(self.time(jobs, ranks=3)[0]["fingerprint"], summary["fingerprint"])

    def test_ranks_not_below_one_leaf_are_refused(self):
        path = self.write({"topology": LEAVES, "workload": {
            **all_reduce("collnet", "1 MiB", ranks=8, ranks_per_leaf=4), "placement": {"stride": 2}}})  # fmt: skip
        done = weft("run", path, "-o", "out.h5", folder=self.folder)
        self.assertEqual(done.code, EXIT_INPUT, done)
        self.assertIn("are to be below the same leaf switch", done.err)

    def test_aggregators_of_one_call_in_one_switch(self):
        """Two servers on one switch, and two groups of ranks_per_leaf on one leaf: each has an aggregator of its own."""
        size = 1 << 20
        tree = all_reduce("nvls_tree", f"{size} B", ranks=16)
        halves = all_reduce("collnet", f"{size} B", ranks=16, ranks_per_leaf=2)
        for workload, topology in ((tree, {**STAR, "hosts": 16}), (halves, LEAVES)):
            with self.subTest(workload["algorithm"]):
                found = set()
                for ranks in (None, 2, 3):
                    summary, results = self.simulate({"topology": topology, "network": NETWORK, "workload": workload}, ranks=ranks)
                    self.assertTrue(summary["complete"])
                    found.add(summary["fingerprint"])
                self.assertEqual(len(found), 1)
                # Each rank sends its vector once and receives the sum once, at the same time.
                time = table(results, "jobs")["end"][0] / 1e12
                self.assertGreater(time, size * 8 / 400e9)
                self.assertLess(time, 4 * size * 8 / 400e9)

    def test_a_leaf_that_is_the_highest_switch_is_refused(self):
        path = self.write({"topology": {**STAR, "hosts": 16}, "workload": all_reduce("collnet", "1 MiB", ranks=16, ranks_per_leaf=4)})
        done = weft("run", path, "-o", "out.h5", folder=self.folder)
        self.assertEqual(done.code, EXIT_INPUT, done)
        self.assertIn("is of the highest level; ranks_per_leaf", done.err)

    def test_servers_of_two_jobs(self):
        """nvls_tree of one job and nvls of another on servers that both jobs share."""
        servers = {"kind": "star", "hosts": 32, **LINKS, "switch_reduction": {},
                   "server": {"design": "hgx_h100"}}  # fmt: skip
        hosts = [s * 8 + gpu for s in range(4) for gpu in (1, 4, 6)]
        jobs = [
            {"name": "tree", "placement": {"hosts": hosts},
             "workload": all_reduce("nvls_tree", "3 MiB", ranks=12, ranks_per_server=3, channels=2)},
            {"name": "one", "placement": {"hosts": [2, 7, 0, 5]}, "workload": all_reduce("nvls", "3 MiB", ranks=4)},
        ]  # fmt: skip
        for data in (None, "round_robin", "split"):
            network = NETWORK if data is None else {**NETWORK, "connections": {"queue_pairs": 3, "data": data}}
            first, _ = self.time(jobs, servers, network)
            self.assertEqual(first["collective_count"], 2)
            again, _ = self.time(jobs, servers, network, ranks=2)
            self.assertEqual(again["fingerprint"], first["fingerprint"], data)


if __name__ == "__main__":
    unittest.main()
