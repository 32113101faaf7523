#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""A server's key collective_tuner: who chooses algorithm, protocol and chunks of collectives."""

import pathlib
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from weft_testing import EXIT_INPUT, NETWORK, ProgramTest, weft

PLUGIN = "the plugin's table of sizes and ranks has it"
MODEL = "NCCL's model gives it"


def cluster(servers, **design):
    """Servers of eight GPUs on leaf switches by rail."""
    return {
        "topology": {"kind": "leaf_spine", "leaves": 8, "hosts_per_leaf": servers, "spines": 2, "link_rate": "400 Gb/s", "link_delay": "100 ns",
                     "server": {"design": "aws_p5", "wiring": "rail", **design}},
        "network": NETWORK,
        "workload": {"kind": "collective", "collective": "all_reduce", "algorithm": "nccl", "size": "1 MiB"},
        "simulation": {"seed": 1},
    }  # fmt: skip


class CollectiveTuner(ProgramTest):
    def choice(self, text, size, *more, kind="all_reduce"):
        """Algorithm, channels and protocol, and why."""
        done = weft("collective", "nccl", "--kind", kind, "--on", self.write(text), "--size", size, "--cost", *more, folder=self.folder)
        self.assertEqual(done.code, 0, done)
        first, reason = done.out.splitlines()[:2]
        return first.split(": ")[0].split(" by ")[1] + " " + first.rsplit(" ", 1)[1], reason.removeprefix("chosen because ")

    def test_regions_of_a_plugin(self):
        # Four servers (aws/aws-ofi-nccl 228fa0e, src/tuner/nccl_ofi_regions.cpp, P5: vertices at 32 ranks): trees of LL128 up to 36 MiB, then rings
        # of LL128; from 1.5 GiB on rings of Simple. Between 1.392 and 1.5 GiB there is no region.
        four = cluster(4)
        for size, expected in (("8 B", "double_binary_tree ll128"), ("36MiB", "double_binary_tree ll128"), ("37MiB", "ring ll128"),
                               ("1GiB", "ring ll128"), ("1536MiB", "ring simple")):  # fmt: skip
            self.assertEqual(self.choice(four, size.replace(" ", "")), (expected, PLUGIN), size)
        self.assertIn(MODEL, self.choice(four, "1433MiB")[1])
        # On two servers NCCL's model chooses (region_get_coll_info_internal_v3), with the 75 us that the plugin tells of its NICs: 8 B by trees of
        # LL take 6.8 + 2 (7 x 0.6 + 5 + 75) = 175.2 us (NCCL src/graph/tuning.cc).
        protocol, reason = self.choice(cluster(2), "8B")
        self.assertEqual(protocol, "double_binary_tree ll")
        self.assertIn(MODEL + " 175.20 us", reason)

    def test_chunks_of_the_plugins_buffers(self):
        # NCCL_BUFFSIZE 8 MiB has eight steps of 1 MiB, and a tree's chunk of Simple is a step (NCCL src/enqueue.cc, calcCollChunking): 1 GiB on 16
        # channels, up and down the 15 links of a tree of 16 GPUs, 16 x 2 x 15 x 64 messages. NCCL's own buffers are half as large.
        for tuner, messages in ("ofi_p5", 30720), ("none", 61440):
            done = weft("collective", "nccl_tree", "--kind", "all_reduce", "--on", self.write(cluster(2, collective_tuner=tuner)), "--size", "1GiB",
                        "--check", folder=self.folder)  # fmt: skip
            self.assertEqual(done.code, 0, done)
            self.assertIn(f"in {messages} messages;", done.out, tuner)

    def messages(self, text, size, *more):
        done = weft("collective", *more, "--on", self.write(text), "--size", size, "--check", folder=self.folder)
        self.assertEqual(done.code, 0, done)
        return int(re.search(r"in (\d+) messages;", done.out)[1])

    def test_chunks_of_sends(self):
        # Two servers, 64 MiB for each of 16 GPUs: 4 MiB to each peer in at least 2 parts, chunks of NCCL_P2P_NET_CHUNKSIZE 512 KiB, 8 messages each;
        # of NCCL's 128 KiB 32 (src/enqueue.cc, addP2pToPlan).
        for tuner, of_a_pair in (("ofi_p5", 8), ("none", 32)):
            text = cluster(2, collective_tuner=tuner)
            self.assertEqual(self.messages(text, "64MiB", "nccl_p2p", "--kind", "all_to_all"), 16 * 15 * of_a_pair, tuner)

    def pair(self, algorithm, kind, size, **keys):
        """Messages of a collective of two hosts."""
        text = {"topology": {"kind": "star", "hosts": 2, "link_rate": "400 Gb/s", "link_delay": "100 ns"}, "network": NETWORK,
                "workload": {"kind": "collective", "collective": kind, "algorithm": algorithm, "size": size, **keys},
                "simulation": {"seed": 1}}  # fmt: skip
        return self.simulate(self.write(text))[0]["messages"]

    def test_buffers_of_keys(self):
        # NCCL src/enqueue.cc (calcCollChunking): a ring's chunk is half of the buffer, in two slices. Of two ranks each sends two chunks in a loop of
        # two: 8 MiB in loops of 1 MiB, 8 x 2 x 2 messages of each; with NCCL's 4 MiB 2 x 2 x 2. A tree's chunk is an eighth, 64 up and 64 down.
        self.assertEqual(self.pair("ring", "all_reduce", "8 MiB", buffer_size="1 MiB"), 64)
        self.assertEqual(self.pair("ring", "all_reduce", "8 MiB"), 16)
        self.assertEqual(self.pair("double_binary_tree", "all_reduce", "8 MiB", buffer_size="1 MiB"), 128)
        # Of two ranks on servers of their own (addP2pToPlan), each sending to the other: whole chunks of 64 KiB from 512 KiB on, half from 64 KiB on.
        for size, messages in (("8 MiB", 256), ("256 KiB", 16), ("32 KiB", 4)):
            self.assertEqual(self.pair("nccl_p2p", "send_recv", size, p2p_chunk_size="64 KiB"), messages, size)

    def test_buffers_that_are_none(self):
        for key in ("buffer_size", "p2p_chunk_size"):
            text = cluster(2)
            text["workload"][key] = "100 B"
            wrong = weft("describe", self.write(text), folder=self.folder)
            self.assertEqual(wrong.code, EXIT_INPUT, wrong)
            self.assertRegex(wrong.err, r":\d+.*found 100 B; expected at least 128 B")

    def test_where_no_region_is(self):
        # The plugin knows no gathers of eight GPUs of each server, nor anything of four.
        self.assertIn(MODEL, self.choice(cluster(4), "1MiB", kind="all_gather")[1])
        self.assertIn(MODEL, self.choice(cluster(4, collective_tuner="none"), "1MiB")[1])
        # Four GPUs of each of three servers: NCCL's model has LL for 8 B, the plugin LL128 for two GPUs and for eight.
        four, two = ([8 * server + gpu for server in range(3) for gpu in range(gpus)] for gpus in (4, 2))
        for workload, expected in (({"ranks": 12, "placement": {"hosts": four}}, " ll "), ({"ranks": 6, "placement": {"hosts": two}}, " ll128 "),
                                   ({"ranks": 24}, " ll128 ")):  # fmt: skip
            text = cluster(4)
            text["workload"] |= workload
            perf = weft("perf", "all_reduce", "-b", "8", "-e", "8", self.write(text), folder=self.folder)
            self.assertEqual(perf.code, 0, perf)
            self.assertIn(expected, perf.out)

    def test_regions_are_for_any_rings(self):
        self.assertEqual(self.choice(cluster(4, design="hgx_h100", collective_tuner="ofi_p5"), "1MiB")[1], PLUGIN)
        wrong = weft("describe", self.write(cluster(4, design="hgx_h100", collective_tuner="rccl_mi300x")), folder=self.folder)
        self.assertEqual(wrong.code, EXIT_INPUT, wrong)
        self.assertRegex(wrong.err, r":\d+.*numbers for rings of a table; expected `rings`")
        unknown = weft("describe", self.write(cluster(4, collective_tuner="ofi_p6")), folder=self.folder)
        self.assertEqual(unknown.code, EXIT_INPUT, unknown)
        self.assertIn("ofi_p5", unknown.err)


if __name__ == "__main__":
    unittest.main()
