# SPDX-License-Identifier: GPL-2.0-only
# Time limit: 300 s
"""Warps that copy data of pairs, receivers that read, and rings through the host's memory: the same file on 1, 2, 3, 4 and 8 MPI processes."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from weft_testing import NETWORK, ProgramTest  # noqa: E402

EXCHANGE = {"kind": "collective", "collective": "all_to_all", "algorithm": "nccl", "size": "12 MB"}
FABRIC = {"kind": "leaf_spine", "leaves": 8, "hosts_per_leaf": 2, "spines": 2,
          "link_rate": "200 Gb/s", "link_delay": "100 ns"}  # fmt: skip
CASES = {
    "in_a_server": ({"kind": "server", "design": "dgx_a100"}, {**EXCHANGE, "ranks": 8}),
    "over_servers": ({**FABRIC, "server": {"design": "dgx_a100", "wiring": "rail"}}, {**EXCHANGE, "ranks": 16}),
    "shared_nics": ({**FABRIC, "hosts_per_leaf": 1, "server": {"design": "dgx_a100", "nics": 4, "gpudirect": False}},
                    {**EXCHANGE, "collective": "all_reduce", "algorithm": "nccl_ring", "ranks": 16}),
}


class Identity(ProgramTest):
    def test_same_for_all_numbers_of_processes(self):
        for name, (topology, workload) in CASES.items():
            text = {"topology": topology, "network": NETWORK, "workload": workload, "simulation": {"seed": 1}}
            path = self.write(text, f"{name}.yaml")
            one, expected = self.simulate(path, output=f"{name}.h5")
            self.assertGreater(one["messages"], 0)
            for ranks, partition in ((2, "auto"), (3, "random"), (4, "groups"), (8, "random")):
                words = ["--set", f"simulation.partition={partition}"]
                summary, other = self.simulate(path, *words, output=f"{name}{ranks}.h5", ranks=ranks)
                self.assertEqual(summary["fingerprint"], one["fingerprint"], (name, ranks))
                self.assert_same_results(expected, other, context=f"{name} on {ranks}")


if __name__ == "__main__":
    unittest.main()
