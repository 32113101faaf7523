#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""What thread blocks take of a collective's time, by hand from collectives/kernels/h100.yaml."""

import pathlib
import sys
import unittest

import yaml

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from weft_testing import EXIT_INPUT, NETWORK, SOURCE, ProgramTest, table, weft

KERNEL = yaml.safe_load((SOURCE / "collectives/kernels/h100.yaml").read_text())


def microseconds(text):
    return round(float(text.removesuffix(" us")) * 1e6)  # ps


def server(kernel=None, **more):
    return {
        "topology": {"kind": "server", "design": "hgx_h100"},
        "network": NETWORK,
        "workload": {"kind": "collective", "collective": "all_gather", "algorithm": "nccl", "ranks": 2, "size": "16 B",
                     **({"collective_kernel": kernel} if kernel else {}), **more},
        "simulation": {"seed": 1},
    }  # fmt: skip


class CollectiveKernel(ProgramTest):
    def time(self, text):
        summary, results = self.simulate(text, output=f"{len(list(self.folder.iterdir()))}.h5")
        return summary["collectives"][0]["time_ps"], results

    def test_smallest_all_gather(self):
        # One channel, LL: launch; the line is written in a trip, is on its way after the message's latency, and is read
        # in another trip. Copying the own block costs nothing beside sending it.
        alone, _ = self.time(server("none"))
        ll = KERNEL["ll"]
        expected = microseconds(KERNEL["launch"]) + 2 * microseconds(ll["trip"]) + microseconds(ll["message"])
        self.assertEqual(self.time(server("h100"))[0], alone + expected)
        # NCCL's choice on this server has it by itself; whoever names an algorithm says so.
        self.assertEqual(self.time(server())[0], alone + expected)
        named = {"algorithm": "ring", "channels": 1, "protocol": "ll"}
        self.assertEqual(self.time(server(**named))[0], alone)
        self.assertEqual(self.time(server("h100", **named))[0], alone + expected)

    def test_large_messages(self):
        # Simple, all channels alike: launch, second channel, large buffers; the first slice goes at a channel's share of the
        # link and arrives later by its latency; the last one is stored at the thread block's own rate.
        _, fast = self.time(server("none", size="64 MiB"))
        _, slow = self.time(server("h100", size="64 MiB"))
        messages = [table(results, "messages") for results in (fast, slow)]
        first = [int(of["issued"].min()) for of in messages]
        slice_bytes = int(messages[1]["bytes"][messages[1]["issued"].argmin()])
        channels = 24  # twelve rings of 30 GB/s that the search finds in the server, each twice
        share = int(float(KERNEL["link_rate"].split()[0]) * 8e9) // channels  # b/s
        handled = -(-slice_bytes * 8 * 10**12 // share)
        expected = sum(microseconds(KERNEL[key]) for key in ("launch", "second_channel", "large_buffers"))
        expected += microseconds(KERNEL["simple"]["step"]) + handled + microseconds(KERNEL["simple"]["message"])
        self.assertAlmostEqual(first[1] - first[0], expected, delta=2)

    def test_all_to_all(self):
        # 8 MiB to the other GPU in 16 parts of one chunk, each on a channel of its own. Of a thread block's 20 warps ten send
        # and nine receive (NCCL src/device/sendrecv.h): a sender's take what they need more than a sixteenth of the link does;
        # then the message is on its way; then the receiver's warps store it.
        exchange = {"collective": "all_to_all", "size": "16 MiB"}
        alone, _ = self.time(server("none", **exchange))
        warp, link = (float(KERNEL[key].split()[0]) * 1e9 for key in ("warp_rate", "link_rate"))
        chunk = 512 << 10
        expected = sum(microseconds(KERNEL[key]) for key in ("launch", "second_channel", "pair_buffers"))
        expected += 2 * microseconds(KERNEL["simple"]["step"]) + microseconds(KERNEL["simple"]["message"])
        expected += 1e12 * chunk * (max(0, 1 / (10 * warp) - 16 / link) + 1 / (9 * warp))
        self.assertAlmostEqual(self.time(server("h100", **exchange))[0] - alone, expected, delta=1e6)

    def test_unknown(self):
        wrong = weft("run", self.write(server("h10")), folder=self.folder)
        self.assertEqual(wrong.code, EXIT_INPUT, wrong)
        self.assertIn("unknown collective_kernel 'h10'", wrong.err)
        self.assertIn("h100", wrong.err)


if __name__ == "__main__":
    unittest.main()
