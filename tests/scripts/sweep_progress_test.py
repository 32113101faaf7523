# SPDX-License-Identifier: GPL-2.0-only
"""Progress of studies: how far runs say they are, and what remains, with a clock of the test."""

import contextlib
import io
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
from studies.processes import Processes  # noqa: E402
from studies.runs import Progress, first_line  # noqa: E402


class StudyProgress(unittest.TestCase):
    def shown(self, looks, quiet=False):
        """`looks`: (seconds, whether a run has ended, shares of the others)."""
        clock, out = [0.0], io.StringIO()
        with contextlib.redirect_stderr(out):
            progress = Progress(quiet, 4, "weft sweep", now=lambda: clock[0])
            for seconds, ended, shares in looks:
                clock[0] = seconds
                (progress.step if ended else progress.show)(shares)
        return out.getvalue().splitlines()

    def test_the_rest_at_the_speed_so_far(self):
        """Two runs at 20 and 30 % after 50 s are half a run of four: the other 3.5 take 50 s / 0.5 x 3.5 = 350 s. After 120 s
        one has ended and one is at 50 %: 120 / 1.5 x 2.5 = 200 s."""
        self.assertEqual(self.shown([(5.0, False, [0.0, 0.0]), (50.0, False, [0.2, 0.3]), (120.0, True, [0.5])]),
                         ["weft sweep: 0 of 4 runs, 2 under way (25 %), about 350 s left",
                          "weft sweep: 1 of 4 runs, 1 under way (50 %), about 200 s left"])

    def test_a_line_each_ten_seconds(self):
        self.assertEqual(len(self.shown([(float(second), False, [0.01 * second]) for second in range(5, 50, 5)])), 5)
        self.assertEqual(self.shown([(50.0, False, [0.5]), (100.0, True, [])], quiet=True), [])

    def test_runs_that_say_how_far_they_are(self):
        program = "import sys, time; sys.stderr.write(sys.argv[1]); sys.stderr.flush(); time.sleep(60)"
        texts = ["weft: warning: memory is scarce\n3 %, 5 s elapsed, about 2 min 41 s left, 1.250 ms simulated\n"
                 "37 %, 10 s elapsed, about 17 s left, 7.400 ms simulated\n", "", "x" * 10_000 + "\n"]
        with Processes(3) as processes:
            for number, text in enumerate(texts):
                processes.start(number, [sys.executable, "-c", program, text])
            for _ in range(100):
                processes.wait(0.05)
                shares = processes.shares()
                if any(shares):
                    break
            self.assertEqual(shares, [0.37, 0.0, 0.0])

    def test_a_warning_is_no_error(self):
        self.assertEqual(first_line("weft: warning: memory is scarce\n3 %, 5 s elapsed\nweft: a.yaml:1: no such key\n"),
                         "a.yaml:1: no such key")


if __name__ == "__main__":
    unittest.main()
