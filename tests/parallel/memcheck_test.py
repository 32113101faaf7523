# SPDX-License-Identifier: GPL-2.0-only
# Time limit: 600 s
# Runs in: full
"""Short runs under valgrind's memcheck: no invalid access and no decision on memory that was never written, alone, on
several MPI ranks (whose shared memory the address sanitizer does not know) and under ns-3's own engine."""

import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from weft_testing import WEFT, ProgramTest, environment  # noqa: E402

# Open MPI's own list of intended accesses, and our list of missing ones.
SUPPRESSIONS = ["/usr/share/openmpi/openmpi-valgrind.supp", pathlib.Path(__file__).parent / "memcheck.supp"]
FOUND = 99
# Messages and samples in several portions, so that the file grows during the run.
EXPERIMENT = {
    "topology": {"kind": "fat_tree", "k": 4, "link_rate": "400 Gb/s", "link_delay": "500 ns"},
    "workload": {"kind": "collective", "collective": "all_reduce", "algorithm": "ring", "size": "64 KiB"},
    "output": {"sampling": "2 us", "operations": True, "rows_in_memory": 200},
}


class Memcheck(ProgramTest):
    def check(self, *words, ranks=None):
        launcher = [] if ranks is None else ["mpirun", "-n", str(ranks)]
        valgrind = ["valgrind", "--quiet", f"--error-exitcode={FOUND}", *(f"--suppressions={path}" for path in SUPPRESSIONS)]
        program = [str(WEFT), "run", str(self.write(EXPERIMENT)), "-o", "out.h5", "--quiet", *words]
        done = subprocess.run(launcher + valgrind + program, cwd=self.folder, env=environment(), capture_output=True,
                              text=True, timeout=500, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue((self.folder / "out.h5").exists())

    def test_alone(self):
        self.check()

    def test_two_ranks(self):
        self.check(ranks=2)

    def test_reference(self):
        self.check("--engine", "ns3-default")


if __name__ == "__main__":
    unittest.main()
