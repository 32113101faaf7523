# SPDX-License-Identifier: GPL-2.0-only
"""Common code of the tests of importers: import, run, and find operations by their labels."""

import json
import re

import weft_testing
from weft_testing import EXIT_INPUT

US = 10**6  # picoseconds


class ImportTest(weft_testing.ProgramTest):
    FORMAT = ""

    def imported(self, *words, code=0):
        done = weft_testing.weft("import", self.FORMAT, *words, "-o", "out.yaml", "--json", folder=self.folder)
        self.assertEqual(done.code, code, done)
        return json.loads(done.out) if code == 0 else done.err

    def refused(self, *words, says):
        """`says`: patterns in the one line of the error."""
        text = self.imported(*words, code=EXIT_INPUT)
        self.assertRegex(text, r"^weft: [^\n]+\n$")
        for pattern in says:
            self.assertRegex(text, pattern)

    def run_imported(self, *words, ranks=None):
        """{(rank, label): (start, end)} in microseconds; of operations with the same label the last one."""
        done = weft_testing.weft("run", "out.yaml", "-o", "out.h5", "--summary", "json", "--quiet", "--set",
                                 "output.operations=true", *words, folder=self.folder, ranks=ranks)
        self.assertEqual(done.code, 0, done)
        self.assertTrue(done.summary()["complete"])
        self.summary = done.summary()
        rows = weft_testing.table(self.folder / "out.h5", "operations")
        self.executed = len(rows["rank"])
        return {(int(rank), re.sub(r" \(node \d+\)$", "", label)): (start / US, end / US)
                for rank, label, start, end in zip(rows["rank"], rows["label"], rows["start"], rows["end"])}
