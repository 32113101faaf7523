#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Reports of queues from switch to switch (UGAL-G): the same for any number of processes, also where a group is cut; the
effects of their interval and delay; errors."""

# Time limit: 600 s

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from weft_testing import NETWORK, ProgramTest, weft

LINKS = {"link_rate": "100 Gb/s", "link_delay": "100 ns"}
DRAGONFLY = {"kind": "dragonfly", "p": 2, "a": 4, "h": 2, "g": 5, **LINKS}
PLUS = {"kind": "dragonfly_plus", "p": 2, "leaves": 2, "spines": 2, "h": 2, **LINKS}
CREDIT = {**NETWORK, "flow_control": "credit", "credit": {"buffer": "64 KiB"}, "load_balancing": "spray"}
# Of the experiment as it was run, only the partition may differ.
IGNORE = ["/manifest/effective_experiment"]


class QueueReports(ProgramTest):
    def experiment(self, topology, group, **network):
        routing = f"{topology['kind']}_ugal_g"
        return self.write({
            "topology": topology, "network": {**CREDIT, "routing": routing, **network},
            "workload": {"kind": "traffic", "pattern": "permutation", "shift": group, "size": "100 kB"},
        }, name=f"{topology['kind']}.yaml")  # fmt: skip

    def test_any_number_of_processes(self):
        for topology, group in ((DRAGONFLY, 8), (PLUS, 4)):
            path = self.experiment(topology, group)
            reference = self.simulate(path, output="one.h5")[1]
            # Partitions that cut groups, and more processes than groups.
            for ranks, partition in ((2, "random"), (3, "metis"), (4, "auto"), (8, "random")):
                with self.subTest(kind=topology["kind"], ranks=ranks, partition=partition):
                    words = ["--set", f"simulation.partition={partition}"]
                    other = self.simulate(path, *words, output="other.h5", ranks=ranks)[1]
                    self.assert_same_results(reference, other, IGNORE)

    def test_old_knowledge_costs(self):
        """Reports that are a hundred microseconds old do not describe queues that change faster."""
        times = []
        for reports in ({}, {"interval": "200 ns"}, {"delay": "100 us"}):
            summary, _ = self.simulate(self.experiment(DRAGONFLY, 8, queue_reports=reports))
            times.append(summary["simulated_time_ps"])
        self.assertEqual(len(set(times)), 3)
        self.assertGreater(times[2], times[0])

    def test_mistakes(self):
        for network, parts in (
            ({"queue_reports": {"interval": "0 ns"}}, ["above 0"]),
            ({"queue_reports": {"intervall": "1 us"}}, ["did you mean 'interval'?"]),
            ({"queue_reports": {}, "routing": "dragonfly_ugal"}, ["'dragonfly_ugal' looks at no queues of other switches"]),
            ({"queue_reports": {}, "routing": "dragonfly_minimal"}, ["looks at no queues"]),
        ):
            path = self.experiment(DRAGONFLY, 8, **network)
            done = weft("run", path, "-o", self.folder / "x.h5")
            self.assertEqual(done.code, 2, done)
            self.assertIn(f"{path}:3: ", done.err)
            for part in parts:
                self.assertIn(part, done.err)


if __name__ == "__main__":
    unittest.main()
