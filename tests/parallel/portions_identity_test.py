#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Data written in portions during the run does not depend on the times of writing, nor on the number of processes: all data
sets, bit by bit, for small `rows_in_memory`."""
# Time limit: 600 s

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from weft_testing import FAT_TREE, NETWORK, STAR, ProgramTest, table, two_at_a_time

# Of the experiment as it was run, only the settings of this test may differ.
IGNORE = ["/manifest/effective_experiment"]
# A last interval that is cut off by the end of the run; intervals longer than most waits, and shorter ones.
OUTPUT = {"sampling": "3 us", "rates": {"interval": "2 us"}, "queue_depths": True, "operations": True}
EXPERIMENTS = {
    # Credits return after the last packet has arrived: the last epoch reaches beyond the end of the run.
    "credits": {
        "topology": FAT_TREE, "network": {**NETWORK, "flow_control": "credit"},
        "workload": {"kind": "traffic", "pattern": "all_to_all", "size": "20 kB"},
        "output": {**OUTPUT, "sampling": "10 us", "rates": {"interval": "10 us"}},
    },
    "shift": {
        "topology": FAT_TREE, "network": {**NETWORK, "queues": "output"},
        "workload": {"kind": "traffic", "pattern": "all_to_all", "size": "60 kB", "ranks": 8},
        "output": OUTPUT,
    },
    # Acknowledgements of the last message go on after the end.
    "incast": {
        "topology": STAR, "network": {**NETWORK, "congestion_control": "dcqcn"},
        "workload": {"kind": "traffic", "pattern": "incast", "size": "300 kB"},
        "output": {**OUTPUT, "sampling": "1 us"},
    },
    "cut": {
        "topology": FAT_TREE, "network": {**NETWORK, "queues": "output"},
        "workload": {"kind": "traffic", "pattern": "all_to_all", "size": "60 kB", "ranks": 8},
        "simulation": {"until": "4321 ns"}, "output": {**OUTPUT, "sampling": "500 ns", "rates": {"interval": "1 us"}},
    },
    # The same for plain ports, which count a packet's wait before the wait has ended.
    "cut_plain": {
        "topology": FAT_TREE, "network": NETWORK,
        "workload": {"kind": "traffic", "pattern": "all_to_all", "size": "60 kB", "ranks": 8},
        "simulation": {"until": "4321 ns"}, "output": {"sampling": "500 ns"},
    },
    # The queue of an interval is reported with the link's rate in the interval, not with a later rate.
    "slower": {
        "topology": FAT_TREE,
        "network": {**NETWORK, "failures": [{"at": "1 ns", "until": "40 us", "link": "all", "rate": "1 Gb/s"}]},
        "workload": {"kind": "traffic", "pattern": "permutation", "shift": 5, "size": "2 kB"},
        "output": {"sampling": "1 us"},
    },
    # The network of plain ports, without queue pairs to look at.
    "plain": {
        "topology": FAT_TREE, "network": NETWORK,
        "workload": {"kind": "collective", "collective": "all_reduce", "algorithm": "ring", "size": "200 kB"},
        "output": {"sampling": "2 us"},
    },
    "background": {
        "topology": STAR, "network": {**NETWORK, "queues": "output"},
        "workload": {"kind": "traffic", "pattern": "permutation", "shift": 1, "size": "500 kB"},
        "background": [{"kind": "tcp", "from": 0, "to": 3, "size": "200 kB"}],
        "output": {**OUTPUT, "sampling": "4 us"},
    },
}  # fmt: skip


class Portions(ProgramTest):
    def check(self, name, runs):
        path = self.write(EXPERIMENTS[name], name=f"{name}.yaml")
        reference = self.simulate(path, output="reference.h5")[1]
        self.assertGreater(len(table(reference, "links_series")["link"]), 30)

        def run(rows, ranks, engine):
            words = ["--set", f"output.rows_in_memory={rows}", "--engine", engine]
            return self.simulate(path, *words, output=f"{rows}-{ranks}-{engine}.h5", ranks=ranks)[1]

        results = two_at_a_time([lambda one=one: run(*one) for one in runs])
        for (rows, ranks, engine), file in zip(runs, results):
            with self.subTest(experiment=name, rows_in_memory=rows, ranks=ranks, engine=engine):
                self.assert_same_results(reference, file, IGNORE)
        return reference

    def test_processes_and_rows(self):
        runs = [(rows, ranks, "weft") for rows in (1, 10, 20, 40, 60) for ranks in (1, 2, 3, 4)]
        self.check("credits", [*runs, (10, 8, "weft"), (10, 1, "ns3-default")])

    def test_networks(self):
        runs = [(1, 1, "weft"), (7, 3, "weft"), (20, 2, "weft"), (40, 4, "weft"), (20, 1, "ns3-default")]
        for name in ("shift", "incast", "cut", "cut_plain", "slower", "plain", "background"):
            reference = self.check(name, runs)
            if name == "slower":  # nothing waits that is not sent in the end
                queues, links = table(reference, "links_series"), table(reference, "links")
                self.assertTrue((queues["queue"] <= links["bytes"][queues["link"]]).all())

    def test_no_interval_outlasts_the_run(self):
        for until in ("7 us", "12345 ns", "20 us", "33333 ns"):  # frames of TCP, too, are on the wire at the end
            words = ["--set", f"simulation.until={until}", "--set", "output.sampling=1 us"]
            cut = self.simulate(EXPERIMENTS["background"], *words, output="cut.h5")[1]
            for name in ("links", "links_series"):
                self.assertLessEqual(table(cut, name)["utilization"].max(), 1.0, f"{name} until {until}")
        reference = self.check("cut", [(1, 2, "weft")])
        for series in ("links_series", "rates_series"):
            self.assertEqual(table(reference, series)["time"].max(), 4_321_000)
        self.assertLessEqual(table(reference, "links_series")["utilization"].max(), 1.0)
        self.assertLessEqual(table(reference, "links")["utilization"].max(), 1.0)


if __name__ == "__main__":
    unittest.main()
