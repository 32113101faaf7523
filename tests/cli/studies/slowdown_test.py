#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# Time limit: 300 s
"""`weft slowdown`: percentiles of the slowdown by size equal those of the rows; jobs and times choose messages."""

import json
import pathlib
import sys
import unittest

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from weft_testing import EXIT_INPUT, NETWORK, ProgramTest, table, weft  # noqa: E402

STAR = {"kind": "star", "hosts": 8, "link_rate": "100 Gb/s", "link_delay": "500 ns"}
FLOWS = {"kind": "traffic", "pattern": "uniform", "sizes": "storage", "reuse_queue_pairs": False,
         "start": {"process": "poisson", "load": 0.6, "stop": "300 us"}}  # fmt: skip


def exact(values, share):
    """The smallest value that so many percent do not exceed."""
    ordered = np.sort(values)
    return ordered[int(np.ceil(share / 100 * len(ordered) - 1e-9)) - 1]


class Slowdown(ProgramTest):
    def found(self, file, *words):
        return json.loads(self.run_weft("slowdown", file, "--json", *words).out)

    def assert_rows(self, one, messages, chosen, times=False):
        slowdown = (messages["delivered"] - messages["issued"] if times else messages["slowdown"])[chosen]
        self.assertEqual(one["messages"], len(slowdown))
        self.assertAlmostEqual(one["mean"], slowdown.mean(), places=9)
        self.assertAlmostEqual(one["max"], slowdown.max(), places=9)
        for share in (50, 95, 99):
            value = exact(slowdown, share)
            self.assertGreaterEqual(one[f"p{share}"], value * (1 - 1e-9))
            self.assertLessEqual(one[f"p{share}"], value * 2 ** (1 / 1024) * (1 + 1e-9))

    def test_percentiles_of_classes_of_equal_counts(self):
        _, file = self.simulate({"topology": STAR, "network": NETWORK, "workload": FLOWS})
        messages = table(file, "messages")
        classes = self.found(file, "--classes", "4")["classes"]
        self.assertEqual(len(classes), 5)
        edges = [exact(messages["bytes"], share) for share in (25, 50, 75, 100)]
        self.assertEqual([one["largest"] for one in classes[:4]], edges)
        below = 0
        for one, edge in zip(classes, edges):
            self.assert_rows(one, messages, (messages["bytes"] > below) & (messages["bytes"] <= edge))
            below = edge
        self.assert_rows(classes[4], messages, messages["bytes"] >= 0)
        text = self.run_weft("slowdown", file, "--classes", "4").out
        self.assertEqual(len(text.splitlines()), 6)
        self.assertIn(f"{len(messages['bytes']):,}", text.splitlines()[-1])

    def test_times_of_flows(self):
        """The completion times that papers draw, in ps; for people with their unit."""
        _, file = self.simulate({"topology": STAR, "network": NETWORK, "workload": FLOWS})
        messages = table(file, "messages")
        self.assert_rows(self.found(file, "--times")["classes"][-1], messages, messages["bytes"] >= 0, times=True)
        self.assertRegex(self.run_weft("slowdown", file, "--times").out.splitlines()[-1], r"all +[0-9,]+( +[0-9.]+ us){5}$")

    def test_jobs_times_and_what_has_not_arrived(self):
        """Two jobs on the same hosts, cut short."""
        jobs = [{"name": "flows", "share": True, "placement": {"first": 0}, "workload": FLOWS},
                {"name": "burst", "share": True, "placement": {"first": 0}, "workload": {
                    "kind": "traffic", "pattern": "incast", "destination": "random", "sources": 5, "size": "50 kB",
                    "start": {"process": "periodic", "interval": "40 us", "count": 4}}}]
        _, file = self.simulate({"topology": STAR, "network": NETWORK, "workload": {"kind": "jobs", "jobs": jobs},
                                 "simulation": {"until": "200 us"}})
        messages, ranks = table(file, "messages"), table(file, "ranks")
        burst = messages["source"] >= 8
        self.assert_rows(self.found(file, "--job", "burst")["classes"][-1], messages, burst)
        middle = (messages["issued"] >= 50 * 10**6) & (messages["issued"] < 150 * 10**6)
        self.assert_rows(self.found(file, "--job", "flows", "--since", "50 us", "--until", "0.15 ms")["classes"][-1], messages,
                         middle & ~burst)
        missing = int(ranks["messages_sent"].sum() - ranks["messages_received"].sum())
        self.assertGreater(missing, 0)
        self.assertEqual(self.found(file)["undelivered"], missing)
        self.assertIn("had not arrived", self.run_weft("slowdown", file).out)
        self.assertEqual(self.found(file, "--since", "1 s")["classes"], [])

    def test_complaints(self):
        _, file = self.simulate({"topology": STAR, "network": NETWORK, "workload": {**FLOWS, "start": "0 us"}})
        for words, part in ((["--job", "nobody"], "there is no job 'nobody'"), (["--since", "soon"], "'2 ms'"),
                            (["--classes", "0"], "number of rows")):  # fmt: skip
            done = weft("slowdown", file, *words, folder=self.folder)
            self.assertEqual(done.code, EXIT_INPUT, done)
            self.assertIn(part, done.err)
        done = weft("slowdown", "absent.h5", folder=self.folder)
        self.assertEqual(done.code, EXIT_INPUT, done)
        _, file = self.simulate({"topology": STAR, "network": NETWORK, "workload": {**FLOWS, "start": "0 us"},
                                 "output": {"messages": "none"}}, output="none.h5")
        done = weft("slowdown", file, folder=self.folder)
        self.assertEqual(done.code, EXIT_INPUT, done)
        self.assertIn("messages", done.err)


if __name__ == "__main__":
    unittest.main()
