#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# Runs in: quick
"""Buffers that wait for each other in a cycle end the run with the cycle, the same on any number of processes; buffers
that cannot do not."""

import pathlib
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from weft_testing import EXIT_INPUT, ProgramTest, weft  # noqa: E402

SWITCHES = 7
# Each link of the ring carries flows of three hosts, and packets of each of them wait at its end for the next link: with
# seven switches there is one shortest path over three links. Dally and Seitz 1987, figure 1.
PAIRS = [[i, (i + 3) % SWITCHES] for i in range(SWITCHES)]
HOST_LINKS = [{"from": f"host{i}", "to": f"switch{i}"} for i in range(SWITCHES)]
RING = HOST_LINKS + [{"from": f"switch{i}", "to": f"switch{(i + 1) % SWITCHES}"} for i in range(SWITCHES)]
TREE = HOST_LINKS + [{"from": f"switch{i}", "to": f"switch{SWITCHES}"} for i in range(SWITCHES)]
FLOW_CONTROLS = {
    "pfc": {"flow_control": "pfc", "buffer": {"size": "10 MB", "threshold": "20 kB"},
            "pfc": {"watchdog": "100 us", "quanta": 2000}},
    "credit": {"flow_control": "credit", "credit": {"buffer": "20 kB"}},
}


class Deadlock(ProgramTest):
    def experiment(self, links, switches, network):
        topology = {"kind": "graph", "hosts": SWITCHES, "switches": switches, "link_rate": "100 Gb/s",
                    "link_delay": "500 ns", "links": links}
        return self.write({"topology": topology, "network": {**network, "window": "16 MiB"},
                           "workload": {"kind": "traffic", "pattern": "pairs", "pairs": PAIRS, "size": "4 MB"}},
                          f"{len(links)}_{switches}_{network['flow_control']}.yaml")

    def test_a_ring_stops_with_its_cycle(self):
        for name, network in FLOW_CONTROLS.items():
            told = set()
            for words in [[], ["--engine", "ns3-default"]]:
                for ranks in [None, 2, 4]:
                    if words and ranks:
                        continue
                    with self.subTest(name, ranks=ranks, words=words):
                        path = self.experiment(RING, SWITCHES, network)
                        done = weft("run", path, "-o", "out.h5", *words, ranks=ranks, folder=self.folder, seconds=100)
                        self.assertEqual(done.code, EXIT_INPUT, done)
                        self.assertEqual(len(done.messages()), 1, done)
                        self.assertFalse((self.folder / "out.h5").exists())
                        told.add(done.messages()[0])
            self.assertEqual(len(told), 1, told)
            message = told.pop()
            self.assertRegex(message, r"deadlock: these ports wait for each other's buffers for ever")
            ports = re.findall(r"switch(\d+):\d+ -> ", message)
            # All links of the ring in the direction of the flows, from one port on and back to its switch.
            start = int(ports[0])
            self.assertEqual([int(port) for port in ports], [(start + i) % SWITCHES for i in range(SWITCHES)], message)
            self.assertRegex(message, rf"-> switch{start};", message)
            where = re.match(r"weft: (.*?):(\d+): ", message)
            self.assertIsNotNone(where, message)
            line = pathlib.Path(where.group(1)).read_text().splitlines()[int(where.group(2)) - 1]
            self.assertIn(name, line, message)

    def test_the_same_traffic_on_a_tree_ends(self):
        for name, network in FLOW_CONTROLS.items():
            with self.subTest(name):
                summary, _ = self.simulate(self.experiment(TREE, SWITCHES + 1, network))
                self.assertTrue(summary["complete"])
                self.assertEqual(summary["packets_dropped"], 0)


if __name__ == "__main__":
    unittest.main()
