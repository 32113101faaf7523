#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""The time of NCCL's messages between servers beside links and switches, by hand from collectives/transports/verbs.yaml."""

import functools
import json
import pathlib
import sys
import unittest

import yaml

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from weft_testing import EXIT_INPUT, NETWORK, SOURCE, STAR, ProgramTest, two_at_a_time, weft

LEVELS = ("low", "mid", "high")
KERNEL = yaml.safe_load((SOURCE / "collectives/kernels/h100.yaml").read_text())
TRANSPORT = yaml.safe_load((SOURCE / "collectives/transports/verbs.yaml").read_text())


def picoseconds(key, level=1):
    value = TRANSPORT[key]
    text = value[level] if isinstance(value, list) else value
    return round(float(text.removesuffix(" us")) * 1e6)


def rate(value, level=1):
    return float(value[level].removesuffix(" GB/s")) * 1e9


def send(host_read=None, level=1):
    """The way of a send with Simple, in ps: that of LL128, whose receiver polls the memory of its GPU; before the copy and after it
    three reads of the host's memory (NCCL src/device/prims_simple.h, waitPeer: the counter, the slot's mode, its offset); and two
    passes of the receiver's proxy (src/transport/net.cc, recvProxyProgress: the message has come, the counter goes up)."""
    return picoseconds("ll128", level) + 2 * 3 * (host_read or picoseconds("host_read", level)) + 2 * picoseconds("turn", level)


def servers(design=None, **more):
    """Two servers of two GPUs, of which one of each takes part."""
    return {
        "topology": {**STAR, "hosts": 4, "server": {
            "gpus": 2, "inside": "nvswitch", "nvlink_rate": "450 GB/s", "nvlink_delay": "100 ns", "nics": 2,
            "pcie_rate": "504 Gb/s", "pcie_delay": "200 ns", "collective_transport": "verbs", **(design or {})}},
        "network": NETWORK,
        "workload": {"kind": "collective", "collective": "send_recv", "algorithm": "nccl_p2p", "channels": 1, "ranks": 2,
                     "size": "16 B", "protocol": "ll", "collective_kernel": "h100",
                     "placement": {"hosts": [0, 2]}, **more},
        "simulation": {"seed": 1},
    }  # fmt: skip


class CollectiveTransport(ProgramTest):
    def time(self, text):
        summary, _ = self.simulate(text, output=f"{len(list(self.folder.iterdir()))}.h5")
        return summary["collectives"][0]["time_ps"]

    def more(self, design=None, level=None, **workload):
        """Time by the transport: all that it takes, against the message latency of the thread block."""
        levels = {"kernel_constants": level} if level else {}
        without = self.time(servers(design, collective_transport="none", **levels, **workload))
        return self.time(servers(design, **levels, **workload)) - without

    def message(self, protocol, level="mid"):
        kernel = yaml.safe_load((SOURCE / "collectives/kernels/h100.yaml").read_text())
        return round(float(kernel[protocol]["message"][LEVELS.index(level)].removesuffix(" us")) * 1e6)

    def test_a_message_of_each_protocol(self):
        # One message, both ways at once: a turn of the sender's proxy and the latency, in place of that inside a server.
        for protocol in ("ll", "ll128", "simple"):
            latency = send() if protocol == "simple" else picoseconds(protocol)
            expected = picoseconds("turn") + latency - self.message(protocol)
            self.assertAlmostEqual(self.more(protocol=protocol), expected, delta=2, msg=protocol)

    def test_passes_of_the_receivers_proxy(self):
        # A look at a message takes no post. EFA's file has its own time of it (collectives/transports/efa.yaml): by hand, with the middle values,
        # a turn of 5.3 us, and then 23.5 + 6 x 1.32 + 2 x 0.3 = 32.02 us.
        efa = yaml.safe_load((SOURCE / "collectives/transports/efa.yaml").read_text())
        turn, way, read, look = (float(efa[key][1].removesuffix(" us")) for key in ("turn", "ll128", "host_read", "pass"))
        self.assertAlmostEqual(way + 6 * read + 2 * look, 32.02)
        expected = round((turn + 32.02) * 1e6) - self.message("simple")
        self.assertAlmostEqual(self.more({"collective_transport": "efa"}, protocol="simple"), expected, delta=2)

    def test_reads_of_the_hosts_memory(self):
        # By hand with the middle values: 5.7 + 6 x 1.32 + 2 x 0.3 = 14.22 us, where a GPU reads over PCIe.
        self.assertEqual(send(), 14_220_000)
        # Over NVLink-C2C a read takes 586 ns: 6 x 0.586 = 3.516 us instead of 7.92.
        by_pcie, by_c2c = (self.more(design, protocol="simple") for design in ({}, {"host_read": "586 ns"}))
        self.assertEqual(by_pcie - by_c2c, send() - send(586_000))
        self.assertEqual(by_pcie - by_c2c, 6 * (1_320_000 - 586_000))
        # LL and LL128 read none.
        for other in ({"protocol": "ll"}, {"protocol": "ll128"}):
            self.assertEqual(self.more(**other), self.more({"host_read": "586 ns"}, **other), other)
        # Each level of the constants has its own.
        for level, name in enumerate(LEVELS):
            kernel = self.time(servers({"host_read": "1 us"}, kernel_constants=name, protocol="simple"))
            more = self.time(servers(kernel_constants=name, protocol="simple")) - kernel
            self.assertEqual(more, 6 * (picoseconds("host_read", level) - 1_000_000), name)

    def test_reads_of_rings(self):
        # A ring's messages have buffers of their own (NCCL src/transport/net.cc, NCCL_MODE_NORMAL): nobody says where a chunk is, and the
        # sender has its credits. An all-gather of two ranks is one message of own data each way: the mode of the sender's slot, and at
        # the receiver the counter and the mode, between two turns of the proxy: 5.7 + 3 x 1.32 + 2 x 0.3 = 10.26 us.
        gather = {"protocol": "simple", "collective": "all_gather", "algorithm": "ring"}
        message = picoseconds("ll128") + 3 * picoseconds("host_read") + 2 * picoseconds("turn")
        self.assertEqual(message, 10_260_000)
        self.assertAlmostEqual(self.more(**gather), picoseconds("turn") + message - self.message("simple"), delta=2)
        self.assertEqual(self.more(**gather) - self.more({"host_read": "586 ns"}, **gather), 3 * (1_320_000 - 586_000))
        # A broadcast of GPU 0 reaches the other server's GPUs by GPU 1, which reads its slot's mode while it waits for GPU 0.
        chain = {**gather, "collective": "broadcast", "ranks": 4, "placement": "packed"}
        self.assertEqual(self.more(**chain) - self.more({"host_read": "586 ns"}, **chain), 2 * (1_320_000 - 586_000))

    def test_wrong_time_of_a_read(self):
        wrong = weft("run", self.write(servers({"host_read": "586"})), folder=self.folder)
        self.assertEqual(wrong.code, EXIT_INPUT, wrong)
        self.assertRegex(wrong.err, r":\d+.*host_read")

    def test_rate_of_a_channel(self):
        # One channel, Simple: 16 MiB have 64 chunks of 128 KiB more than 8. The receiver is slower: nine warps copy there, ten at the
        # sender. Each chunk takes a step, and the two reads that say where it is. With the middle values 13.9 GB/s; NCCL counts 14
        # (src/graph/paths.cc, NCCL_P2P_PER_CHANNEL_NET_BW), and two H100 over RoCE reach 13.1 (NVIDIA/nccl issues 2408, 2409).
        for number, level in enumerate(LEVELS):
            eight, sixteen = (self.time(servers(kernel_constants=level, protocol="simple", size=size)) for size in ("8 MiB", "16 MiB"))
            step = float(KERNEL["simple"]["step"][number].removesuffix(" us")) * 1e6
            copied = (128 << 10) / (9 * rate(KERNEL["warp_rate"], number)) * 1e12
            expected = 64 * (copied + step + 2 * picoseconds("host_read", number))
            self.assertAlmostEqual((sixteen - eight) / expected, 1, delta=0.005, msg=level)

    def test_flush_and_staging(self):
        plain = picoseconds("turn") + send() - self.message("simple")
        self.assertAlmostEqual(self.more({"architecture": "ampere"}, protocol="simple"), plain + picoseconds("flush"), delta=2)
        # Through the host: 16 B at its rate, once at each end, instead of at that of NVLink and of a thread block. Below one PCIe switch, twice.
        for behind, times in ((True, 1), (False, 2)):
            slow = self.more({"gpudirect": False, "nics_behind_cpu": behind}, protocol="simple")
            self.assertAlmostEqual(slow, plain + picoseconds("staging"), delta=2 * times * 16 / 18.7e9 * 1e12)
        # NCCL flushes after messages of Simple alone (src/transport/net.cc, recvProxyProgress).
        self.assertEqual(self.more({"architecture": "ampere"}, protocol="ll128"), self.more(protocol="ll128"))
        # LL is in the host's memory anyway.
        self.assertEqual(self.more({"gpudirect": False}), self.more())

    def test_channels_over_the_host(self):
        # A message of one part has the host's rate alone, however many channels there are.
        small = {"protocol": "simple", "size": "16 KiB"}
        self.assertEqual(self.more({"gpudirect": False}, channels=2, **small), self.more({"gpudirect": False}, **small))
        # Two servers of four GPUs and two NICs: four rings, of which two enter each server at one GPU, two at another, so that both NICs
        # have the host's rate: half of it for a ring's slices, each with a step and the read of its slot's mode. Below one PCIe switch with
        # the GPU the link to the host has the data twice in each direction. A ring of an all-gather passes 7/8 of its quarter of the bytes.
        rings = {"collective": "all_gather", "algorithm": "ring", "protocol": "simple", "ranks": 8, "placement": "packed", "channels": 4}
        for behind, times_over_link in ((True, 1), (False, 2)):
            design = {"gpus": 4, "gpudirect": False, "nics_behind_cpu": behind, "architecture": "ampere"}
            topology = servers(design)["topology"]
            times = [self.time({**servers(design, **rings, size=f"{size} MiB"), "topology": {**topology, "hosts": 4}}) for size in (128, 256)]
            slices = 128 / 4 * 7 / 8  # of 1 MiB
            copied = (1 << 20) / (18.7e9 / 2 / times_over_link) * 1e12
            each = copied + float(KERNEL["simple"]["step"][1].removesuffix(" us")) * 1e6 + picoseconds("host_read")
            self.assertAlmostEqual((times[1] - times[0]) / (slices * each), 1, delta=0.02)

    def test_no_ll128_without_gpudirect(self):
        # NCCL diverts the path through the CPU (src/graph/paths.cc), which is too far away for LL128 (src/graph/tuning.cc).
        two = {"network": NETWORK, "workload": {"kind": "collective", "collective": "all_reduce", "algorithm": "nccl", "size": "4 MiB"}}
        for direct in (True, False):
            server = {"design": "dgx_a100", "gpudirect": direct}
            path = self.write({**two, "topology": {**STAR, "hosts": 16, "server": server}})
            rows = json.loads(self.run_weft("perf", "all_reduce", path, "-b", "4M", "-e", "4M", "--json").out)["rows"]
            self.assertEqual(rows[0]["protocol"] == "ll128", direct, rows)

    def test_constants_as_ranges(self):
        low, mid, high = (self.more(level=level) for level in LEVELS)
        self.assertEqual(mid, self.more())
        for level, found in enumerate((low, mid, high)):
            taken = picoseconds("turn", level) + picoseconds("ll", level) - self.message("ll", LEVELS[level])
            self.assertEqual(found, taken)
        self.assertLess(low, mid)
        self.assertLess(mid, high)

    def test_messages_take_turns(self):
        # A GPU sends to three others at once: the last one's message waits for the turns of those before.
        four = servers(collective="scatter", ranks=4, channels=4, placement="packed")
        four["topology"]["server"] = {"gpus": 1, "inside": "none", "nics": 1, "pcie_rate": "504 Gb/s", "pcie_delay": "200 ns",
                                      "collective_transport": "verbs"}
        apart = {**four, "workload": {**four["workload"], "collective_transport": "none"}}
        taken = self.time(four) - self.time(apart)
        turns = taken - (picoseconds("ll") - self.message("ll"))
        self.assertGreaterEqual(turns, 2 * picoseconds("turn"))
        self.assertLessEqual(turns, 3 * picoseconds("turn"))

    def test_unknown(self):
        wrong = weft("run", self.write(servers(collective_transport="verb")), folder=self.folder)
        self.assertEqual(wrong.code, EXIT_INPUT, wrong)
        self.assertIn("unknown collective_transport 'verb' (did you mean 'verbs'?)", wrong.err)

    def test_the_same_on_any_number_of_processes(self):
        text = servers({"gpus": 4, "nics": 4}, algorithm="nccl", collective="all_reduce", size="300 kB", ranks=16,
                       channels=4, placement="packed")
        text["topology"]["hosts"] = 16
        text["workload"].pop("protocol")
        runs = [functools.partial(self.simulate, text, output=f"{ranks}.h5", ranks=ranks) for ranks in (1, 2, 3, 4, 8)]
        one, *others = two_at_a_time(runs)
        for summary, results in others:
            self.assertEqual(one[0]["fingerprint"], summary["fingerprint"])
            self.assert_same_results(one[1], results, [], f"{summary['mpi_ranks']} ranks")


if __name__ == "__main__":
    unittest.main()
