#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Ranks on whole servers that are drawn from the machine: what a ring then sends between leaves."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from weft_testing import ProgramTest, table  # noqa: E402

GPUS, SERVERS_PER_LEAF = 8, 4
SIZE = 4 * 2**20  # B
MACHINE = {"kind": "leaf_spine", "leaves": 4, "hosts_per_leaf": GPUS * SERVERS_PER_LEAF, "spines": 2, "link_rate": "400 Gb/s",
           "link_delay": "500 ns", "server": {"design": "hgx_h100"}}


def experiment(placement, ranks=64, size=SIZE):
    return {"topology": MACHINE, "network": {"fidelity": "packet"}, "workload": {
        "kind": "collective", "collective": "all_reduce", "algorithm": "ring", "protocol": "simple", "ranks_per_server": GPUS,
        "size": f"{size} B", "ranks": ranks, "placement": placement}}


class RandomServers(ProgramTest):
    def servers_of(self, path):
        node = table(path, "ranks")["node"].tolist()
        for first in range(0, len(node), GPUS):
            self.assertEqual([host - node[first] for host in node[first:first + GPUS]], list(range(GPUS)))
        return [host // GPUS for host in node[::GPUS]]

    def test_a_ring_crosses_leaves_where_neighbours_are_on_other_leaves(self):
        """NCCL's rings visit servers in the order of ranks. In an all-reduce each server sends 2 (n - 1) / n S to the next one
        (Thakur, Rabenseifner, Gropp 2005, doi:10.1177/1094342005051521), over a spine if that has another leaf."""
        ranks, crossed = 64, []
        for placement in ("packed", "random_servers", {"kind": "random_servers", "seed": 3}):
            _, path = self.simulate(experiment(placement))
            servers = self.servers_of(path)
            self.assertEqual(len(set(servers)), ranks // GPUS)
            leaves = [server // SERVERS_PER_LEAF for server in servers]
            crossed.append(sum(leaves[i - 1] != leaf for i, leaf in enumerate(leaves)))
            links = table(path, "links")
            up = [payload for payload, kind, name in zip(links["payload_bytes"], links["link_class"], links["from_name"])
                  if kind == "leaf-spine" and name.startswith("leaf")]
            self.assertEqual(sum(up), crossed[-1] * 2 * (ranks - 1) * SIZE // ranks)
        self.assertEqual(crossed[0], 2)
        self.assertGreater(min(crossed[1:]), 2)

    def test_the_same_on_any_number_of_processes(self):
        text = experiment("random_servers", size=SIZE // 16)
        _, one = self.simulate(text, output="one.h5")
        for ranks in (2, 3, 4, 8):
            _, other = self.simulate(text, output="other.h5", ranks=ranks)
            self.assert_same_results(one, other)


if __name__ == "__main__":
    unittest.main()
