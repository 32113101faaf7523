#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""The time of NCCL's messages between servers beside links and switches, by hand from collectives/transports/verbs.yaml."""

import functools
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


def copies(size):
    """What copying takes more at a channel's rate between servers than with the ten warps of a send and the nine of its receive, in ps."""
    warp = rate(KERNEL["warp_rate"])
    return round(1e12 * size * (2 / rate(TRANSPORT["pair_rate"]) - 1 / (10 * warp) - 1 / (9 * warp)))


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
            expected = picoseconds("turn") + picoseconds(protocol) - self.message(protocol)
            if protocol == "simple":
                expected += copies(16)
            self.assertAlmostEqual(self.more(protocol=protocol), expected, delta=2, msg=protocol)

    def test_rate_of_a_channel(self):
        # One channel, Simple: what 16 MiB take more than 8 are 8 MiB at NCCL's rate for it, and a step for each chunk.
        for number, level in enumerate(LEVELS):
            eight, sixteen = (self.time(servers(kernel_constants=level, protocol="simple", size=size)) for size in ("8 MiB", "16 MiB"))
            step = float(KERNEL["simple"]["step"][number].removesuffix(" us")) * 1e6
            expected = (8 << 20) / rate(TRANSPORT["pair_rate"], number) * 1e12 + 64 * step  # chunks of 128 KiB
            self.assertAlmostEqual((sixteen - eight) / expected, 1, delta=0.005, msg=level)

    def test_flush_and_staging(self):
        plain = picoseconds("turn") + picoseconds("simple") - self.message("simple")
        self.assertAlmostEqual(self.more({"architecture": "ampere"}, protocol="simple"), plain + picoseconds("flush") + copies(16), delta=2)
        # Through the host: 16 B at its rate twice, once at each end, instead of at that of NVLink and of a thread block.
        slow = self.more({"gpudirect": False}, protocol="simple")
        self.assertAlmostEqual(slow, plain + picoseconds("staging"), delta=2 * 16 / 18.7e9 * 1e12)
        # LL is in the host's memory anyway.
        self.assertEqual(self.more({"gpudirect": False}), self.more())

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
