#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""weft goodput: numbers against Daly's formula, drawn failures, and complaints."""

import json
import math
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from weft_testing import EXIT_INPUT, ProgramTest, weft


class Goodput(ProgramTest):
    def numbers(self, *words, ranks=None):
        return json.loads(self.run_weft("goodput", *words, "--json", ranks=ranks).out)

    def test_expected(self):
        found = self.numbers("--mtbf", "6h", "--checkpoint", "90s", "--detection", "1min", "--restart", "5 min",
                             "--interval", "30min")
        mtbf, checkpoint, restart, interval = 21600, 90, 360, 1800
        all_time = mtbf * math.exp(restart / mtbf) * math.expm1((interval + checkpoint) / mtbf)
        self.assertAlmostEqual(found["expected"]["goodput"], interval / all_time, places=12)
        self.assertAlmostEqual(found["expected"]["failures_per_day"], 4)
        self.assertAlmostEqual(found["young_interval_seconds"], math.sqrt(2 * checkpoint * mtbf))
        self.assertGreater(found["best"]["goodput"], found["expected"]["goodput"])

    def test_machines_add_up(self):
        one = self.numbers("--mtbf", "10h", "--checkpoint", "10s")
        many = self.numbers("--mtbf-each", "1000h", "--machines", "100", "--checkpoint", "10s")
        self.assertEqual(one, many)

    def test_drawn(self):
        words = ["--mtbf", "2h", "--checkpoint", "30s", "--restart", "10min", "--simulate", "20000", "--seed", "3"]
        found = self.numbers(*words)
        drawn, expected = found["simulated"], found["expected"]
        self.assertAlmostEqual(drawn["goodput"], expected["goodput"], delta=4 / math.sqrt(drawn["failures"]))
        self.assertEqual(found, self.numbers(*words, ranks=2))
        self.assertIn("drawn, seed 3", self.run_weft("goodput", *words).out)

    def test_complaints(self):
        good = ["--mtbf", "1h", "--checkpoint", "1s"]
        for words, pattern in [
            ([], "needs --mtbf"),
            (["--mtbf", "1h", "--mtbf-each", "1h", "--checkpoint", "1s"], "needs --mtbf"),
            (["--mtbf-each", "1h", "--checkpoint", "1s"], "--machines belongs to --mtbf-each"),
            (["--mtbf", "1h"], "needs --checkpoint"),
            (["--mtbf", "1", "--checkpoint", "1s"], "--mtbf: found '1'; expected a time such as 90s"),
            (["--mtbf", "1h", "--checkpoint", "-1s"], "--checkpoint: found '-1s'"),
            ([*good, "--interval", "0s"], "above 0"),
            ([*good, "--restart", "200h"], "never gets anywhere"),
            ([*good, "--interval", "200h"], "one --interval: it never reaches a checkpoint"),
            ([*good, "--simulate", "0"], "--simulate: found 0"),
            ([*good, "--simulate", "9000000000000000000"], "expected at most 1e\\+09 of both together"),
            (["--mtbf", "1h", "--checkpoint", "1s", "--restart", "30h", "--simulate", "10"],
             "--simulate: found 10 intervals, with some .*e\\+11 failures each"),
            ([*good, "--simulate", "10", "--seed", "-1"], "--seed: found '-1'; expected a whole number"),
            ([*good, "--simulate", "10", "--seed", "18446744073709551616"], "--seed: found '18446744073709551616'"),
            ([*good, "--seed", "3"], "--seed belongs to --simulate"),
            (["--mtbf", "1e308d", "--checkpoint", "1s"], "--mtbf: found '1e308d'; expected 0, or a time from"),
            (["--mtbf", "1h", "--checkpoint", "1e-30ms"], "--checkpoint: found '1e-30ms'"),
            ([*good, "x.yaml"], "takes no 'x.yaml'"),
        ]:
            with self.subTest(words=words):
                done = weft("goodput", *words, folder=self.folder)
                self.assertEqual(done.code, EXIT_INPUT, done)
                self.assertRegex(done.err, pattern)


if __name__ == "__main__":
    unittest.main()
