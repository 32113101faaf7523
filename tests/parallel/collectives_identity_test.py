# SPDX-License-Identifier: GPL-2.0-only
# Time limit: 900 s
"""Every collective algorithm and kind gives the same run on 1, 2, 3, 4 and 8 MPI processes, with kernel times and LL."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from weft_testing import registered  # noqa: E402

WEFT = os.environ["WEFT"]
KINDS = {
    "ring": "all_gather",
    "recursive_doubling": "all_reduce",
    "halving_doubling": "all_reduce",
    "bidirectional_ring": "all_reduce",
    "double_binary_tree": "all_reduce",
    "chain": "all_reduce",
    "swing": "all_reduce",
    "bucket": "all_reduce",
    "by_dimension": "all_reduce",
    "hierarchical": "all_reduce",
    "direct": "all_reduce",
    "pat": "reduce_scatter",
    "binomial": "gather",
    "bruck": "all_to_all",
    "pairwise": "all_to_all",
    "nccl_p2p": "all_to_all",
    "linear": "scatter",
    "scatter_allgather": "broadcast",
    "nvls": "reduce_scatter",
    "nvls_tree": "all_reduce",
    "collnet": "all_reduce",
}
WORKLOAD = {
    "kind": "collective",
    "size": "300 kB",
    "channels": 2,
    "protocol": "ll128",
    "step_latency": "1 us",
    "reduce_rate": "1600 Gb/s",
    "launch_latency": "3 us",
    "iterations": 2,
}


class Identity(unittest.TestCase):
    def fingerprint(self, folder, algorithm, processes):
        workload = {**WORKLOAD, "collective": KINDS[algorithm], "algorithm": algorithm}
        if algorithm in ("double_binary_tree", "hierarchical", "nccl_p2p"):
            workload["ranks_per_server"] = 4
        experiment = {
            "topology": {"kind": "fat_tree", "k": 4, "link_rate": "100 Gb/s", "link_delay": "500 ns"},
            "workload": workload,
        }
        if algorithm in ("nvls", "nvls_tree", "collnet"):  # aggregators in leaves of two hosts, and in cores
            experiment["topology"]["switch_reduction"] = {}
            del workload["protocol"]
        if algorithm == "nvls":
            workload["ranks"] = 2
        if algorithm == "nvls_tree":
            workload["ranks_per_server"] = 2
        if algorithm == "collnet":
            workload["ranks_per_leaf"] = 2
        (folder / "e.yaml").write_text(json.dumps(experiment))
        mpi = ["mpirun", "-n", str(processes), "--oversubscribe"] if processes > 1 else []
        words = [*mpi, WEFT, "run", "e.yaml", "-o", "e.h5", "--quiet", "--summary", "json"]
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=True, timeout=100)
        summary = json.loads(done.stdout)
        self.assertTrue(summary["complete"])
        return summary["fingerprint"], summary["simulated_time_ps"]

    def test_no_algorithm_is_left_out(self):
        self.assertEqual(set(KINDS), registered("collectives"))

    def test_same_for_all_numbers_of_processes(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            for algorithm in KINDS:
                one = self.fingerprint(folder, algorithm, 1)
                for processes in (2, 3, 4, 8):
                    self.assertEqual(self.fingerprint(folder, algorithm, processes), one, (algorithm, processes))


if __name__ == "__main__":
    unittest.main()
