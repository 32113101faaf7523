# SPDX-License-Identifier: GPL-2.0-only
# Time limit: 900 s
"""Every collective algorithm and kind gives the same run on 1, 2, 3, 4 and 8 MPI processes, with kernel times and LL.

One program runs them all, one after another: processes are started once for each number, and not once for each algorithm.
Each begins on an idle machine, at the same picosecond on all ranks, for then the most arrivals tie."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from weft_testing import ProgramTest, registered, table  # noqa: E402

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
TUNING = {"channels": 2, "step_latency": "1 us", "reduce_rate": "1600 Gb/s", "launch_latency": "3 us"}
IN_SWITCHES = {"nvls", "nvls_tree", "collnet"}  # aggregators in leaves of two hosts, and in cores
FURTHER = {
    "double_binary_tree": {"ranks_per_server": 4},
    "hierarchical": {"ranks_per_server": 4},
    "nccl_p2p": {"ranks_per_server": 4},
    "nvls_tree": {"ranks_per_server": 2},
    "collnet": {"ranks_per_leaf": 2},
}
ITERATIONS = 2
APART = 2  # milliseconds, longer than the iterations of any


def experiment():
    tunings, operations = {}, []
    for number, (algorithm, kind) in enumerate(KINDS.items()):
        protocol = {} if algorithm in IN_SWITCHES else {"protocol": "ll128"}
        tunings[algorithm] = {"algorithm": algorithm, **TUNING, **protocol, **FURTHER.get(algorithm, {})}
        one = {"collective": kind, "size": "300 kB", "tuning": algorithm, "not_before": f"{APART * number} ms",
               **({"communicator": "leaf"} if algorithm == "nvls" else {})}
        operations += [one] * ITERATIONS
    return {
        "topology": {"kind": "fat_tree", "k": 4, "link_rate": "100 Gb/s", "link_delay": "500 ns", "switch_reduction": {}},
        "workload": {"kind": "program", "ranks": 16, "communicators": {"leaf": [0, 1]}, "tunings": tunings,
                     "operations": operations},
    }


class Identity(ProgramTest):
    def test_no_algorithm_is_left_out(self):
        self.assertEqual(set(KINDS), registered("collectives"))

    def test_same_for_all_numbers_of_processes(self):
        path = self.write(experiment())
        summary, one = self.simulate(path, output="one.h5")
        self.assertTrue(summary["complete"])
        rows = table(one, "collectives")
        self.assertEqual(list(rows["algorithm"]), [name for name in KINDS for _ in range(ITERATIONS)])
        # All ranks at once, and when the one before has ended.
        first = rows["last_start"][::ITERATIONS]
        self.assertEqual(list(first), [APART * 10**9 * number for number in range(len(KINDS))])
        self.assertLess(max(rows["end"][ITERATIONS - 1::ITERATIONS] - first), APART * 10**9)
        for processes in (2, 3, 4, 8):
            with self.subTest(processes=processes):
                other, results = self.simulate(path, output=f"{processes}.h5", ranks=processes)
                self.assert_same_results(one, results, context=f"{processes} processes")
                self.assertEqual(other["fingerprint"], summary["fingerprint"])


if __name__ == "__main__":
    unittest.main()
