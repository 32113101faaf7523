#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# Processors: 2
"""A disk that becomes full at any moment, under any number of processes: all end within seconds with exit code 3 and one
message, and nothing is left that looks like results."""
# Time limit: 900 s
# Runs in: full

import pathlib
import re
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from weft_testing import EXIT_ENVIRONMENT, WEFT, ProgramTest, environment, two_at_a_time  # noqa: E402

KILOBYTE = 1000
# 16 hosts x 15 flows x 60 times: 14,400 messages, whose rows take 2 MB.
EXPERIMENT = {
    "topology": {"kind": "fat_tree", "k": 4, "link_rate": "400 Gb/s", "link_delay": "500 ns"},
    "workload": {"kind": "traffic", "pattern": "all_to_all", "size": "1 B",
                 "start": {"process": "periodic", "interval": "5 us", "count": 60}},
    "output": {"sampling": "2 us"},
}  # fmt: skip
# The limit must not hit the memory that processes share: it shall not be a file.
SETTINGS = {"OMPI_MCA_shmem": "sysv", "PMIX_MCA_gds": "hash"}
# A file that would grow beyond the limit fails with an error, as on a full disk. POSIX counts it in 512 bytes.
LIMITED = """trap '' XFSZ
[ -n "$ONLY" ] && [ "$OMPI_COMM_WORLD_RANK" != "$ONLY" ] || ulimit -f "$BLOCKS" || exit 1
exec "$0" "$@"
"""
SECONDS = 30
# 13,000 collectives of four ranks: more than a process with two of them, or with all, keeps in memory.
COLLECTIVES = {
    "topology": {"kind": "star", "hosts": 4, "link_rate": "400 Gb/s", "link_delay": "500 ns"},
    "workload": {"kind": "collective", "collective": "all_gather", "size": "4 B", "iterations": 13_000},
    "output": {"messages": "none"},
}
NOWHERE = "/proc/self"  # a folder in which no one can create files


class FullDisk(ProgramTest):
    def run_limited(self, room, ranks, rows=None, only=None):
        """With files of at most `room` bytes, on process `only` or on all. Returns the faults of its end."""
        output = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        words = ["run", self.path, "-o", output / "results.h5", "--quiet"]
        if rows:
            words += ["--set", f"output.rows_in_memory={rows}"]
        line = ["mpirun", "-n", str(ranks), "/bin/sh", "-c", LIMITED, str(WEFT), *map(str, words)]
        with tempfile.TemporaryDirectory(prefix="weft-mpi-") as scratch:  # of this run of mpirun alone, as in weft_testing
            extra = {**SETTINGS, "BLOCKS": str(room // 512), "ONLY": "" if only is None else str(only),
                     "OMPI_MCA_orte_tmpdir_base": scratch}  # fmt: skip
            began = time.monotonic()
            process = subprocess.Popen(line, cwd=output, env=environment(extra), text=True, stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE)  # fmt: skip
            try:
                _, err = process.communicate(timeout=SECONDS)
            except subprocess.TimeoutExpired:
                process.terminate()
                process.communicate()
                return f"still runs after {SECONDS} s"
        messages = re.findall("weft: .*", err)  # MPI's own may not have ended their lines
        if process.returncode != EXIT_ENVIRONMENT:
            return f"exit code {process.returncode} after {time.monotonic() - began:.1f} s: {err}"
        if len(messages) != 1 or f"cannot write '{output / 'results.h5'}'" not in messages[0]:
            return f"says {err}"
        left = sorted(path.name for path in output.iterdir())
        return f"leaves {left}" if left else ""

    def check(self, runs):
        self.path = self.write(EXPERIMENT)
        wrong = two_at_a_time([lambda one=one: self.run_limited(**one) for one in runs])
        for run, text in zip(runs, wrong):
            with self.subTest(**run):
                self.assertEqual(text, "")

    def test_any_room_and_number_of_processes(self):
        rooms = [10, 20, 50, 100, 200, 300, 400, 600, 800, 1000]
        self.check([{"room": room * KILOBYTE, "ranks": ranks} for ranks in (1, 2, 3, 4, 8) for room in rooms])

    def test_no_room_for_what_is_kept_outside_of_memory(self):
        """In the middle of a run, on one process of three alone where the others have fewer ranks."""
        path = self.write(COLLECTIVES)
        for ranks in (1, 3):
            with self.subTest(ranks=ranks):
                folder = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
                done = subprocess.run(
                    ["mpirun", "-n", str(ranks), "/bin/sh", "-c", f'TMPDIR={NOWHERE} exec "$0" "$@"', str(WEFT), "run", path,
                     "-o", "out.h5", "--quiet"], cwd=folder, env=environment(), text=True, capture_output=True,
                    timeout=SECONDS)  # fmt: skip
                self.assertEqual(done.returncode, EXIT_ENVIRONMENT, done.stderr)
                self.assertEqual(re.findall("weft: .*", done.stderr),
                                 [f"weft: a temporary file in '{NOWHERE}' cannot be made: No such file or directory "
                                  "(TMPDIR names another folder)"])  # fmt: skip
                self.assertEqual(list(folder.iterdir()), [])

    def test_in_portions(self):
        rooms = [10, 30, 100, 300, 1000]
        self.check([{"room": room * KILOBYTE, "ranks": ranks, "rows": 2000} for ranks in (1, 3, 5) for room in rooms])

    def test_one_process_alone(self):
        """Processes on separate machines: only one of them has no space."""
        rooms = [10, 100, 300, 1000]
        self.check([{"room": room * KILOBYTE, "ranks": 3, "only": only} for only in range(3) for room in rooms])


if __name__ == "__main__":
    unittest.main()
