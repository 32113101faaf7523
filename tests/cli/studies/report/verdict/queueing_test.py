#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# Time limit: 600 s
"""The verdict on the page of `weft report` about queues: the link at which messages wait, and what saves that time."""

import pathlib
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from report_testing import IDLE, INCAST, PageTest
from weft_testing import NETWORK, table


class Queueing(PageTest):
    def test_no_congestion_on_an_idle_network(self):
        _, file = self.simulate(IDLE)
        self.show(file)
        self.assertEqual(self.verdict()["congested"], "0")
        self.assertIn("No congestion was found", self.text(".verdict"))
        self.assertLessEqual(len(self.data(".verdict p", "x")), 3)

    def test_the_constructed_bottleneck_is_named_first(self):
        for attribution in ("summary", "none"):
            with self.subTest(attribution=attribution):
                _, file = self.simulate(INCAST, "--set", f"output.attribution={attribution}")
                self.show(file)
                self.assertEqual(self.verdict(), {"verdict": "queueing", "congested": "1", "link": "switch0 → host0"})
                links = table(file, "links")
                worst = self.data("[data-delay-link]", "delayLink")[0]
                row = links["id"].tolist().index(int(worst))
                self.assertEqual((links["from_name"][row], links["to_name"][row]), ("switch0", "host0"))
                self.assertIn("Congestion was found: switch0 → host0", self.text(".verdict"))

    def test_a_link_that_is_slower_than_those_before_it(self):
        """In a ring only one rank sends to another, here over a link of a tenth of the rate, which is busy all the time."""
        links = [{"from": f"host{host}", "to": "switch0", "rate": "10 Gb/s" if host == 3 else "100 Gb/s"} for host in range(8)]
        _, file = self.simulate({
            "topology": {"kind": "graph", "hosts": 8, "switches": 1, "link_delay": "500 ns", "links": links},
            "workload": {"kind": "collective", "collective": "all_reduce", "algorithm": "ring", "size": "8 MiB"}})
        self.show(file)
        self.assertEqual(self.verdict()["link"], "switch0 → host3")
        self.assertNotIn("Many send", self.text(".verdict"))
        self.assertIn("A busy link bounds the run", self.text(".verdict"))
        self.assertIn("That link has 10 Gb/s, and others of its class have 100 Gb/s: only less data to host3, or a faster link",
                      self.text(".verdict"))

    def test_an_incast_that_only_its_link_bounds(self):
        """8 senders of 1 MiB fill the link of the receiver, so that an ideal network takes as long: only the first packet's way
        is left beside it, which is less than 1 % of the time."""
        _, file = self.simulate({
            "topology": {"kind": "star", "hosts": 9, "link_rate": "100 Gb/s", "link_delay": "500 ns"},
            "network": {**NETWORK, "flow_control": "pfc", "buffer": {"size": "512 KiB"}},
            "workload": {"kind": "traffic", "pattern": "incast", "destination": 0, "sources": 8, "size": "1 MiB"}})
        links = table(file, "links")
        self.assertGreater(links["busy"].max(), 0.99 * table(file, "jobs")["time"][0])
        self.show(file)
        self.assertIn("A busy link bounds the run", self.text(".verdict"))
        self.assertIn("Only less data to host0, or a faster link, would help", self.text(".verdict"))
        self.assertNotIn("network.buffer", self.text(".verdict"))
        self.assertNotIn("load_balancing", self.text(".verdict"))

    def test_a_routing_that_looks_at_queues_is_advised(self):
        """Each group of a dragonfly sends to the next one over one link. Another load balancing has no other path; another
        routing has, as a run shows."""
        experiment = {"topology": {"kind": "dragonfly", "a": 4, "h": 2, "p": 2, "link_rate": "100 Gb/s", "link_delay": "500 ns"},
                      "network": {**NETWORK, "flow_control": "credit"},
                      "workload": {"kind": "traffic", "pattern": "pairs", "size": "256 KiB",
                                   "pairs": [[host, (host + 8) % 72] for host in range(72)]}}  # fmt: skip
        summary, file = self.simulate(experiment)
        self.show(file)
        self.assertIn("network.routing: dragonfly_ugal", self.text(".verdict"))
        self.assertNotIn("load_balancing", self.text(".verdict"))
        experiment["network"]["routing"] = "dragonfly_ugal"
        helped, _ = self.simulate(experiment)
        self.assertLess(helped["simulated_time_ps"], summary["simulated_time_ps"] / 2)

    def test_on_servers_the_routing_between_nics_is_advised(self):
        """Each group of a dragonfly of servers sends to the next one over one link. The machine's own routing leads to NICs; that
        between them has a key of its own."""
        server = {"design": "hgx_h100", "wiring": "packed", "network_routing": "dragonfly_minimal_lanes"}
        experiment = {"topology": {"kind": "dragonfly", "a": 2, "h": 2, "p": 8, "link_rate": "400 Gb/s", "link_delay": "500 ns",
                                   "server": server},
                      "network": {"mtu": "4096 B", "flow_control": "pfc", "buffer": {"size": "64 MiB"}},
                      "workload": {"kind": "traffic", "pattern": "permutation", "shift": 16, "size": "4 MiB"}}  # fmt: skip
        summary, file = self.simulate(experiment)
        self.show(file)
        self.assertIn("topology.server.network_routing: dragonfly_ugal", self.text(".verdict"))
        self.assertNotIn("load_balancing", self.text(".verdict"))
        server["network_routing"] = "dragonfly_ugal"
        helped, _ = self.simulate(experiment)
        self.assertLess(helped["simulated_time_ps"], 0.9 * summary["simulated_time_ps"])

    def test_messages_of_an_even_all_to_all_that_wait_behind_each_other(self):
        """Four leaves of four hosts, with two links to spines: 16 x 15 messages of 1 MiB, all handed over at once, take the link
        of a host 15 x 256 packets of 4,178 B and as many ACKs of 86 B, and each of the two links 4 x 12 / 2 times as much as one
        message. Nearly all of them wait behind others of their sender, also on an ideal network, so that this is no delay: congestion
        delays by what is left beside the link of a host, 1 - 15 / 24, and links that all are as busy leave nothing to other paths."""
        topology = {"kind": "leaf_spine", "leaves": 4, "hosts_per_leaf": 4, "spines": 2, "link_rate": "400 Gb/s", "link_delay": "500 ns"}
        experiment = {"topology": topology, "network": {**NETWORK, "mtu": "4096 B", "ack": "66 B", "load_balancing": "spray"},
                      "workload": {"kind": "collective", "collective": "all_to_all", "algorithm": "linear", "size": "16 MiB"}}
        summary, file = self.simulate(experiment)
        packets = 15 * (1 << 20) // 4096
        least = packets * (4096 + 82 + 86) * 8 / 400e9 * 1e12
        self.show(file)
        text = self.text(".verdict")
        said = re.search(r"by at most ([0-9.]+) µs, ([0-9.]+) %, because what has to pass (\S+ → host\d+|host\d+ → \S+) keeps it busy", text)
        time = float(table(file, "jobs")["time"][0])
        self.assertIsNotNone(said, text)
        self.assertAlmostEqual(float(said[2]) / 100, 1 - 15 / 24, delta=0.02)
        self.assertAlmostEqual(float(said[1]) * 1e6, time - least, delta=0.01 * time)
        ideal, _ = self.simulate(experiment, "--set", "network.fidelity=ideal", "--set", "network.load_balancing=ecmp")
        saved = summary["simulated_time_ps"] - ideal["simulated_time_ps"]
        self.assertAlmostEqual(float(said[1]) * 1e6, saved, delta=0.03 * time)
        self.assertNotIn("load_balancing", text)

    def test_the_critical_path_says_how_much_congestion_delays(self):
        """Data-parallel ranks on random hosts wait for each other, and few of them for the link that two share: means over ranks
        say less than what an ideal network saves, and the path about as much."""
        experiment = {"topology": {"kind": "leaf_spine", "leaves": 4, "hosts_per_leaf": 4, "spines": 1, "link_rate": "100 Gb/s",
                                   "link_delay": "500 ns"}, "network": NETWORK,
                      "workload": {"kind": "collective", "collective": "all_reduce", "algorithm": "ring", "size": "8 MiB",
                                   "placement": {"kind": "random", "seed": 3}},
                      "output": {"attribution": "full", "operations": True}}  # fmt: skip
        summary, file = self.simulate(experiment)
        self.show(file)
        said = re.search(r"of its critical path ([0-9.]+) %", self.text(".verdict"))
        ideal, _ = self.simulate(experiment, "--set", "network.fidelity=ideal")
        saved = 100 * (1 - ideal["simulated_time_ps"] / summary["simulated_time_ps"])
        self.assertAlmostEqual(float(said[1]), saved, delta=10)

    def test_queues_beside_the_handling_of_slices(self):
        """Collectives of 32 GPUs by NCCL's channels. Behind one spine for 16 GPUs an ideal network saves most of the time, so
        congestion bounds the run; a small all-reduce on full bisection is as long on an ideal network."""
        def runs(collective, size, spines):
            experiment = {
                "topology": {"kind": "leaf_spine", "leaves": 2, "spines": spines, "hosts_per_leaf": 16, "link_rate": "400 Gb/s",
                             "link_delay": "100 ns", "server": {"design": "hgx_h100"}},
                "network": NETWORK, "workload": {"kind": "collective", "collective": collective, "size": size,
                                                 "algorithm": "nccl"}, "output": {"messages": "none"}}  # fmt: skip
            file = self.simulate(experiment)[1]
            ideal = self.simulate({**experiment, "network": {**NETWORK, "fidelity": "ideal"}}, output="ideal.h5")[1]
            self.show(file)
            return 1 - float(table(ideal, "jobs")["time"][0]) / float(table(file, "jobs")["time"][0])

        for collective in ("all_reduce", "all_gather", "all_to_all"):
            with self.subTest(collective):
                self.assertGreater(runs(collective, "16 MiB", 1), 0.6)
                self.assertEqual(self.verdict()["verdict"], "queueing")
        self.assertLess(runs("all_reduce", "1 MiB", 16), 0.03)
        self.assertEqual(self.verdict()["verdict"], "local")

    def test_a_link_that_two_of_a_ring_share(self):
        """A ring whose order crosses one spine twice in each direction: hosts' links could be busy all the time, and are so for half
        of it, because two neighbours share a link. So an ideal network saves half, though few ranks see a queue."""
        experiment = {
            "topology": {"kind": "leaf_spine", "leaves": 2, "spines": 1, "hosts_per_leaf": 8, "link_rate": "100 Gb/s",
                         "link_delay": "500 ns"},
            "network": {**NETWORK, "window": "256 KiB"},
            "workload": {"kind": "collective", "collective": "all_reduce", "algorithm": "ring", "size": "64 MiB", "ranks": 16,
                         "placement": {"hosts": [0, 1, 2, 3, 8, 9, 10, 11, 4, 5, 6, 7, 12, 13, 14, 15]}}}  # fmt: skip
        self.assertAlmostEqual(self.saved(experiment, fidelity="ideal"), 0.5, delta=0.05)
        self.assertEqual(self.verdict()["verdict"], "queueing")
        self.assertIn("A busy link bounds the run", self.text(".verdict"))

    def test_links_of_a_torus_behind_faster_links_of_hosts(self):
        """Eight routers in a ring, whose hosts have the rate of both its links. The messages of a host to the seven others take
        1 + 2 + 3 + 4 + 3 + 2 + 1 = 16 links, so that each direction of a link carries eight messages while a host sends seven at
        twice the rate: an ideal network saves 1 - 3.5/8. Acknowledgements are late because packets queue there; a window four
        times as large only makes queues longer."""
        experiment = {
            "topology": {"kind": "torus", "dims": [8], "link_rate": "100 Gb/s", "link_delay": "500 ns"},
            "network": {**NETWORK, "window": "256 KiB"}, "output": {"operations": True, "attribution": "full"},
            "workload": {"kind": "collective", "collective": "all_reduce", "algorithm": "direct", "size": "32 MiB"}}  # fmt: skip
        self.assertLess(self.saved(experiment, window="1 MiB"), 0.05)
        self.assertGreater(self.saved(experiment, fidelity="ideal"), 0.5)
        self.assertEqual(self.verdict()["verdict"], "queueing")


if __name__ == "__main__":
    unittest.main()
