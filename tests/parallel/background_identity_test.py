#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""TCP transfers beside RDMA traffic give the same results on any number of MPI ranks and with any partition: losses,
marks, pauses, link failures, and transfers that end with the workload."""
# Time limit: 900 s

import functools
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from weft_testing import FAT_TREE, NETWORK, ProgramTest, table, two_at_a_time

IGNORE = ["/manifest/effective_experiment"]
SHUFFLE = {"kind": "traffic", "pattern": "permutation", "size": "200 kB"}
ALL_REDUCE = {"kind": "collective", "collective": "all_reduce", "algorithm": "ring", "size": "1 MiB"}


def tcp(source, destination, **keys):
    return {"kind": "tcp", "from": source, "to": destination, **keys}


# Name: (network, workload, background).
CASES = {
    "loss": ({"buffer": {"queue": "60 kB"}}, SHUFFLE,
             [tcp(s, 0, size="600 kB", name=f"s{s}", min_rto="1 ms") for s in (5, 9, 14)]
             + [tcp(0, 15, size="200 kB", start="20 us", connections=2)]),
    "lossless": ({"flow_control": "pfc", "buffer": {"size": "700 kB"},
                  "priorities": {"scheduling": "deficit_round_robin", "other_weight": 2}}, ALL_REDUCE,
                 [tcp(6, 1, min_rto="1 ms"), tcp(12, 1, priority=3, size="1 MB"),
                  tcp(13, 1, size="1 MB", congestion_control="vegas", min_rto="1 ms")]),
    "marks": ({"ecn": {"kmin": "30 kB", "kmax": "90 kB", "pmax": 0.5}, "congestion_control": "dctcp"}, SHUFFLE,
              [tcp(s, 2, size="800 kB", congestion_control="dctcp") for s in (4, 8, 11)]),
    "failures": ({"failures": [{"at": "30 us", "link": ["switch0", "switch8"]},
                               {"at": "40 us", "until": "200 us", "switch": "switch12"}],
                  "loss": [{"link": "all", "probability": 0.002}], "reconvergence": "20 us"}, SHUFFLE,
                 [tcp(s, 15 - s, size="500 kB", min_rto="1 ms") for s in range(6)]),
}


class BackgroundIdentity(ProgramTest):
    def check(self, first, name):
        network, workload, background = CASES[name]
        path = self.write({"topology": FAT_TREE, "network": {**NETWORK, **network}, "workload": workload,
                           "background": background, "simulation": {"seed": 3}, "output": {"sampling": "20 us"}},
                          f"{name}.yaml")
        partitions = ["metis", "pods", "random"]
        variants = [(ranks, partitions[(first + i) % 3]) for i, ranks in enumerate((2, 3, 4, 8))]
        one, *others = two_at_a_time(
            [functools.partial(self.simulate, path, output=f"{name}.one.h5")]
            + [functools.partial(self.simulate, path, "--set", f"simulation.partition={partition}",
                                 output=f"{name}.{ranks}.h5", ranks=ranks) for ranks, partition in variants])
        self.assertTrue(one[0]["complete"])
        for row in one[0]["transfers"]:
            self.assertGreater(row["bytes"], 0, row)
            self.assertTrue(row["complete"] or row["size"] < 0, row)
        self.assertGreater(len(table(one[1], "transfers_series")["bytes"]), 0)
        for (ranks, partition), (summary, results) in zip(variants, others):
            context = f"{name} on {ranks} ranks with {partition}"
            self.assertGreater(summary["parallel"]["cut_links"], 0, context)
            self.assertEqual(summary["fingerprint"], one[0]["fingerprint"], context)
            self.assertEqual(summary["simulated_time_ps"], one[0]["simulated_time_ps"], context)
            self.assertEqual(summary["transfers"], one[0]["transfers"], context)
            self.assert_same_results(one[1], results, IGNORE, context)
        return one[0]

    def test_losses(self):
        summary = self.check(0, "loss")
        self.assertGreater(sum(row["repeated_bytes"] for row in summary["transfers"]), 0)

    def test_lossless_class_and_a_transfer_without_an_end(self):
        self.check(1, "lossless")

    def test_marks(self):
        self.assertGreater(self.check(2, "marks")["congestion"]["packets_marked"], 0)

    def test_failures(self):
        summary = self.check(0, "failures")
        self.assertGreater(sum(row["repeated_bytes"] for row in summary["transfers"]), 0)


if __name__ == "__main__":
    unittest.main()
