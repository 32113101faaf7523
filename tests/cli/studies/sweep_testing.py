# SPDX-License-Identifier: GPL-2.0-only
"""Common code of the tests of `weft sweep`: a base, a study of it, and tables."""

import pathlib
import sys

import h5py

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from weft_testing import ProgramTest, same_results, weft

SECONDS = 120
BASE = """\
topology: {kind: star, hosts: 4, link_rate: 400 Gb/s, link_delay: 500 ns}
workload: {kind: collective, collective: all_reduce, size: 64 KiB}
"""
STUDY = """\
experiment: base.yaml
grid:
  workload.algorithm: [ring, direct]
  workload.size: [64 KiB, 128 KiB, 256 KiB]
outputs: [job_time, packet_hops, fingerprint, {tail: p90 messages/slowdown}]
derived: {twice: 2 * job_time}
objective: {minimize: job_time, within: workload.size}
"""


class SweepTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.write(BASE, "base.yaml")

    def sweep(self, study, *words, code=0, extra=None):
        """Writes a study (if it is text) and runs it to its end."""
        path = self.write(study, "study.yaml") if "\n" in study else study
        done = weft("sweep", path, "--quiet", *words, folder=self.folder, extra=extra, seconds=SECONDS)
        self.assertEqual(done.code, code, done)
        return done

    def table(self, name="study.h5"):
        with h5py.File(self.folder / name) as file:
            return {column: data.asstr()[:].tolist() if data.dtype.kind == "S" else data[:].tolist()
                    for column, data in file["cases"].items()}

    def assert_same_table(self, one, other):
        """All but the times measured, and the names of the folders of runs."""
        left_out = ["/timing", "/runs", "/cases/run"]
        with h5py.File(self.folder / one) as a, h5py.File(self.folder / other) as b:
            self.assertGreater(len(a["cases"]), 10)
            self.assertEqual(list(same_results.differences(a, b, left_out)), [])
            self.assertEqual(sorted(a["runs"]), sorted(b["runs"]))
