#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Flow control by class of links: inside servers credits, between them pauses. Neither loses anything, and links inside
servers are never paused and mark nothing; deadlocks across both kinds are found."""
# Time limit: 600 s

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from weft_testing import EXIT_INPUT, NETWORK, ProgramTest, table, two_at_a_time, weft

INSIDE = ("gpu", "nvlink", "pcie")
# Two servers of eight GPUs with an NVSwitch and four NICs.
SERVERS = {"kind": "star", "hosts": 8, "link_rate": "400 Gb/s", "link_delay": "500 ns",
           "server": {"gpus": 8, "inside": "nvswitch", "nvlink_rate": "450 GB/s", "nvlink_delay": "100 ns", "nics": 4,
                      "pcie_rate": "64 GB/s", "pcie_delay": "200 ns"}}
PFC = {**NETWORK, "flow_control": "pfc", "buffer": {"size": "2 MB"}}
TO_GPU_0 = {"kind": "traffic", "pattern": "pairs", "size": "2 MB", "pairs": [[gpu, 0] for gpu in range(1, 8)]}
# All of the other server too, through one leaf and one NIC.
FROM_ALL = {**TO_GPU_0, "pairs": [[gpu, 0] for gpu in range(1, 16)]}


class LinkClasses(ProgramTest):
    def experiment(self, network, workload=TO_GPU_0):
        return {"topology": SERVERS, "network": network, "workload": workload}

    def by_class(self, results, column):
        """{class of links: sum of a column of /link_classes over the priority of data}"""
        rows, links = table(results, "link_classes"), table(results, "links")
        of_link = dict(zip(links["id"].tolist(), links["link_class"]))
        sums = {name: 0 for name in links["link_class"]}
        for link, lane, value in zip(rows["link"].tolist(), rows["lane"].tolist(), rows[column].tolist()):
            if lane == 1:
                sums[of_link[link]] += value
        return sums

    def assert_no_pauses(self, results, classes):
        for column in ("pauses_sent", "pauses_received", "stopped"):
            sums = self.by_class(results, column)
            for name in classes:
                self.assertEqual(sums[name], 0, f"{column} of {name}")

    def test_an_incast_inside_a_server_backs_up_by_credits(self):
        summary, results = self.simulate(self.experiment(PFC))
        self.assertTrue(summary["complete"])
        self.assertEqual((summary["packets_dropped"], summary["congestion"]["pause_frames"]), (0, 0))
        self.assert_no_pauses(results, INSIDE)
        waited = self.by_class(results, "paused")
        # The last link is full, and the packets before it wait for space, back to the GPUs.
        self.assertGreater(waited["nvlink"], 0)
        self.assertGreater(waited["gpu"], 0)
        messages = table(results, "messages")
        self.assertGreater(messages["paused"].max(), 0)
        # Nothing waits in a switch beyond what its input buffers hold: the NVSwitch has eight ports.
        links = table(results, "links")
        rate, delay, frame = 450e9 * 8, 100e-9, 4096 + 62
        round_trip = 2 * delay + 2 * (frame + 20) * 8 / rate
        buffer = round_trip * rate / 8 + 2 * frame
        into_gpu = [name.startswith("switch") for name in links["from_name"]]
        self.assertLess(links["peak_queue"][into_gpu].max(), 8 * buffer + frame + 20)

    def test_pauses_between_servers_and_credits_inside(self):
        summary, results = self.simulate(self.experiment(PFC, FROM_ALL))
        self.assertTrue(summary["complete"])
        self.assertEqual(summary["packets_dropped"], 0)
        self.assertGreater(summary["congestion"]["pause_frames"], 0)
        self.assert_no_pauses(results, INSIDE)
        self.assertEqual(self.by_class(results, "pauses_sent")["nic"], summary["congestion"]["pause_frames"])

    def test_no_flow_control_between_servers(self):
        network = {**NETWORK, "buffer": {"size": "300 kB", "alpha": 1},
                   "link_classes": {name: {"flow_control": "credit"} for name in INSIDE}}
        summary, results = self.simulate(self.experiment(network, FROM_ALL))
        self.assertTrue(summary["complete"])
        self.assertEqual(summary["congestion"]["pause_frames"], 0)
        self.assertGreater(summary["packets_dropped"], 0)
        dropped = self.by_class(results, "dropped")
        self.assertGreater(self.by_class(results, "paused")["nvlink"], 0)
        # Drops count by a packet's next link: packets from the network find no space on their way inside.
        self.assertEqual(sum(dropped.values()), summary["packets_dropped"])
        inside, _ = self.simulate(self.experiment(network, TO_GPU_0), output="inside.h5")
        self.assertEqual(inside["packets_dropped"], 0)

    def test_only_switches_of_the_network_mark(self):
        """GPU 0 sends through its NIC to GPUs of the other server. On an idle network each flow would fill the NIC's link,
        and together they wait before PCIe (512 Gb/s) and the NIC (400 Gb/s), but in no switch: a switch gets 400 Gb/s and
        sends 400 Gb/s. So nothing is marked, whatever is asked for, and no CNP slows GPU 0 down. Where switches may drop
        packets, a GPU still has credits for its own: none is lost on the way to the NIC."""
        low = {"ecn": {"kmin": "1 kB", "kmax": "2 kB", "pmax": 1}}
        for flows, network in [(2, {}), (4, {}), (4, low), (4, {"ecn": {"algorithm": "codel", "target": "100 ns"}}),
                               (4, {"flow_control": "none"}),
                               (4, {"link_classes": {"gpu": {"flow_control": "none"}}})]:
            with self.subTest(flows=flows, network=network):
                # GPUs 8 to 11 share two NICs: one of them takes 400 Gb/s.
                workload = {**TO_GPU_0, "pairs": [[0, 8 + i] for i in range(flows)]}
                summary, results = self.simulate(
                    self.experiment({**PFC, "congestion_control": "dcqcn", **network}, workload))
                self.assertTrue(summary["complete"])
                self.assertEqual(sum(self.by_class(results, "marked").values()), 0)
                self.assertEqual(table(results, "queue_pairs")["cnps"].sum(), 0)
                if "link_classes" not in network:
                    self.assertEqual(summary["packets_dropped"], 0)
        # An incast from both servers is marked, and only where the leaf sends into a server.
        _, results = self.simulate(self.experiment({**PFC, "congestion_control": "dcqcn"}, FROM_ALL))
        marked = self.by_class(results, "marked")
        self.assertGreater(marked["nic"], 0)
        self.assertEqual({name: marked[name] for name in INSIDE}, dict.fromkeys(INSIDE, 0))
        links, rows = table(results, "links"), table(results, "link_classes")
        sender = dict(zip(links["id"].tolist(), links["from_name"]))
        self.assertEqual({sender[link] for link in rows["link"][rows["marked"] > 0].tolist()}, {"switch0"})

    def test_a_class_may_be_told_otherwise(self):
        _, results = self.simulate(self.experiment({**PFC, "link_classes": {"nvlink": {"flow_control": "pfc"}}}))
        self.assertGreater(self.by_class(results, "pauses_sent")["nvlink"], 0)
        self.assert_no_pauses(results, ("gpu", "pcie"))

    def test_identity(self):
        for flow_control, counted in (("pfc", "pause_frames"), ("none", "packets_marked")):
            network = {**PFC, "flow_control": flow_control, "congestion_control": "dcqcn"}
            path = self.write(self.experiment(network, FROM_ALL), f"{flow_control}.yaml")
            one, reference = two_at_a_time([
                lambda path=path: self.simulate(path, output="one.h5"),
                lambda path=path: self.simulate(path, "--engine", "ns3-default", output="reference.h5")])
            self.assertGreater(one[0]["congestion"][counted], 0)
            self.assertEqual(one[0]["fingerprint"], reference[0]["fingerprint"])
            for ranks in (2, 3, 4, 8):
                other = self.simulate(path, output="other.h5", ranks=ranks)
                self.assertEqual(one[0]["fingerprint"], other[0]["fingerprint"], ranks)
                self.assert_same_results(one[1], other[1])

    def test_a_deadlock_across_both_kinds_is_found(self):
        """The ring of deadlock_test.py with one link by pauses and the others by credits, and the reverse."""
        switches = 7
        hosts = [{"from": f"host{i}", "to": f"switch{i}"} for i in range(switches)]
        ring = [{"from": f"switch{i}", "to": f"switch{(i + 1) % switches}"} for i in range(switches)]
        for one, others in (("host", "switch"), ("switch", "host")):
            network = {**NETWORK, "flow_control": "pfc", "buffer": {"size": "10 MB", "threshold": "20 kB"},
                       "pfc": {"watchdog": "100 us", "quanta": 2000}, "credit": {"buffer": "20 kB"},
                       "window": "16 MiB", "link_classes": {one: {"flow_control": "credit"}}}
            path = self.write({
                "topology": {"kind": "graph", "hosts": switches, "switches": switches, "link_rate": "100 Gb/s",
                             "link_delay": "500 ns", "links": hosts + ring},
                "network": network,
                "workload": {"kind": "traffic", "pattern": "pairs", "size": "4 MB",
                             "pairs": [[i, (i + 3) % switches] for i in range(switches)]}}, f"{one}.yaml")
            for ranks in (None, 3):
                done = weft("run", path, "-o", "out.h5", ranks=ranks, folder=self.folder, seconds=100)
                self.assertEqual(done.code, EXIT_INPUT, f"{others}\n{done}")
                self.assertIn("wait for each other's buffers for ever", done.err)

    def test_refusals(self):
        for network, text in [
                ({**PFC, "link_classes": {"nvlnk": {"flow_control": "credit"}}}, "gpu, nvlink, pcie, nic"),
                ({**PFC, "link_classes": {"nvlink": {"flow_control": "xon"}}}, "'xon'"),
                ({**PFC, "link_classes": {"nvlink": {"flow": "pfc"}}}, "flow"),
                ({**NETWORK, "link_classes": {"nic": {"flow_control": "pfc"}}}, "buffer.size")]:
            for command in ("run", "describe"):
                done = weft(command, self.write(self.experiment(network), "wrong.yaml"), folder=self.folder)
                self.assertEqual(done.code, EXIT_INPUT, done)
                self.assertRegex(done.err, r"wrong.yaml:\d+: ")
                self.assertIn(text, done.err)


if __name__ == "__main__":
    unittest.main()
