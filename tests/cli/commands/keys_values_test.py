#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""docs/reference/keys.md is what scripts/keys writes: one question to the program for each key of an experiment."""

# Runs in: full
# Time limit: 900 s

import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from weft_testing import SOURCE, WEFT, environment


class KeysAndValues(unittest.TestCase):
    def test_page_is_what_the_program_says(self):
        done = subprocess.run([SOURCE / "scripts/keys", "--check-docs"], env=environment({"WEFT": str(WEFT)}),
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()
