#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# Runs in: quick
"""Commands in Python: each file of scripts/commands is a command of the program."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from weft_testing import EXIT_INPUT, SOURCE, weft

COMMANDS = sorted(path.stem for path in (SOURCE / "scripts" / "commands").glob("*.py"))


class ScriptCommand(unittest.TestCase):
    def test_help_has_a_line_for_each(self):
        text = weft("--help").out
        self.assertIn("plot", COMMANDS)
        for name in COMMANDS:
            self.assertIn(f"\n  weft {name} ", text)

    def test_each_says_what_it_takes(self):
        for name in COMMANDS:
            done = weft(name, "--help")
            self.assertEqual(done.code, 0, done)
            self.assertIn("usage", done.out)

    def test_unknown_words_are_refused(self):
        for name in COMMANDS:
            self.assertEqual(weft(name, "--nonsense").code, EXIT_INPUT)

    def test_a_near_miss_is_guessed(self):
        done = weft("plat", "x.h5")
        self.assertEqual(done.code, EXIT_INPUT, done)
        self.assertIn("plot", done.err)

    def test_of_several_processes_one_answers(self):
        done = weft("plot", "--help", ranks=2)
        self.assertEqual(done.code, 0, done)
        self.assertEqual(done.out.count("usage"), 1)


if __name__ == "__main__":
    unittest.main()
