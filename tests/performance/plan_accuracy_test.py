#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# Runs in: full
# Time limit: 3600 s
# Processors: 2
"""`weft plan` is within a factor of 1.5 of the time of one process and 1.2 of its memory on ten experiments, of 16 to
65,536 hosts."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import plan_accuracy


class Accuracy(unittest.TestCase):
    def test_ten_experiments(self):
        self.assertEqual(len(plan_accuracy.EXPERIMENTS), 10)
        self.assertEqual(plan_accuracy.main(["--processes", "1"]), 0)


if __name__ == "__main__":
    unittest.main()
