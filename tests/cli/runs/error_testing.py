# SPDX-License-Identifier: GPL-2.0-only
"""Common code of the tests of errors: a good experiment to be spoiled, and what an error has to look like."""

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from weft_testing import EXIT_INPUT, ProgramTest, weft

GOOD = """\
topology:
  kind: star
  hosts: 4
  link_rate: 400 Gb/s
  link_delay: 500 ns
network:
  mtu: 4096 B
  header: 62 B
  wire_overhead: 20 B
  ack: 66 B
  switch_latency: 0 ns
  window: 256 KiB
workload:
  kind: traffic
  pattern: pairs
  pairs: [[0, 1]]
  size: 10 kB
simulation:
  seed: 1
output:
  file: out.h5
"""

TRAFFIC = """\
  kind: traffic
  pattern: pairs
  pairs: [[0, 1]]
  size: 10 kB
"""

COLLECTIVE = """\
  kind: collective
  collective: all_reduce
  algorithm: ring
  size: 1 MiB
"""

# Texts that a user must never see.
CRASH = re.compile(r"Traceback|terminate called|what\(\):|Abort|abort|core dumped|Segmentation|MPI_|HDF5-DIAG|signal")


class ErrorTest(ProgramTest):
    def assert_fails(self, done, code, pattern, where=None):
        """One message, at `where` ("file:line" or a file), and nothing else; no new files in the folder."""
        self.assertEqual(done.code, code, done)
        self.assertEqual(done.out, "", done)
        messages = done.messages()
        self.assertEqual(len(messages), 1, done)
        self.assertEqual(done.err.splitlines()[0], messages[0], done)
        self.assertIsNone(CRASH.search(done.err), done)
        self.assertNotIn("weft: weft:", done.err)
        if where is not None:
            self.assertTrue(messages[0].startswith(f"weft: {where}: "), f"expected a complaint about {where}\n{done}")
        self.assertRegex(messages[0], pattern, done)

    def run_wrong(self, words, code, pattern, where=None, ranks=None):
        before = sorted(self.folder.rglob("*"))
        done = weft(*words, folder=self.folder, ranks=ranks, seconds=60)
        self.assert_fails(done, code, pattern, where)
        self.assertEqual(sorted(self.folder.rglob("*")), before, f"files were left behind\n{done}")
        return done

    def wrong(self, change, pattern, start=GOOD, name=None, at=None):
        """`change` = (old, new) in a good experiment. The complaint must name the first line of `new`, or that of `at`."""
        old, new = change
        with self.subTest(name or new.strip()):
            self.assertEqual(start.count(old), 1, f"'{old}' in\n{start}")
            text = start.replace(old, new)
            place = text.index(at) if at else start.index(old) + len(new) - len(new.lstrip())
            line = text.count("\n", 0, place) + 1
            path = self.write(text, "wrong.yaml")
            self.run_wrong(["run", path], EXIT_INPUT, pattern, f"{path}:{line}")


def with_part(old, new):
    assert old in GOOD
    return GOOD.replace(old, new)
