#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# Runs in: quick
"""Compute, hidden and exposed communication, waiting for peers, idle: each word means the same in `weft workload` and
in `weft run`. The programs are small enough to be timed by hand: one packet per message on a star of two links."""

import json
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from weft_testing import NETWORK, STAR, ProgramTest, picoseconds_to_send, table

US = 1_000_000  # ps
# 4000 B in one packet with 62 B of headers and 20 B of wire overhead, over two links of 500 ns.
PACKET = picoseconds_to_send(4000 + 62 + 20, 400 * 10**9)
MESSAGE = 2 * (PACKET + 500_000)


def program(operations, ranks=2, **more):
    return {"topology": {**STAR, "hosts": ranks}, "network": {**NETWORK, "ack": "none"},
            "workload": {"kind": "program", "ranks": ranks, "operations": operations}, **more}


# Rank 1 comes 20 us late to an all-reduce of two blocks of 4000 B, of which rank 0 hides 12 us.
LATE = [
    {"rank": 0, "id": "a", "compute": "10 us"},
    {"rank": 1, "id": "a", "compute": "30 us"},
    {"id": "sum", "collective": "all_reduce", "size": "8 kB", "after": "a"},
    {"rank": 0, "id": "h", "compute": "12 us", "after": "a"},
    {"rank": 0, "compute": "5 us", "after": ["sum", "h"]},
    {"rank": 1, "compute": "2 us", "after": "sum"},
]
# Rank 0 has sent its block long before. Rank 1 sums up at once and sends both blocks one behind the other; rank 0 sums
# up the first and sends it back.
END_OF_0 = 30 * US + MESSAGE + PACKET
END_OF_1 = 30 * US + 2 * MESSAGE
END = END_OF_0 + 5 * US
SHARES_OF_LATE = [
    {"compute": 27 * US, "hidden": 12 * US, "exposed": END_OF_0 - 30 * US, "waiting": 8 * US, "idle": 0},
    {"compute": 32 * US, "hidden": 0, "exposed": END_OF_1 - 30 * US, "waiting": 0, "idle": END - END_OF_1 - 2 * US},
]

# Rank 1 posts a recv at 0 for what rank 0 sends at 10 us; rank 0 then has nothing to do.
MESSAGE_LATE = [
    {"rank": 0, "id": "a", "compute": "10 us"},
    {"rank": 0, "send": "4000 B", "to": 1, "after": "a"},
    {"rank": 1, "id": "b", "recv": "4000 B", "from": 0},
    {"rank": 1, "compute": "3 us", "after": "b"},
]
SHARES_OF_MESSAGE_LATE = [
    {"compute": 10 * US, "hidden": 0, "exposed": PACKET, "waiting": 0, "idle": MESSAGE - PACKET + 3 * US},
    {"compute": 3 * US, "hidden": 0, "exposed": MESSAGE, "waiting": 10 * US, "idle": 0},
]

# Two collectives at a time on two communicators: rank 0 waits in the one, while the other is transferred.
TWO_AT_A_TIME = [
    {"rank": 0, "id": "late", "compute": "0 us"},
    {"rank": 1, "id": "late", "compute": "20 us"},
    {"rank": 0, "id": "wait", "compute": "0 us"},
    {"rank": 2, "id": "wait", "compute": "5 us"},
    {"collective": "all_reduce", "size": "8 kB", "communicator": "ab", "after": "late"},
    {"collective": "all_reduce", "size": "8 kB", "communicator": "ac", "after": "wait", "stream": "tensor"},
]

NAMES = {"compute": "busy_seconds", "hidden": "hidden_communication_seconds",
         "exposed": "exposed_communication_seconds", "waiting": "waiting_seconds", "idle": "idle_seconds"}


class Times(ProgramTest):
    def ideal(self, experiment):
        """{word: ps} of each rank by `weft workload`, and its report."""
        report = json.loads(self.run_weft("workload", self.write(experiment), "--json").out)
        return [{word: round(one[name] * 1e12) for word, name in NAMES.items()} for one in report["of_ranks"]], report

    def check(self, operations, expected):
        """Both reports have the expected content, on one process and on two."""
        experiment = program(operations, len(expected))
        shares, report = self.ideal(experiment)
        self.assertEqual(shares, expected)
        step = sum(expected[0].values()) - expected[0]["hidden"]
        for name, words in [("exposed_communication_fraction", ["exposed"]), ("waiting_fraction", ["waiting"]),
                            ("idle_fraction", ["idle"]), ("bubble_fraction", ["waiting", "idle"])]:
            mean = sum(one[word] for one in expected for word in words) / len(expected) / step
            self.assertAlmostEqual(report[name], mean, delta=1e-12)
        for processes in [None, 2]:
            summary, _ = self.simulate(experiment, ranks=processes)
            job = summary["jobs"][0]
            self.assertEqual(job["time_ps"], step)
            for word in expected[0]:
                mean = sum(one[word] for one in expected) / len(expected)
                self.assertAlmostEqual(job[f"{word}_ps"], mean, delta=4, msg=word)  # means are whole ps
            self.assertEqual(job["step_time_ps"], step)
        return summary

    def test_a_late_rank(self):
        summary = self.check(LATE, SHARES_OF_LATE)
        call = summary["collectives"][0]
        self.assertEqual(call["time_ps"], END_OF_1 - 10 * US)
        self.assertEqual(call["own_ps"], END_OF_1 - 30 * US)
        self.assertEqual(len(summary["collective_groups"]), 1)
        group = summary["collective_groups"][0]
        self.assertEqual([group[key] for key in ("kind", "algorithm", "ranks", "stride", "bytes", "count")],
                         ["all_reduce", "ring", 2, 1, 8000, 1])
        self.assertEqual((group["mean_time_ps"], group["mean_own_ps"]), (call["time_ps"], call["own_ps"]))

    def test_a_late_message(self):
        self.check(MESSAGE_LATE, SHARES_OF_MESSAGE_LATE)

    def test_one_waits_and_one_goes_on(self):
        experiment = program(TWO_AT_A_TIME, 3)
        experiment["workload"]["communicators"] = {"ab": [0, 1], "ac": [0, 2]}
        shares, _ = self.ideal(experiment)
        # 0 to 5 us: both wait. Then that with rank 2 is transferred; rank 0 continues to wait for rank 1.
        zero = shares[0]
        self.assertEqual(zero["exposed"], 2 * (MESSAGE + PACKET))
        self.assertEqual(zero["waiting"], 20 * US - (MESSAGE + PACKET))
        self.assertEqual((zero["compute"], zero["hidden"]), (0, 0))
        summary, _ = self.simulate(experiment)
        for word in NAMES:
            mean = sum(one[word] for one in shares) / 3
            self.assertAlmostEqual(summary["jobs"][0][f"{word}_ps"], mean, delta=4, msg=word)  # means are whole ps
        self.assertEqual([group["stride"] for group in summary["collective_groups"]], [1, 2])

    def test_text(self):
        path = self.write(program(LATE))
        end = END / 100
        mean = {word: sum(one[word] for one in SHARES_OF_LATE) / 2 / end for word in NAMES}
        text = self.run_weft("run", path, "-o", "out.h5").out
        self.assertIn(f"compute {mean['compute']:.1f} % ({mean['hidden']:.1f} % with communication hidden in it), "
                      f"exposed communication {mean['exposed']:.1f} %, waiting for peers {mean['waiting']:.1f} %, "
                      f"idle {mean['idle']:.1f} %", text)
        text = self.run_weft("workload", path).out
        for name, value in [("exposed communication", mean["exposed"]), ("waiting for peers", mean["waiting"]),
                            ("idle", mean["idle"]), ("bubble", mean["waiting"] + mean["idle"])]:
            self.assertRegex(text, rf"(?m)^  {name} +{value:.2f} %")

    def test_a_training_step(self):
        """A pipeline with data parallelism, on the network of `weft workload`: both reports are the same."""
        experiment = {"topology": {**STAR, "hosts": 4}, "network": {**NETWORK, "fidelity": "ideal"},
                      "workload": {"kind": "training", "model": "gpt2", "device": "a100-sxm", "micro_batch": 1,
                                   "micro_batches": 4, "sequence_length": 64,
                                   "parallelism": {"pipeline": 2, "data": 2}}}
        shares, report = self.ideal(experiment)
        summary, _ = self.simulate(experiment)
        job = summary["jobs"][0]
        self.assertEqual(job["time_ps"], round(report["ideal_step_seconds"] * 1e12))
        for word, name in [("exposed", "exposed_communication_fraction"), ("waiting", "waiting_fraction"),
                           ("idle", "idle_fraction")]:
            self.assertAlmostEqual(job[f"{word}_ps"] / job["time_ps"], report[name], delta=1e-9, msg=word)
        self.assertGreater(report["waiting_fraction"], 0.02)  # the second stage waits for the first
        self.assertGreater(report["exposed_communication_fraction"], 0.02)
        self.assertGreater(job["hidden_ps"], 0)
        self.assertEqual(len(shares), 2)  # one rank of each stage represents both

    def test_a_run_that_is_cut_off(self):
        """Ends in the middle of waiting, and of the transfer: no step has ended, and the parts are the time so far."""
        for until, exposed, waiting in [(25, 0, 3 * US), (31, US, 8 * US)]:
            summary, results = self.simulate(program(LATE, simulation={"until": f"{until} us"}))
            job = summary["jobs"][0]
            self.assertFalse(summary["complete"])
            self.assertIsNone(job["step_time_ps"])
            self.assertEqual(table(results, "jobs")["step_time"][0], -1)
            # Rank 1 computes until 30 us, and is then exposed as rank 0.
            self.assertEqual(job["exposed_ps"], exposed)
            self.assertEqual(job["waiting_ps"], waiting // 2)
            parts = job["compute_ps"] + job["exposed_ps"] + job["waiting_ps"] + job["idle_ps"]
            self.assertAlmostEqual(parts, until * US, delta=1)
            self.assertEqual(summary["collective_groups"], [])
        two = {"kind": "jobs", "jobs": [
            {"name": name, "placement": {"first": first}, "workload": program(LATE)["workload"]}
            for name, first in [("one", 0), ("two", 2)]]}
        path = self.write({**program([], 4), "workload": two})
        lines = {}
        for until in ["25 us", "1 s"]:
            text = self.run_weft("run", path, "-o", "out.h5", "--set", f"simulation.until={until}").out
            lines[until] = next(line for line in text.splitlines() if line.startswith("  one "))
        self.assertRegex(lines["25 us"], r"^  one +2 +0 ps +25\.000 us +- +")
        self.assertRegex(lines["1 s"], r"^  one +2 +0 ps +36\.245 us +36\.245 us +")

    def test_all_calls_are_summed_up(self):
        """More than the first thousand, which are listed one by one; on two processes as on one."""
        experiment = {"topology": {**STAR, "hosts": 2}, "network": {**NETWORK, "ack": "none"},
                      "workload": {"kind": "collective", "collective": "all_reduce", "size": "8 kB",
                                   "iterations": 1500}}
        groups = []
        for processes in [None, 2]:
            summary, results = self.simulate(experiment, ranks=processes)
            self.assertEqual((len(summary["collectives"]), summary["collective_count"]), (1000, 1500))
            groups.append(summary["collective_groups"])
            rows = table(results, "collectives")
            self.assertEqual(groups[-1][0]["count"], 1500)
            times = rows["end"] - rows["start"]
            self.assertEqual(groups[-1][0]["min_time_ps"], times.min())
            self.assertEqual(groups[-1][0]["max_time_ps"], times.max())
            self.assertAlmostEqual(groups[-1][0]["mean_time_ps"], times.mean(), delta=1e-6 * times.mean())
            for one in summary["collectives"]:
                self.assertTrue(0 < one["own_ps"] <= one["time_ps"])
        self.assertEqual(groups[0], groups[1])
        text = self.run_weft("run", self.write(experiment), "-o", "out.h5").out
        self.assertRegex(text, r"all_reduce +ring +2 +1500 +8 kB +1 ")


if __name__ == "__main__":
    unittest.main()
