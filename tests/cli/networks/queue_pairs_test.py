#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Several queue pairs per connection: the queue pair of each message and each part, by hand; fewer collisions of ECMP; the
same results on any number of processes."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from weft_testing import EXIT_INPUT, FAT_TREE, NETWORK, STAR, ProgramTest, table, weft

UNIT = 128  # bytes: parts are multiples (NCCL, src/transport/net_ib.cc)


def connections(pairs, data):
    return {**NETWORK, "queues": "output", "connections": {"queue_pairs": pairs, "data": data}}


def parts(size, pairs):
    """DIVUP(DIVUP(size, pairs), 128) * 128 bytes each, the last one the rest; an empty message is one part."""
    share = max(1, -(-size // (pairs * UNIT))) * UNIT
    return [min(share, size - at) for at in range(0, max(size, 1), share)]


class QueuePairs(ProgramTest):
    def run_sends(self, sizes, pairs, data):
        workload = {"kind": "traffic", "pattern": "pairs", "pairs": [[0, 1]], "size": f"{sizes[0]} B",
                    "start": [f"{i} us" for i in range(len(sizes))]}
        _, results = self.simulate({"topology": STAR, "network": connections(pairs, data), "workload": workload})
        rows = table(results, "queue_pairs")
        mine = rows["host"] == 0
        return {int(n): (int(m), int(b)) for n, m, b in
                zip(rows["number"][mine], rows["messages"][mine], rows["bytes"][mine])}, results

    def test_messages_in_turn(self):
        counters, results = self.run_sends([5000] * 10, 4, "round_robin")
        # Messages 0, 4, 8 on queue pair 0, and so on.
        self.assertEqual(counters, {0: (3, 15000), 1: (3, 15000), 2: (2, 10000), 3: (2, 10000)})
        self.assertEqual(len(table(results, "messages")["id"]), 10)

    def test_parts(self):
        for size in [0, 1, 100, 128, 129, 300, 511, 512, 513, 1_000_000]:
            counters, results = self.run_sends([size] * 3, 4, "split")
            due = parts(size, 4)
            self.assertEqual(sum(due), size)
            self.assertEqual(counters, {n: (3, 3 * due[n]) if n < len(due) else (0, 0) for n in range(4)}, size)
            self.assertEqual(sorted(table(results, "messages")["bytes"]), sorted(due * 3))
        self.assertEqual(parts(1_000_000, 4), [250_112] * 3 + [249_664])

    def test_collectives_take_slices_in_order(self):
        def ring(network):
            workload = {"kind": "collective", "collective": "all_reduce", "algorithm": "ring", "ranks": 4,
                        "size": "3 MB", "iterations": 2}
            summary, results = self.simulate({"topology": STAR, "network": network, "workload": workload})
            self.assertTrue(summary["complete"])
            return summary, table(results, "queue_pairs"), table(results, "collectives")

        one, _, sent = ring(connections(1, "round_robin"))
        for data in ("round_robin", "split"):
            several, rows, collectives = ring(connections(4, data))
            self.assertEqual(several["bytes_delivered"], one["bytes_delivered"])
            self.assertEqual(collectives["sent_bytes"].tolist(), sent["sent_bytes"].tolist())
            for host in range(4):
                mine = rows["messages"][(rows["host"] == host)]
                self.assertEqual(len(mine), 4)  # one connection, to the next rank of the ring
                self.assertGreater(mine.min(), 0)
                if data == "round_robin":
                    self.assertLessEqual(mine.max() - mine.min(), 1)
                    self.assertEqual(mine.sum(), collectives["messages"].sum() / 4)

    def test_splitting_is_what_a_workload_with_queue_pairs_does(self):
        """A flow whose size is a multiple of 4 x 128 B: the same four messages on the same four queue pairs."""
        flow = {"kind": "traffic", "pattern": "permutation", "size": "1 MiB"}
        by_network, a = self.simulate({"topology": FAT_TREE, "network": connections(4, "split"), "workload": flow},
                                      output="a.h5")
        by_workload, b = self.simulate({"topology": FAT_TREE, "network": {**NETWORK, "queues": "output"},
                                        "workload": {**flow, "queue_pairs": 4}}, output="b.h5")
        self.assertEqual(by_network["simulated_time_ps"], by_workload["simulated_time_ps"])
        for name in ["queue_pairs", "links", "messages"]:
            for column, values in table(a, name).items():
                if column != "tag":
                    self.assertEqual(list(values), list(table(b, name)[column]), f"{name}/{column}")

    def test_more_queue_pairs_collide_less(self):
        """Goodput of a permutation on a k=4 fat-tree, mean of hosts and of seeds: max-min shares of single paths are 0.595 of
        the links' rate, and 0.864 with four paths per flow."""
        def goodput(pairs):
            total = 0
            for seed in range(1, 6):
                _, results = self.simulate({"topology": FAT_TREE, "network": connections(pairs, "split"),
                                            "workload": {"kind": "traffic", "pattern": "permutation", "size": "2 MiB"},
                                            "simulation": {"seed": seed}})
                rows = table(results, "messages")
                ends = [rows["delivered"][rows["source"] == host].max() for host in range(16)]
                total += sum(2**21 * 8 / (end * 1e-12) / 400e9 for end in ends) / 16
            return total / 5

        one, four = goodput(1), goodput(4)
        self.assertGreater(four, 1.15 * one)
        self.assertLess(four, 1)

    def test_identity(self):
        workload = {"kind": "collective", "collective": "all_reduce", "algorithm": "ring", "ranks": 16,
                    "size": "256 kB", "iterations": 1}
        for data in ("round_robin", "split"):
            path = self.write({"topology": FAT_TREE, "network": {**connections(3, data), "congestion_control": "dcqcn",
                                                                 "loss": [{"link": "all", "probability": 0.001}]},
                               "workload": workload}, f"{data}.yaml")
            one = self.simulate(path, output="one.h5")
            self.assertGreater(one[0]["congestion"]["packets_lost"], 0)
            for ranks in (2, 3, 4, 8):
                other = self.simulate(path, output="other.h5", ranks=ranks)
                self.assertEqual(one[0]["fingerprint"], other[0]["fingerprint"], ranks)
                self.assert_same_results(one[1], other[1])
            reference = self.simulate(path, "--engine", "ns3-default", output="reference.h5")
            self.assertEqual(one[0]["fingerprint"], reference[0]["fingerprint"])

    def test_sends_and_receives(self):
        """Two-sided: a receive is over when all parts have arrived, a send when all have been acknowledged."""
        sizes = [100_000, 1, 0, 70_000]
        operations = [{"rank": 0, "send": f"{size} B", "to": 1, "tag": 3} for size in sizes]
        operations += [{"rank": 1, "recv": f"{size} B", "from": 0, "tag": 3} for size in sizes]
        for data in ("round_robin", "split"):
            _, results = self.simulate({
                "topology": STAR, "network": connections(3, data), "output": {"operations": True},
                "workload": {"kind": "program", "ranks": 2, "operations": operations}})
            rows, messages = table(results, "operations"), table(results, "messages")
            at = 0
            for operation, size in enumerate(sizes):
                count = len(parts(size, 3)) if data == "split" else 1
                mine = slice(at, at + count)
                at += count
                self.assertEqual(messages["bytes"][mine].sum(), size)
                self.assertEqual(rows["end"][(rows["rank"] == 1)][operation], messages["delivered"][mine].max())
                self.assertGreater(rows["end"][(rows["rank"] == 0)][operation], messages["delivered"][mine].max())
            self.assertEqual(at, len(messages["id"]))

    def test_refusals(self):
        for keys, text in [({"queue_pairs": 0}, "from 1 to 128"), ({"queue_pairs": 129}, "from 1 to 128"),
                           ({"data": "halves"}, "round_robin"), ({"pairs": 2}, "pairs")]:
            path = self.write({"topology": STAR, "network": {**NETWORK, "connections": keys},
                               "workload": {"kind": "traffic", "pattern": "permutation", "size": "1 kB"}}, "wrong.yaml")
            done = weft("run", path, folder=self.folder)
            self.assertEqual(done.code, EXIT_INPUT, done)
            self.assertRegex(done.err, r"wrong.yaml:\d+: ")
            self.assertIn(text, done.err)


if __name__ == "__main__":
    unittest.main()
