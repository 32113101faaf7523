#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Traces of a file for each rank, on several processes: each process reads the files of its own ranks, counted by the kernel
(rchar of /proc/PID/io), and keeps the common facts of the others. Errors are those of one process."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import chakra_files as et
from chakra_files import COLL, COMP, RECV, SEND, node
from weft_testing import EXIT_INPUT, NETWORK, WEFT, ProgramTest, environment, weft

RANKS, NODES = 8, 12_000
MACHINE = {"kind": "torus", "dims": [RANKS], "link_rate": "400 Gb/s", "link_delay": "500 ns"}
# Starts the words behind it, and writes beside it how many bytes they have read.
COUNTER = """import os, subprocess, sys
child = subprocess.Popen(sys.argv[2:])
os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
read = dict(line.split(": ") for line in open(f"/proc/{child.pid}/io").read().splitlines())["rchar"]
open(f"{sys.argv[1]}.{os.environ.get('OMPI_COMM_WORLD_RANK', 0)}", "w").write(read)
sys.exit(child.wait())
"""


def trace(rank, count):
    """Computations, each with a name as long as PyTorch's, a message to the next rank and a sum of all."""
    nodes = [node(i, COMP, [i - 1] if i else [], name=f"{i:0200}") for i in range(count)]
    after = [count - 1] if count else []
    return nodes + [node(count, SEND, after, comm_size=3000, comm_dst=(rank + 1) % RANKS),
                    node(count + 1, RECV, comm_size=3000, comm_src=(rank - 1) % RANKS),
                    node(count + 2, COLL, [count], comm_type=et.ALL_REDUCE, comm_size=40_000)]


class SharedReading(ProgramTest):
    def experiment(self, count, broken=None):
        ranks = [trace(rank, count) for rank in range(RANKS)]
        if broken:
            rank, change = broken
            change(ranks[rank])
        et.write(self.folder, ranks)
        return self.write({"topology": MACHINE, "network": NETWORK, "workload": {"kind": "chakra", "file": "trace"},
                           "simulation": {"seed": 1}, "output": {"messages": "none"}})

    def bytes_read(self, path, processes):
        """Of each process."""
        counter = self.folder / "counter.py"
        counter.write_text(COUNTER)
        with tempfile.TemporaryDirectory() as scratch:
            words = ["mpirun", "-n", str(processes), sys.executable, str(counter), "read", str(WEFT), "run", str(path), "-o",
                     f"{processes}.h5", "--quiet"]
            subprocess.run(words, cwd=self.folder, env=environment({"OMPI_MCA_orte_tmpdir_base": scratch}), check=True,
                           stdin=subprocess.DEVNULL)
        return [int((self.folder / f"read.{process}").read_text()) for process in range(processes)]

    def test_each_process_reads_the_files_of_its_ranks(self):
        """A rank's file is read to see it, to check it, and to run it: three times, by one process. A process that runs a rank
        whose file another process has checked reads it once more."""
        short = {processes: self.bytes_read(self.experiment(0), processes) for processes in (1, 4)}
        path = self.experiment(NODES)
        size = os.path.getsize(self.folder / "trace.0.et")
        for processes, beyond in short.items():
            files = [(one - other) / size for one, other in zip(self.bytes_read(path, processes), beyond)]
            with self.subTest(processes=processes, files=files):
                self.assertLess(max(files), 4 * RANKS / processes + 0.5)
                self.assertGreater(sum(files), 3 * RANKS - 0.5)

    def test_complaints_are_those_of_one_process(self):
        def change(number, **attributes):
            return lambda nodes: nodes[number]["attributes"].update(
                {key: (value, None) for key, value in attributes.items()})

        for rank, change_of, part in (
                (6, change(-3, comm_size=2999), "message 0 from rank 6 to rank 7 with tag 0"),
                (5, change(-1, comm_size=39_999), "it is collective 0 of its process group on this rank"),
                (7, lambda nodes: nodes.pop(), "rank 7 has 0 collectives of process group '0', and other members have 1"),
                (4, lambda nodes: nodes[0]["data"].append(77), "node 0"),
                (3, lambda nodes: nodes[-2]["attributes"].pop("comm_src"), "it has no 'comm_src'")):
            with self.subTest(rank=rank):
                path = self.experiment(3, (rank, change_of))
                one, four = (weft("run", path, "-o", "out.h5", folder=self.folder, ranks=ranks) for ranks in (None, 4))
                self.assertEqual((one.code, four.code), (EXIT_INPUT, EXIT_INPUT), (one, four))
                self.assertIn(part, one.err)
                line = next(line for line in four.err.splitlines() if line.startswith("weft: "))
                self.assertEqual(line, one.err.splitlines()[0])


if __name__ == "__main__":
    unittest.main()
