#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# Time limit: 600 s
"""Tables beside the verdict on the page of `weft report`: links by the delay that they caused, and the critical path."""

import pathlib
import sys
import unittest

import h5py

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from report_testing import PageTest, write_numbers
from weft_testing import NETWORK, STAR

# Two jobs whose ring and exchange have one link between two switches in common.
SHARED = {
    "topology": {"kind": "graph", "hosts": 4, "switches": 2, "links": [
        *({"from": f"host{host}", "to": f"switch{host // 2}", "rate": "100 Gb/s", "delay": "500 ns"}
          for host in range(4)),
        {"from": "switch0", "to": "switch1", "rate": "25 Gb/s", "delay": "500 ns"}]},
    "network": NETWORK,
    "workload": {"kind": "jobs", "jobs": [
        {"name": name, "placement": {"first": first, "stride": 2}, "workload": {
            "kind": "collective", "collective": "all_reduce", "algorithm": "ring", "ranks": 2, "size": "1 MB"}}
        for first, name in enumerate(("a", "b"))]},
}


class Delays(PageTest):
    def test_a_shared_link_shows_both_jobs(self):
        _, file = self.simulate(SHARED)
        self.show(file)
        self.assertIn(self.verdict()["link"], ("switch0 → switch1", "switch1 → switch0"))
        line = self.text("[data-name=delays] tbody tr")
        self.assertRegex(line, r"\ba \d+ %")
        self.assertRegex(line, r"\bb \d+ %")

    def test_who_stood_in_front(self):
        """A table /link_waits, synthetic: the columns' names and units define their meaning."""
        _, file = self.simulate(SHARED)
        with h5py.File(file, "a") as results:
            links = results["links"]
            names = list(zip(links["from_name"].asstr()[:], links["to_name"].asstr()[:]))
            link = int(links["id"][names.index(("switch0", "switch1"))])
            if "link_waits" in results:
                del results["link_waits"]
            waits = results.create_group("link_waits")
            write_numbers(waits, "link", [link, link, link], "id")
            write_numbers(waits, "job", [0, 1, 0], "id")
            write_numbers(waits, "ahead", [1, 0, -1], "id")
            write_numbers(waits, "waits", [6, 3, 1])
            write_numbers(waits, "time", [60_000_000, 30_000_000, 10_000_000], "ps")
            write_numbers(waits, "first", [1_000_000, 2_000_000, 3_000_000], "ps")
            write_numbers(waits, "last", [4_000_000, 5_000_000, 6_000_000], "ps")
        self.show(file)
        self.assertEqual(self.number("[data-delay-link]"), 100_000_000)
        line = self.text("[data-name=delays] tbody tr")
        self.assertRegex(line, r"a 70 %\s+b 30 %\s+b 60 %\s+a 30 %\s+no job or several 10 %")

    def test_the_critical_path(self):
        """A rank computes 1 ms before an all-reduce that the others begin at once: nearly all of the path is compute."""
        workload = {"kind": "program", "ranks": 4, "operations": [
            {"rank": 2, "id": "slow", "compute": "1 ms"},
            {"collective": "all_reduce", "size": "4 KiB", "id": "grads", "stream": "compute"}]}
        _, file = self.simulate({"topology": STAR, "workload": workload,
                                 "output": {"attribution": "full", "operations": True}})
        self.show(file)
        self.assertEqual(self.number("[data-name=critical]", "steps"), 2)
        self.assertRegex(self.text("[data-name=critical] tbody"), r"^compute\s+1(\.0+)? ms\s+9\d(\.\d)? %")


if __name__ == "__main__":
    unittest.main()
