#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Packets that overtake each other are no losses: with the defaults of each routing nothing is sent again on a network that
loses nothing, and a run with such repetitions reports them."""

# Time limit: 300 s

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from every_machine import CASES, DRAGONFLY, LINKS
from weft_testing import NETWORK, ProgramTest, table, two_at_a_time

# The 72 hosts of Kim et al. 2008, figure 5: 9 groups of 4 routers with 2 hosts and 2 global links each.
LARGER = {"kind": "dragonfly", "p": 2, "a": 4, "h": 2, **LINKS}
TRAFFIC = {"kind": "traffic", "pattern": "all_to_all", "size": "100 kB"}


class Reordering(ProgramTest):
    def summary(self, topology, routing, number=0, **network):
        path = self.write({
            "topology": topology, "network": {**NETWORK, **({"routing": routing} if routing else {}), **network},
            "workload": {**TRAFFIC, "size": "20 kB"} if topology is not LARGER else TRAFFIC,
        }, name=f"experiment{number}.yaml")  # fmt: skip
        return self.simulate(path, output=f"out{number}.h5")[0]

    def test_nothing_is_sent_again_without_a_loss(self):
        """By every routing and flow control. Credits and pauses need routings without cycles of waiting."""
        cycles = {None, "dimension_order", "shortest_path", "dragonfly_minimal", "dragonfly_plus_minimal", "static"}

        def check(number, topology, routing, control):
            room = {} if control == "credit" else {"buffer": {"size": "64 MiB"}}
            summary = self.summary(topology, routing, number, flow_control=control, **room)
            congestion = summary["congestion"]
            found = [summary["packets_dropped"], congestion["packets_repeated"], congestion["timeouts"]]
            self.assertEqual((found, summary["warnings"]), ([0, 0, 0], []), f"{topology['kind']}, {routing}, {control}")

        cases = [(topology, routing, control) for topology, routing in CASES for control in ("none", "pfc", "credit")
                 if control == "none" or routing not in cycles]  # fmt: skip
        two_at_a_time([lambda i=i, case=case: check(i, *case) for i, case in enumerate(cases)])

    def test_detours_do_not_cost_timeouts(self):
        """All-to-all is uniform: minimal routing is best (Kim et al. 2008, section 4.3), and UGAL close to it. The timer of
        a lossless network, 67 ms, is some six hundred times the whole exchange."""
        times = {}
        for control in ("none", "credit"):
            for routing in ("dragonfly_minimal_lanes", "dragonfly_ugal", "dragonfly_ugal_g", "dragonfly_progressive"):
                times[routing] = self.summary(LARGER, routing, flow_control=control)["simulated_time_ps"]
            for routing, time in times.items():
                self.assertLess(time, 1.25 * times["dragonfly_minimal_lanes"], (routing, control, times))

    def test_needless_repeats_are_told(self):
        for recovery, said in [
            ({"recovery": "go_back_n"}, "set network.recovery: selective_repeat"),
            ({"recovery": "selective_repeat", "selective_repeat": {"reordering": 1}},
             "set network.selective_repeat.reordering: 128"),
        ]:
            summary = self.summary(LARGER, "dragonfly_ugal", **recovery)
            repeated = summary["congestion"]["packets_repeated"]
            self.assertGreater(repeated, 0)
            self.assertEqual(len(summary["warnings"]), 1)
            self.assertIn(f"{repeated} packets were sent again though none was lost: packets of a connection overtook",
                          summary["warnings"][0])
            self.assertIn(said, summary["warnings"][0])
        # Visible to readers of the table only.
        text = self.run_weft("run", self.folder / "experiment0.yaml", "-o", "table.h5").out
        self.assertRegex(text, r"(?m)^  WARNING +\d+ packets were sent again though none was lost")

    def test_timeouts_shorter_than_waiting_are_told(self):
        """64 hosts send 1 MB to one: 1.3 ms at 400 Gb/s, in which most have no answer for longer than 10 us."""
        path = self.write({
            "topology": {"kind": "star", "hosts": 65, **LINKS},
            "network": {**NETWORK, "queues": "output", "recovery": "go_back_n", "go_back_n": {"timeout": "10 us"}},
            "workload": {"kind": "traffic", "pattern": "incast", "size": "1 MB"},
        })  # fmt: skip
        summary, _ = self.simulate(path)
        self.assertIn("acknowledgements took longer than the timeout of 10 us", summary["warnings"][0])

    def test_default_timers_repeat_nothing_where_nothing_is_lost(self):
        """64 hosts send 100 kB to one at 1 Gb/s, through a queue that has no end. Packets of a host follow each other after
        64 x 4,178 B, 2.1 ms, for which the default timers wait, and those of lossy networks, 320 us, do not."""
        experiment = {
            "topology": {"kind": "star", "hosts": 65, **LINKS, "link_rate": "1 Gb/s"},
            "network": {**NETWORK, "load_balancing": "spray", "window": "128 KiB"},
            "workload": {"kind": "traffic", "pattern": "incast", "size": "100 kB"},
        }  # fmt: skip
        summary, _ = self.simulate(self.write(experiment))
        self.assertEqual(summary["congestion"]["packets_repeated"], 0)
        self.assertEqual(summary["warnings"], [])
        wire = 64 * (10**5 + -(-(10**5) // 4096) * 82)  # bytes, 8 ns each; the first packet crosses two links
        self.assertAlmostEqual(summary["simulated_time_ps"] / (wire * 8000), 1, delta=0.01)
        experiment["network"]["selective_repeat"] = {"timeout": "320 us"}
        summary, _ = self.simulate(self.write(experiment))
        self.assertGreater(summary["congestion"]["packets_repeated"], 0)

    def test_short_timeouts_beside_losses_are_told(self):
        """The same on links that lose one packet in 10^4. A timeout longer than all waits has no needless repetition."""
        for timeout, told in (("10 us", True), ("5 ms", False)):
            path = self.write({
                "topology": {"kind": "star", "hosts": 65, **LINKS},
                "network": {**NETWORK, "queues": "output", "recovery": "selective_repeat",
                            "selective_repeat": {"timeout": timeout, "timeout_low": timeout},
                            "loss": [{"link": "all", "probability": 1e-4}]},
                "workload": {"kind": "traffic", "pattern": "incast", "size": "1 MB"},
            })  # fmt: skip
            summary, results = self.simulate(path)
            self.assertGreater(summary["congestion"]["packets_lost"], 0)
            again = summary["congestion"]["packets_repeated"]
            twice = int(table(results, "receivers")["duplicates"].sum())
            said = (f"{twice} of {again} packets that were sent again had arrived before: acknowledgements took longer than "
                    f"the timeout of {timeout}; set a longer network.selective_repeat.timeout")  # fmt: skip
            self.assertEqual([warning.startswith(said) for warning in summary["warnings"]], [True] if told else [])

    def test_rings_that_wait_for_themselves_are_told(self):
        """Tornado: each host of a ring of 8 sends to the third one further, over links of which each then has three flows.
        Buffers for all that windows let out, 8 of 256 KiB, do not hold anything up."""
        for buffer, told in (({}, True), ({"credit": {"buffer": "2 MiB"}}, False)):
            path = self.write({
                "topology": {"kind": "torus", "dims": [8], **LINKS},
                "network": {**NETWORK, "routing": "dimension_order_lanes", "flow_control": "credit", **buffer},
                "workload": {"kind": "traffic", "pattern": "permutation", "shift": 3, "size": "1 MB"},
            })  # fmt: skip
            summary, results = self.simulate(path)
            stopped = table(results, "link_classes")["paused"].max()
            busy = table(results, "links")["busy"].max()
            self.assertEqual(stopped > busy, told)
            self.assertEqual(["a link of the torus was stopped" in warning for warning in summary["warnings"]],
                             [True] if told else [])  # fmt: skip

    def test_what_is_lost_is_no_reason_to_warn(self):
        summary = self.summary(DRAGONFLY, "dragonfly_ugal", loss=[{"link": "all", "probability": 0.01}])
        self.assertGreater(summary["congestion"]["packets_repeated"], 0)
        self.assertEqual(summary["warnings"], [])


if __name__ == "__main__":
    unittest.main()
