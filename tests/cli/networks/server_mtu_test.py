#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Larger packets between GPUs of one server: how messages are cut, their times by hand, what they change in a collective, and
equal results on any number of processes."""
# Time limit: 600 s

import pathlib
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from weft_testing import EXIT_INPUT, NETWORK, SOURCE, ProgramTest, table, two_at_a_time, weft

MTU, SERVER_MTU = 4096, 32768
HEADER = 62 + 20  # with preamble and gap
# Two servers of eight GPUs with an NVSwitch, whose links have frames of 128 B with 16 B, and four NICs.
SERVERS = {"kind": "star", "hosts": 8, "link_rate": "400 Gb/s", "link_delay": "500 ns",
           "server": {"gpus": 8, "inside": "nvswitch", "nvlink_rate": "450 GB/s", "nvlink_delay": "100 ns", "nics": 4,
                      "pcie_rate": "64 GB/s", "pcie_delay": "200 ns",
                      "nvlink_framing": {"payload": "128 B", "overhead": "16 B", "answer": "16 B"}}}
LARGE = {**NETWORK, "mtu": f"{MTU} B", "server_mtu": f"{SERVER_MTU} B"}
# Inside the server to GPU 0, and all of the other server to it through one NIC.
TO_GPU_0 = {"kind": "traffic", "pattern": "pairs", "size": "2 MB", "pairs": [[gpu, 0] for gpu in range(1, 16)]}


def on_wire(payload, per_frame):
    return payload + -(-payload // 128) * per_frame if per_frame else payload + HEADER


def arrival(size, mtu, links):
    """When the last packet arrives over `links` [(bit/s, ps, bytes beside each 128 B)], in ps: each packet is stored at each node, and begins on
    a link when it is there and the packet before has left."""
    packets = [mtu] * (size // mtu) + ([size % mtu] if size % mtu else [])
    ready = [0] * len(packets)
    for rate, delay, per_frame in links:
        free = 0
        for number, payload in enumerate(packets):
            free = max(ready[number], free) + -(-8 * on_wire(payload, per_frame) * 10**12 // rate)
            ready[number] = free + delay
    return ready[-1]


class ServerMtu(ProgramTest):
    def pairs(self, pairs, size, **network):
        return {"topology": SERVERS, "network": {**LARGE, **network},
                "workload": {"kind": "traffic", "pattern": "pairs", "size": f"{size} B", "pairs": pairs}}

    def test_messages_inside_a_server_have_larger_packets(self):
        """GPU, its port (all of its links together), NVSwitch, port, GPU; alone on the network, in packets and as a whole."""
        for size in (1, MTU + 1, SERVER_MTU, SERVER_MTU + 1, 1_000_000):
            summary, results = self.simulate(self.pairs([[0, 1], [8, 2]], size))
            messages, links = table(results, "messages"), table(results, "links")
            rate = dict(zip(links["link_class"], links["rate"].tolist()))
            gpu, nvlink = (rate["gpu"], 100_000, 0), (rate["nvlink"], 100_000, 16)
            packets = dict(zip(messages["source"].tolist(), messages["packets"].tolist()))
            self.assertEqual(packets, {0: -(-size // SERVER_MTU), 8: -(-size // MTU)}, size)
            here = messages["source"] == 0
            expected = arrival(size, SERVER_MTU, [gpu, nvlink, nvlink, gpu])
            self.assertEqual(messages["ideal"][here].tolist(), [expected], size)
            self.assertEqual(messages["delivered"][here].tolist(), [expected], size)
            # ACKs take the way back, which has nothing else.
            self.assertEqual(summary["packet_hops"], 2 * (4 * packets[0] + 6 * packets[8]))
            # The ideal network counts the answers of NVLink's frames with the data.
            with_answers = (rate["nvlink"], 100_000, 16 + 16)
            _, ideal = self.simulate(self.pairs([[0, 1]], size, fidelity="ideal"), output="ideal.h5")
            self.assertEqual(table(ideal, "messages")["delivered"].tolist(),
                             [arrival(size, SERVER_MTU, [gpu, with_answers, with_answers, gpu])], size)

    def test_links_inside_take_as_long(self):
        """Frames of NVLink are those of the data, however it is cut: its links are busy for as long, with data and with answers. On
        the links of NICs nothing changes."""
        busy = {}
        for mtu in (MTU, SERVER_MTU):
            text = self.pairs([[0, 1], [0, 8]], 100 * SERVER_MTU, server_mtu=f"{mtu} B")
            links = table(self.simulate(text)[1], "links")
            for name in ("nvlink", "nic"):
                busy[name, mtu] = sorted(links["busy"][links["link_class"] == name].tolist())
        self.assertEqual(busy["nic", MTU], busy["nic", SERVER_MTU])
        for small, large in zip(busy["nvlink", MTU], busy["nvlink", SERVER_MTU]):
            self.assertAlmostEqual(small, large, delta=100 * 8)  # packets end in whole picoseconds
        # 100 packets of 32 KiB have 256 frames each, whose answers of 16 B are a ninth of the data with overheads.
        answers, data = [time for time in busy["nvlink", SERVER_MTU] if time][::2]
        self.assertAlmostEqual(answers / data, 16 / 144, places=4)

    def test_a_collective_changes_little(self):
        """NCCL's all-reduce over two servers of eight H100: a third of the packet-hops, and one per cent of the time: a slice of
        NCCL is a few packets of 32 KiB, of which the last is stored at each node on its way."""
        summaries = [self.simulate(SOURCE / "workloads/two_servers_all_reduce.yaml", "--set", f"network.server_mtu={mtu} B",
                                   output=f"{mtu}.h5")[0] for mtu in (MTU, SERVER_MTU)]
        self.assertLess(summaries[1]["packet_hops"], summaries[0]["packet_hops"] / 4)
        self.assertAlmostEqual(summaries[1]["simulated_time_ps"] / summaries[0]["simulated_time_ps"], 1.01, delta=0.01)

    def test_collectives_are_as_near_to_what_was_measured(self):
        """NCCL's collectives on eight H100 of one server (validation/published/nvlink/measured.csv, whose head names the source): packets
        of 32 KiB are as far from the measured times in the mean as those of 4 KiB, within half a point."""
        text = (SOURCE / "validation/published/nvlink/measured.csv").read_text()
        rows = [line.split(",") for line in text.splitlines() if line.startswith("H100,")]
        measured = {(kind, int(size)): float(time) for _, kind, gpus, size, time in rows if gpus == "8"}
        job = self.write({"topology": {"kind": "server", "design": "hgx_h100"}, "network": {},
                          "workload": {"kind": "collective", "collective": "all_gather", "algorithm": "nccl", "size": "1 MiB"}})
        errors = {MTU: [], SERVER_MTU: []}
        for kind in ("all_gather", "all_reduce", "all_to_all"):
            for mtu, found in errors.items():
                out = self.run_weft("perf", kind, job, "-b", "16M", "-e", "256M", "-f", "4", "--set", f"network.server_mtu={mtu} B").out
                for size, time in re.findall(r"^ +(\d+) +\d+ +\w+ +\w+ +-1 +([0-9.]+) ", out, re.MULTILINE):
                    found.append(abs(float(time) / measured[kind, int(size)] - 1))
        self.assertEqual([len(found) for found in errors.values()], [9, 9])
        small, large = (sum(found) / len(found) for found in errors.values())
        self.assertLess(small, 0.08)
        self.assertLess(abs(large - small), 0.005, (small, large))

    def test_the_same_size_is_no_change(self):
        network = {**LARGE, "flow_control": "pfc", "buffer": {"size": "2 MB"}, "congestion_control": "dcqcn"}
        for extra in ({}, {name: network[name] for name in ("flow_control", "buffer", "congestion_control")}):
            text = {"topology": SERVERS, "network": {**LARGE, **extra, "server_mtu": f"{MTU} B"}, "workload": TO_GPU_0}
            given, _ = self.simulate(text)
            del text["network"]["server_mtu"]
            self.assertEqual(given["fingerprint"], self.simulate(text)[0]["fingerprint"])

    def test_identity(self):
        rdma = {"buffer": {"size": "2 MB"}, "congestion_control": "dcqcn"}
        for name, network, counted in (("plain", {}, None), ("pfc", {**rdma, "flow_control": "pfc"}, "pause_frames"),
                                       ("lossy", {**rdma, "flow_control": "none"}, "packets_marked"),
                                       ("ideal", {"fidelity": "ideal"}, None)):
            path = self.write({"topology": SERVERS, "network": {**LARGE, **network}, "workload": TO_GPU_0}, f"{name}.yaml")
            runs = [lambda path=path: self.simulate(path, output="one.h5")]
            if name != "ideal":
                runs.append(lambda path=path: self.simulate(path, "--engine", "ns3-default", output="reference.h5"))
            one, *reference = two_at_a_time(runs)
            self.assertTrue(one[0]["complete"])
            for other in reference:
                self.assertEqual(one[0]["fingerprint"], other[0]["fingerprint"], name)
            if counted:
                self.assertGreater(one[0]["congestion"][counted], 0)
                # Links inside have credits, with buffers that take the larger packets.
                rows, links = table(one[1], "link_classes"), table(one[1], "links")
                inside = [links["link_class"][links["id"].tolist().index(link)] != "nic" for link in rows["link"].tolist()]
                self.assertEqual(rows["dropped"][inside].sum(), 0)
            for ranks in (2, 3, 4, 8):
                other = self.simulate(path, output="other.h5", ranks=ranks)
                self.assertEqual(one[0]["fingerprint"], other[0]["fingerprint"], (name, ranks))
                self.assert_same_results(one[1], other[1])

    def test_describe_counts_them(self):
        text = self.pairs([[0, 1], [1, 9]], 1_000_000)
        summary, results = self.simulate(text)
        done = self.run_weft("describe", self.write(text))
        self.assertIn("4 KiB payload, 32 KiB inside servers", done.out)
        packets = sum(table(results, "messages")["packets"].tolist())
        self.assertRegex(done.out, rf"data packets +{packets:,}\n")
        self.assertRegex(done.out, rf"packet-hops +{summary['packet_hops']:,} ")

    def test_describe_advises_them(self):
        path = SOURCE / "workloads/large/llama31_70b.yaml"
        done = self.run_weft("describe", path, "--set", "network.fidelity=packet")
        self.assertRegex(done.out, r"instead +--set network.server_mtu='32 KiB': about 7\d\d s, with queues\n  or +--set network.fid")

    def test_refusals(self):
        for value, text in [("0 B", "from 1 B to 65535 B"), ("64 KiB", "from 1 B to 65535 B"), ("large", "'large'")]:
            done = weft("run", self.write(self.pairs([[0, 1]], 1, server_mtu=value), "wrong.yaml"), folder=self.folder)
            self.assertEqual(done.code, EXIT_INPUT, done)
            self.assertRegex(done.err, r"wrong.yaml:\d+: ")
            self.assertIn(text, done.err)


if __name__ == "__main__":
    unittest.main()
