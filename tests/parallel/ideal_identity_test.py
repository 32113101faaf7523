# SPDX-License-Identifier: GPL-2.0-only
# Time limit: 300 s
"""The ideal network gives the same file on 1, 2, 3, 4 and 8 MPI processes, also where servers are dealt out at random."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from weft_testing import FAT_TREE, ProgramTest  # noqa: E402

SERVERS = {
    "kind": "leaf_spine", "leaves": 2, "hosts_per_leaf": 4, "spines": 2, "link_rate": "400 Gb/s", "link_delay": "500 ns",
    "server": {"design": "hgx_h100", "nics": 2},
}  # fmt: skip
TORUS = {"kind": "torus", "dims": [4, 4], "link_rate": "100 Gb/s", "link_delay": "100 ns"}
CASES = {
    "ring": (FAT_TREE, {"kind": "collective", "collective": "all_reduce", "algorithm": "ring", "size": "3 MB",
                        "channels": 2, "iterations": 2}),
    "all to all of servers": (SERVERS, {"kind": "collective", "collective": "all_to_all", "algorithm": "nccl_p2p",
                                        "size": "1 MB", "ranks_per_server": 8}),
    "ties": (FAT_TREE, {"kind": "traffic", "pattern": "all_to_all", "size": "10 kB", "queue_pairs": 2}),
    "poisson": (TORUS, {"kind": "traffic", "pattern": "permutation", "size": "100 kB",
                        "start": {"process": "poisson", "load": 0.7, "count": 40}}),
}  # fmt: skip


class Identity(ProgramTest):
    def test_same_for_all_numbers_of_processes(self):
        for name, (topology, workload) in CASES.items():
            text = {"topology": topology, "network": {"fidelity": "ideal"}, "workload": workload,
                    "output": {"operations": True}}  # fmt: skip
            path = self.write(text, f"{name.replace(' ', '_')}.yaml")
            one, expected = self.simulate(path, output=f"{path.stem}.h5")
            self.assertGreater(one["messages"], 0)
            for ranks, partition in ((2, "auto"), (3, "random"), (4, "groups"), (8, "random")):
                words = ["--set", f"simulation.partition={partition}"]
                summary, other = self.simulate(path, *words, output=f"{path.stem}{ranks}.h5", ranks=ranks)
                self.assertEqual(summary["fingerprint"], one["fingerprint"], (name, ranks))
                self.assert_same_results(expected, other, context=f"{name} on {ranks}")


if __name__ == "__main__":
    unittest.main()
