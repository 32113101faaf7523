#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# Runs in: quick
"""Time that a run has had: the time that it ran, or slept, and not the time of others in the meantime."""

import os
import pathlib
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import fair_time  # noqa: E402


class Told(unittest.TestCase):
    """Made-up figures: at each moment (ran, waited) of each process."""

    def taken(self, moments, processors=2):
        now = 0.0
        clock = fair_time.FairTime(lambda pid: moments[now].get(pid), lambda: now, processors)
        for now in sorted(moments):
            clock.look(moments[now])
        return clock.seconds

    def test_alone(self):
        """In 10 s it ran for 4 and waited for 5, and so it slept for 1."""
        self.assertAlmostEqual(self.taken({0.0: {1: (1.0, 1.0)}, 10.0: {1: (5.0, 6.0)}}), 5)

    def test_processors_are_shared(self):
        """Four that never sleep have both processors: 10 s each, and as long as on a machine without others."""
        self.assertAlmostEqual(self.taken({0.0: {pid: (0, 0) for pid in range(4)},
                                           20.0: {pid: (10.0, 10.0) for pid in range(4)}}), 20)
        self.assertAlmostEqual(self.taken({0.0: {pid: (0, 0) for pid in range(4)},
                                           20.0: {pid: (1.0, 19.0) for pid in range(4)}}), 2)

    def test_a_wait_is_known_when_it_is_over(self):
        """It waits for 9 s, runs for 1, again and again: only the first wait looks like sleep for a while."""
        moments = {10.0 * i: {1: (i, 9.0 * i)} for i in range(5)}
        moments.update({10.0 * i + 8: {1: (i, 9.0 * i)} for i in range(5)})
        self.assertAlmostEqual(self.taken(moments), 4 + 8)

    def test_one_sleeps_while_another_runs(self):
        self.assertAlmostEqual(self.taken({0.0: {1: (0, 0), 2: (0, 0)}, 8.0: {1: (8.0, 0), 2: (0, 0)}}), 4)
        self.assertAlmostEqual(self.taken({0.0: {1: (0, 0), 2: (0, 0)}, 8.0: {1: (3.0, 0), 2: (0, 0)}}), 1.5 + 5)

    def test_processes_end_and_begin(self):
        """The time of the first remains; from then on the second counts. A launcher that is looked at once more, when its
        programs have ended, has slept for all of that time, which is none of the run's."""
        self.assertAlmostEqual(self.taken({0.0: {1: (0, 0)}, 2.0: {1: (2.0, 0)}, 3.0: {2: (0.5, 0)},
                                           5.0: {2: (1.5, 1.0)}}), 3)
        self.assertAlmostEqual(self.taken({0.0: {1: (0, 0)}, 1.0: {1: (1.0, 0)}, 2.0: {2: (0, 0)},
                                           90.0: {2: (1.0, 87.0)}, 90.1: {1: (1.0, 0)}, 90.2: {1: (1.0, 0)}}),
                               1 + 1 + 0.1)
        self.assertEqual(self.taken({0.0: {}, 9.0: {}}), 0)


def on_one_processor():
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


class Measured(unittest.TestCase):
    def look(self, program, seconds):
        clock = fair_time.FairTime()
        process = subprocess.Popen([sys.executable, "-c", program], preexec_fn=on_one_processor)
        try:
            until = time.monotonic() + seconds
            while time.monotonic() < until:
                clock.look([process.pid])
                time.sleep(0.02)
        finally:
            process.kill()
            process.wait()
        return clock.seconds

    def test_sleeping_is_as_long_as_the_clock_says(self):
        """But for its start, in which it may wait for a processor."""
        self.assertGreater(self.look("import time; time.sleep(60)", 2), 0.5)

    def test_not_more_than_its_share(self):
        """Three others run on its processor: it gets about a quarter."""
        others = [subprocess.Popen([sys.executable, "-c", "while True: pass"], preexec_fn=on_one_processor)
                  for _ in range(3)]
        try:
            self.assertLess(self.look("while True: pass", 2), 1.0)
        finally:
            for other in others:
                other.kill()
                other.wait()

    def test_nobody(self):
        self.assertIsNone(fair_time.spent(2**22 + 1))
        self.assertGreater(sum(fair_time.spent(os.getpid())), 0)


if __name__ == "__main__":
    unittest.main()
