#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# Time limit: 600 s
"""The verdict on the page of `weft report` about senders that congestion control or pauses hold back, and packets that are sent again or overtaken."""

import pathlib
import re
import sys
import unittest

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from report_testing import PageTest
from weft_testing import NETWORK, STAR, table


class Senders(PageTest):
    def test_of_pauses_the_link_is_named_where_they_begin(self):
        """Ranks 1 to 3 send to rank 0, whose link has a tenth of the rate. Switch 1 fills and stops the link between the
        switches, at which most messages wait; it is busy for 3 % of the run."""
        links = [{"from": f"host{host}", "to": f"switch{host in (0, 5):d}", "rate": "10 Gb/s" if host == 0 else "100 Gb/s"}
                 for host in range(6)] + [{"from": "switch0", "to": "switch1", "rate": "400 Gb/s"}]
        _, file = self.simulate({
            "topology": {"kind": "graph", "hosts": 6, "switches": 2, "link_delay": "500 ns", "links": links},
            "network": {"flow_control": "pfc", "buffer": {"size": "1 MB"}, "window": "16 MB"},
            "workload": {"kind": "traffic", "pattern": "pairs", "size": "4 MB", "pairs": [[1, 0], [2, 0], [3, 0], [4, 5]]}})
        self.show(file)
        self.assertEqual(self.verdict(), {"verdict": "pause", "congested": "1", "link": "switch1 → host0"})
        self.assertIn("Congestion was found: switch1 → host0 (host) had links stopped for", self.text(".verdict"))

    def test_on_servers_sending_at_the_rate_of_the_nic_is_no_congestion(self):
        """A GPU's own link has ten times the rate of its NIC, so that flow control, a window or a rate holds it back all the time. One
        message takes what it takes on an idle network. A ring of four, whose channels share the NICs, is bound by these."""
        topology = {"kind": "leaf_spine", "leaves": 8, "hosts_per_leaf": 4, "spines": 1, "link_rate": "400 Gb/s", "link_delay": "500 ns",
                    "server": {"design": "hgx_h100", "wiring": "rail"}}
        one = {"kind": "traffic", "pattern": "pairs", "pairs": [[0, 8]], "size": "16 MiB"}
        ring = {"kind": "collective", "collective": "all_reduce", "ranks": 4, "size": "16 MiB", "algorithm": "ring",
                "placement": {"stride": 8}}
        for control in ("none", "dcqcn", "swift"):
            network = {"mtu": "4096 B", "flow_control": "pfc", "buffer": {"size": "64 MiB"}, "congestion_control": control}
            for workload in (one, ring):
                _, file = self.simulate({"topology": topology, "network": network, "workload": workload,
                                               "output": {"attribution": "full"}})
                messages = table(file, "messages")
                if workload is one:
                    took = int(messages["delivered"][0] - messages["issued"][0])
                    self.assertGreater(messages["part_transfer"][0], 0.998 * took, control)
                # 2 x 3/4 of the bytes of the all-reduce leave each NIC (Patarasuk, Yuan 2009), in frames of 4096 B with 62 B of headers
                # and 20 B of the wire.
                size = (16 << 20) * (1 if workload is one else 1.5)
                wire = size / 4096 * (4096 + 62 + 20) * 8 / 400e9
                time = float(table(file, "jobs")["time"][0]) * 1e-12
                self.assertLess(wire, time)
                self.assertLess(time, 1.1 * wire)
                self.show(file)
                with self.subTest(control=control, workload=workload["kind"]):
                    self.assertIn("A busy link bounds the run", self.text(".verdict"))
                    self.assertRegex(self.text(".verdict"), r"server\d/nic0 → leaf0 \(nic\) was busy for (9\d|100) %")
                    self.assertNotIn("Congestion, mostly", self.text(".verdict"))

    def test_larger_buffers_are_not_advised_where_a_link_is_full(self):
        """A ring that crosses one spine 16 times fills the leaves' links, so that twice the buffers save nothing."""
        order = [host for pair in zip(range(8), range(8, 16)) for host in pair]
        experiment = {"topology": {"kind": "leaf_spine", "leaves": 2, "spines": 1, "hosts_per_leaf": 8, "link_rate": "100 Gb/s",
                                   "link_delay": "500 ns"},
                      "network": {**NETWORK, "flow_control": "pfc", "buffer": {"size": "512 KiB"}},
                      "workload": {"kind": "collective", "collective": "all_reduce", "algorithm": "ring", "size": "8 MiB",
                                   "placement": {"hosts": order}}}  # fmt: skip
        saved = self.saved(experiment, buffer={"size": "1 MiB"})
        self.assertLess(saved, 0.03)
        self.assertEqual(self.verdict()["verdict"], "pause")
        self.assertNotIn("network.buffer", self.text(".verdict"))
        self.assertIn("more or faster links there", self.text(".verdict"))

    def test_of_losses_the_link_is_named_at_which_they_were(self):
        _, file = self.simulate({
            "topology": STAR, "workload": {"kind": "collective", "collective": "all_reduce", "ranks": 4, "size": "4 MiB"},
            "network": {"loss": [{"link": ["host1", "switch0"], "probability": 0.05}]}})
        self.show(file)
        links = table(file, "links")
        worst = int(links["lost"].argmax())
        name = f"{links['from_name'][worst]} → {links['to_name'][worst]}"
        self.assertEqual(self.verdict()["link"], name)
        self.assertIn(f"{name} (host) lost {links['lost'][worst]} packets", self.text(".verdict"))
        self.assertIn("a link without errors", self.text(".verdict"))
        self.assertEqual(self.number("[data-fact=dropped]"), links["lost"].sum())

    def test_a_link_that_is_busy_with_packets_that_had_arrived(self):
        """Losses have go-back-N send again what a receiver has thrown away, and timers what is still in a queue of 1.2 ms: the link of
        the receiver is busy all the time. 64 messages of 1 MiB have to pass it, and without losses nothing else does."""
        experiment = {"topology": {"kind": "star", "hosts": 65, "link_rate": "400 Gb/s", "link_delay": "500 ns"},
                      "network": {**NETWORK, "buffer": {"size": "16 MiB"}},
                      "workload": {"kind": "traffic", "pattern": "incast", "destination": 0, "sources": 64, "size": "1 MiB"},
                      "output": {"attribution": "full", "operations": True}}  # fmt: skip
        summary, file = self.simulate(experiment)
        time, links = float(table(file, "jobs")["time"][0]), table(file, "links")
        least = 64 * 256 * (4096 + 62 + 20) * 8 * 2.5  # ps
        self.assertGreater(links["busy"].max(), 0.95 * time)
        self.show(file)
        said = re.search(r"delays the run, which takes [0-9.]+ ms, by at most ([0-9.]+) (µs|ms),", self.text(".verdict"))
        self.assertIsNotNone(said, self.text(".verdict"))
        self.assertAlmostEqual(float(said[1]) * {"µs": 1e6, "ms": 1e9}[said[2]], time - least, delta=0.01 * time)
        lossless, _ = self.simulate(experiment, "--set", "network.flow_control=pfc")
        self.assertAlmostEqual(summary["simulated_time_ps"] - lossless["simulated_time_ps"], time - least, delta=0.01 * time)

    def test_packets_that_overtake_are_not_lost(self):
        """Every packet takes its own path, and none is lost: nothing is sent again."""
        summary, file = self.simulate({
            "topology": {"kind": "leaf_spine", "leaves": 4, "hosts_per_leaf": 4, "spines": 4, "link_rate": "100 Gb/s",
                         "link_delay": "500 ns"},
            "network": {"window": "1 MiB", "load_balancing": "spray"}, "simulation": {"seed": 5},
            "workload": {"kind": "collective", "collective": "all_reduce", "algorithm": "ring", "size": "4 MiB",
                         "placement": "random"}})
        self.assertEqual(summary["congestion"]["packets_repeated"], 0)
        self.assertGreater(table(file, "jobs")["part_reordering"][0], 0)
        self.show(file)
        self.assertNotIn("retransmission 1", self.text(".verdict"))
        self.assertIn("that others overtook", self.text(".verdict"))
        self.assertNotIn("lossless", self.text(".verdict"))

    def test_what_congestion_control_can_save(self):
        """With DCQCN the link of the receiver is idle for a part of the time: without that part, the run takes what 8 messages
        take there."""
        _, file = self.simulate({
            "topology": {"kind": "star", "hosts": 9, "link_rate": "100 Gb/s", "link_delay": "500 ns"},
            "network": {**NETWORK, "congestion_control": "dcqcn"},
            "workload": {"kind": "traffic", "pattern": "incast", "destination": 0, "sources": 8, "size": "1 MiB"}})
        time = table(file, "jobs")["time"][0]
        idle = time - 8 * 256 * (4096 + 62 + 20) * 8 * 10  # 256 packets of each, 10 ps for a bit
        self.assertGreater(idle, 0.1 * time)
        self.show(file)
        self.assertEqual(self.verdict()["verdict"], "pacing")
        said = re.search(r"by at most ([0-9.]+) (µs|ms)", self.text(".verdict"))
        self.assertAlmostEqual(float(said[1]) * {"µs": 1e6, "ms": 1e9}[said[2]] / idle, 1, delta=0.01)

    def test_an_incast_that_is_paced_is_blamed_on_the_busiest_link(self):
        """15 hosts send to one: its link carries all bytes, and each link before it less. HPCC keeps its queue short."""
        _, file = self.simulate({
            "topology": {"kind": "fat_tree", "k": 4, "link_rate": "400 Gb/s", "link_delay": "500 ns"},
            "network": {**NETWORK, "flow_control": "pfc", "buffer": {"size": "2 MiB"}, "congestion_control": "hpcc"},
            "workload": {"kind": "traffic", "pattern": "incast", "destination": 0, "sources": 15, "size": "1 MiB"}})
        self.show(file)
        self.assertEqual(self.verdict(), {"verdict": "pacing", "congested": "1", "link": "pod0/edge0 → host0"})
        self.assertNotIn("load_balancing", self.text(".verdict"))

    def test_flows_that_share_a_link_by_chance_are_paced(self):
        """A ring on random hosts: ECMP sends several of its flows over one link between switches, where DCQCN marks them.
        Other paths help then, as a run shows; at the link of a destination, as in the incast above, they do not."""
        experiment = {
            "topology": {"kind": "leaf_spine", "leaves": 4, "hosts_per_leaf": 4, "spines": 2, "link_rate": "400 Gb/s",
                         "link_delay": "500 ns"},
            "network": {**NETWORK, "flow_control": "pfc", "buffer": {"size": "32 MiB"}, "congestion_control": "dcqcn"},
            "workload": {"kind": "collective", "collective": "all_reduce", "algorithm": "ring", "size": "32 MiB",
                         "placement": "random"}}
        summary, file = self.simulate(experiment)
        self.show(file)
        self.assertEqual(self.verdict()["verdict"], "pacing")
        self.assertIn("load_balancing", self.text(".verdict"))
        experiment["network"]["load_balancing"] = "adaptive"
        helped, _ = self.simulate(experiment)
        self.assertLess(helped["simulated_time_ps"], summary["simulated_time_ps"])

    def test_a_paced_incast_beside_a_job_with_busier_links(self):
        """Seven hosts send to one, paced by DCQCN, which leaves its link idle now and then; a ring elsewhere keeps its links
        busy. The longer job is the incast, and its link is named, not one that only the ring uses."""
        jobs = [{"name": "incast", "workload": {"kind": "traffic", "pattern": "incast", "ranks": 8, "destination": 0,
                                                "sources": 7, "size": "2 MiB"}},
                {"name": "ring", "placement": {"first": 8}, "workload": {
                    "kind": "collective", "collective": "all_reduce", "algorithm": "ring", "ranks": 8, "size": "8 MiB"}}]
        _, file = self.simulate({
            "topology": {"kind": "fat_tree", "k": 4, "link_rate": "100 Gb/s", "link_delay": "500 ns"},
            "network": {**NETWORK, "flow_control": "pfc", "buffer": {"size": "16 MiB"}, "congestion_control": "dcqcn"},
            "workload": {"kind": "jobs", "jobs": jobs}})
        links = table(file, "links")
        behind_switches = np.char.startswith(links["to_name"].astype(str), "host")
        busiest = np.where(behind_switches, links["utilization"], 0).argmax()
        self.assertNotEqual(str(links["to_name"][busiest]), "host0")
        self.show(file)
        self.assertEqual(self.verdict(), {"verdict": "pacing", "congested": "1", "link": "pod0/edge0 → host0"})
        self.assertNotIn("of job ring was delayed most", self.text(".verdict"))


if __name__ == "__main__":
    unittest.main()
