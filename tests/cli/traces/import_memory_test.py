#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""No reader needs more memory for a longer trace: each that scripts/measure_trace_memory draws, with two lengths."""

# Time limit: 300 s

import csv
import os
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from weft_testing import SOURCE, WEFT, ProgramTest, environment

READERS = ["collectives", "flows", "triggers", "import flows", "import htsim", "import triggers", "import multiverse", "import aicb",
           "import pytorch", "import nsys", "import xplane", "import nccl-log"]
# Pieces of text (1 MiB) and pages of databases (4 MiB, and as much while an index is made) are held up to a size of their
# own, which the shorter trace does not reach. Kept in memory, an event takes a kilobyte or more in Python: 12,000 events of
# two ranks would be 24 MB.
SHORT, LONG, SLACK = 4_000, 16_000, 10 * 2**20


class ImportMemory(ProgramTest):
    def test_memory_does_not_follow_the_length_of_a_trace(self):
        words = ["/usr/bin/python3", SOURCE / "scripts" / "measure_trace_memory", "-o", "memory.png", "--only", *READERS,
                 "--operations", SHORT, LONG]
        subprocess.run(list(map(str, words)), cwd=self.folder, env=environment({"WEFT": str(WEFT), **os.environ}),
                       check=True, capture_output=True)
        with open(self.folder / "memory.csv", encoding="ascii") as file:
            peaks = {(row["format"], int(row["operations_per_rank"])): int(row["peak_bytes"]) for row in csv.DictReader(file)}
        for name in READERS:
            with self.subTest(name):
                self.assertLess(peaks[name, LONG], peaks[name, SHORT] + SLACK)


if __name__ == "__main__":
    unittest.main()
