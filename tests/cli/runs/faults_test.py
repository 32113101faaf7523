#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# Time limit: 300 s
"""Disks that fill and memory that ends: one clear message, exit code 3, and nothing that looks like results."""

import pathlib
import resource
import signal
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from weft_testing import EXIT_ENVIRONMENT, STAR, ProgramTest, weft  # noqa: E402

MEBIBYTE = 1 << 20
# 128 hosts x 127 flows x 20 times: 325,120 messages, whose rows take 22 MB.
MANY_MESSAGES = {
    "topology": {"kind": "fat_tree", "k": 8, "link_rate": "400 Gb/s", "link_delay": "500 ns"},
    "workload": {"kind": "traffic", "pattern": "all_to_all", "size": "1 B",
                 "start": {"process": "periodic", "interval": "20 us", "count": 20}},
}
LARGE_MACHINE = {
    "topology": {"kind": "fat_tree", "k": 64, "link_rate": "400 Gb/s", "link_delay": "500 ns"},
    "workload": {"kind": "traffic", "pattern": "permutation", "size": "4 KiB"},
}


def limit(kind, value):
    """For a child process. A file that would grow beyond its limit fails with an error, as on a full disk."""

    def apply():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(kind, (value, value))

    return apply


class Faults(ProgramTest):
    def check(self, done, words):
        self.assertEqual(done.code, EXIT_ENVIRONMENT, done)
        self.assertEqual(len(done.messages()), 1, done)
        for word in words:
            self.assertIn(word, done.messages()[0])
        self.assertEqual(sorted(path.name for path in self.folder.glob("*.h5")), [], done)

    def run_limited(self, experiment, kind, value, portions=False):
        more = {"output": {"rows_in_memory": 20_000}} if portions else {}
        path = self.write({**experiment, **more})
        return weft("run", path, "-o", "results.h5", "--quiet", folder=self.folder, preexec_fn=limit(kind, value))

    def test_disk_full_at_the_end(self):
        done = self.run_limited(MANY_MESSAGES, resource.RLIMIT_FSIZE, 16 * MEBIBYTE)
        self.check(done, ["cannot write 'results.h5'", "disk full"])

    def test_disk_full_during_the_run(self):
        done = self.run_limited(MANY_MESSAGES, resource.RLIMIT_FSIZE, 16 * MEBIBYTE, portions=True)
        self.check(done, ["cannot write 'results.h5'", "disk full"])

    def test_out_of_memory(self):
        done = self.run_limited(LARGE_MACHINE, resource.RLIMIT_AS, 700 * MEBIBYTE)
        self.check(done, ["out of memory"])

    def test_little_memory(self):
        """Where MPI cannot start, either, weft reports it; with a little more memory the run succeeds."""
        path = self.write({"topology": STAR, "workload": {"kind": "traffic", "pattern": "permutation", "size": "1 kB"}})
        for mebibytes in (100, 130, 160, 200, 250):
            with self.subTest(mebibytes):
                done = weft("run", path, "-o", "results.h5", "--quiet", folder=self.folder,
                            preexec_fn=limit(resource.RLIMIT_AS, mebibytes * MEBIBYTE))
                self.check(done, ["out of memory"])
        done = weft("run", path, "-o", "results.h5", "--quiet", folder=self.folder,
                    preexec_fn=limit(resource.RLIMIT_AS, 700 * MEBIBYTE))
        self.assertEqual(done.code, 0, done)

    def test_commands_that_write_no_results_need_no_mpi(self):
        path = self.write({"topology": STAR, "workload": {"kind": "traffic", "pattern": "permutation", "size": "1 kB"}})
        for words in (["list"], ["topology", path], ["describe", path], ["collective", "ring", "--ranks", "4", "--size", "1MiB"]):
            with self.subTest(words[0]):
                done = weft(*words, folder=self.folder, preexec_fn=limit(resource.RLIMIT_AS, 200 * MEBIBYTE))
                self.assertEqual((done.code, done.messages()), (0, []), done)


if __name__ == "__main__":
    unittest.main()
