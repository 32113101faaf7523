#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""A run ends with success only when all is done: every size, no overtaking, empty operations, ranks without nodes."""

import collections
import pathlib
import sys
import unittest

import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from weft_testing import FAT_TREE, NETWORK, STAR, ProgramTest, attributes, picoseconds_to_send, table

OVERHEAD = 62 + 20  # header and wire overhead of NETWORK
RATE = 400 * 10**9
DELAY = 500_000


def star(hosts):
    return {**STAR, "hosts": hosts}


def packets_of(size, mtu):
    return max(1, -(-size // mtu))


class CompletionTest(ProgramTest):
    def complete(self, workload, topology=None, network=None, words=(), ranks=None, **parts):
        """Runs; everything must be complete. Gives the summary and /messages."""
        experiment = {"topology": topology or STAR, "network": {**NETWORK, **(network or {})}, "workload": workload,
                      "output": {"operations": True}, **parts}
        summary, results = self.simulate(experiment, *words, ranks=ranks)
        self.assertTrue(summary["complete"])
        self.assertEqual(attributes(results)["complete"], 1)
        messages = table(results, "messages")
        self.assertEqual(summary["messages"], len(messages["id"]))
        self.assertEqual(summary["bytes_delivered"], messages["bytes"].sum())
        self.assertTrue((messages["delivered"] > messages["issued"]).all())
        self.assertEqual(list(messages["id"]), sorted(set(messages["id"])))
        ranks_table = table(results, "ranks")
        self.assertEqual(ranks_table["messages_sent"].sum(), len(messages["id"]))
        self.assertEqual(ranks_table["messages_received"].sum(), len(messages["id"]))
        self.assertEqual(ranks_table["bytes_received"].sum(), messages["bytes"].sum())
        self.results = results
        return summary, messages


class Sizes(CompletionTest):
    def check_sizes(self, sizes, mtu, **network):
        """One message after the other, so that each finds an idle network and takes its ideal time."""
        operations = []
        for i, size in enumerate(sizes):
            after = {"after": f"recv {i - 1}"} if i else {}
            # An empty message back, with its own tag, starts the next send.
            operations += [
                {"rank": 0, "id": f"send {i}", "send": f"{size} B", "to": 1, **({"after": f"go {i - 1}"} if i else {})},
                {"rank": 1, "id": f"recv {i}", "recv": f"{size} B", "from": 0, **after},
                {"rank": 1, "send": "0 B", "to": 0, "tag": 9, "after": f"recv {i}"},
                {"rank": 0, "id": f"go {i}", "recv": "0 B", "from": 1, "tag": 9},
            ]
        workload = {"kind": "program", "ranks": 2, "operations": operations}
        _, messages = self.complete(workload, network={"mtu": f"{mtu} B", **network})
        data = messages["source"] == 0
        self.assertEqual(list(messages["bytes"][data]), list(sizes))
        self.assertEqual(list(messages["packets"][data]), [packets_of(size, mtu) for size in sizes])
        took = messages["delivered"] - messages["issued"]
        numpy.testing.assert_array_equal(took[data], messages["ideal"][data])

    def test_every_size_up_to_four_packets(self):
        self.check_sizes(range(0, 4 * 16 + 2), 16, ack="none")

    def test_around_multiples_of_the_mtu(self):
        sizes = [k * 4096 + d for k in range(1, 4) for d in (-1, 0, 1)]
        self.check_sizes([0, 1, *sizes], 4096, ack="none")

    def test_smallest_mtu(self):
        self.check_sizes(range(0, 5), 1, ack="none")

    def test_with_acks_and_every_window(self):
        """A window below the MTU sends packet by packet; all arrives all the same."""
        for window in ["1 B", "1000 B", "1999 B", "2000 B", "1 MiB"]:
            for size in [0, 1, 999, 1000, 1001, 1999, 2000, 2001, 3000]:
                with self.subTest(window=window, size=size):
                    workload = {"kind": "traffic", "pattern": "all_to_all", "ranks": 3, "size": f"{size} B"}
                    _, messages = self.complete(workload, network={"mtu": "1000 B", "window": window})
                    self.assertEqual(list(messages["bytes"]), [size] * 6)

    def test_fewer_bytes_than_queue_pairs(self):
        for size, count in [(0, 1), (1, 1), (3, 3), (4, 4), (5, 4), (4001, 4)]:
            with self.subTest(size=size):
                workload = {"kind": "traffic", "pattern": "pairs", "pairs": [[0, 1]], "size": f"{size} B", "queue_pairs": 4}
                _, messages = self.complete(workload)
                self.assertEqual(len(messages["id"]), count)
                self.assertEqual(messages["bytes"].sum(), size)

    def test_above_4_gib(self):
        """Full packets follow each other without a gap; the last one waits for the one before it at the switch."""
        size, mtu = 2**32 + 5, 65535
        workload = {"kind": "traffic", "pattern": "pairs", "pairs": [[0, 1]], "size": f"{size} B"}
        _, messages = self.complete(workload, star(2), {"mtu": f"{mtu} B", "ack": "none"})
        full, rest = divmod(size, mtu)
        self.assertEqual((full, rest), (65537, 6))
        self.assertEqual(messages["bytes"][0], size)
        self.assertEqual(messages["packets"][0], full + 1)
        expected = (full + 1) * picoseconds_to_send(mtu + OVERHEAD, RATE) + picoseconds_to_send(rest + OVERHEAD, RATE)
        self.assertEqual(messages["delivered"][0], expected + 2 * DELAY)
        links = table(self.results, "links")
        used = links["payload_bytes"] > 0
        self.assertEqual(list(links["payload_bytes"][used]), [size, size])
        self.assertEqual(list(links["bytes"][used]), [size + (full + 1) * OVERHEAD] * 2)

    def test_above_4_gib_with_acks(self):
        size = 2**32 + 4095
        workload = {"kind": "traffic", "pattern": "pairs", "pairs": [[1, 0]], "size": f"{size} B"}
        _, messages = self.complete(workload, star(2), {"mtu": "65535 B", "window": "1 MiB"})
        self.assertEqual(messages["bytes"][0], size)

    def test_collective_above_4_gib(self):
        """Two ranks: each sends its half to the other, reduced, and gets the other half: S per rank."""
        size = 2**32 + 2
        workload = {"kind": "collective", "collective": "all_reduce", "size": f"{size} B"}
        summary, _ = self.complete(workload, star(2), {"mtu": "65535 B", "ack": "none"})
        self.assertEqual(summary["bytes_delivered"], 2 * size)
        self.assertEqual(summary["collectives"][0]["bytes"], size)


class Order(CompletionTest):
    def check_one_tag(self, sizes, queue_pair, ranks=None, after=lambda i: {}):
        """The i-th recv of a tag takes the message of the i-th send, and is complete when that has arrived."""
        operations = [{"rank": 0, "id": "first", "compute": "50 us"}]
        operations += [{"rank": 0, "send": f"{size} B", "to": 1, "tag": 5, "queue_pair": queue_pair(i), **after(i)}
                       for i, size in enumerate(sizes)]
        operations += [{"rank": 1, "recv": f"{size} B", "from": 0, "tag": 5} for size in sizes]
        workload = {"kind": "program", "ranks": 2, "operations": operations}
        _, messages = self.complete(workload, network={"mtu": "1000 B"}, ranks=ranks)
        self.assertEqual(sorted(messages["bytes"]), sorted(sizes))
        self.assertEqual(len(set(sizes)), len(sizes), "sizes name the messages here")
        arrived = dict(zip(messages["bytes"].tolist(), messages["delivered"].tolist()))
        rows = table(self.results, "operations")
        received = rows["end"][rows["kind"] == 3]  # in program order
        self.assertEqual(list(received), [arrived[size] for size in sizes])
        return [arrived[size] for size in sizes]

    def test_many_messages_with_one_tag(self):
        sizes = [(i * 7919) % 5003 for i in range(300)]
        arrived = self.check_one_tag(sizes, lambda i: 0)
        self.assertEqual(arrived, sorted(arrived), "a message overtook another on the same queue pair")

    def test_one_tag_on_several_queue_pairs(self):
        """A short message on a separate queue pair arrives before a long one that was sent first."""
        for ranks in [None, 2]:
            with self.subTest(ranks=ranks):
                arrived = self.check_one_tag([100_000, 1, 50_000, 0, 2000, 3], lambda i: i % 3, ranks)
                self.assertNotEqual(arrived, sorted(arrived), "nothing overtook anything: this tests nothing")

    def test_one_tag_with_a_late_first_message(self):
        """A dependency holds back the first send: the others are on their way before it, under the same tag."""
        arrived = self.check_one_tag([4000, 10, 3000], lambda i: 0, after=lambda i: {} if i else {"after": "first"})
        self.assertGreater(arrived[0], arrived[2])

    def test_messages_before_their_recv(self):
        workload = {"kind": "program", "ranks": 2, "operations": [
            {"rank": 0, "send": "1 kB", "to": 1},
            {"rank": 0, "send": "2 kB", "to": 1},
            {"rank": 1, "id": "busy", "compute": "1 ms"},
            {"rank": 1, "recv": "1 kB", "from": 0, "after": "busy"},
            {"rank": 1, "recv": "2 kB", "from": 0, "after": "busy"},
        ]}
        self.complete(workload)
        rows = table(self.results, "operations")
        self.assertEqual(list(rows["end"][rows["kind"] == 3]), [10**9, 10**9])


class Collectives(CompletionTest):
    KINDS = ["all_reduce", "all_gather", "reduce_scatter", "broadcast"]

    def collective(self, kind, **parameters):
        return {"kind": "collective", "collective": kind, **parameters}

    def test_one_rank(self):
        for kind in self.KINDS:
            with self.subTest(kind):
                summary, messages = self.complete(self.collective(kind, ranks=1, size="1 MiB", iterations=3))
                self.assertEqual(len(messages["id"]), 0)
                self.assertEqual(len(summary["collectives"]), 3)

    def test_one_host(self):
        self.complete(self.collective("all_reduce", size="1 MiB"), star(1))

    def test_no_bytes(self):
        for kind in self.KINDS:
            with self.subTest(kind):
                summary, messages = self.complete(self.collective(kind, size="0 B", iterations=2))
                self.assertEqual(len(messages["id"]), 0)
                self.assertEqual([one["busbw_GBps"] for one in summary["collectives"]], [0, 0])

    def test_few_bytes(self):
        """Less than a byte for each rank, and sizes that do not divide. Bytes on the network by nccl-tests' counting."""
        for kind in self.KINDS:
            for size in [1, 2, 3, 4, 5, 7, 4095, 4097, 100_001]:
                with self.subTest(f"{kind} of {size} B"):
                    summary, _ = self.complete(self.collective(kind, size=f"{size} B", channels=2))
                    self.assertEqual(summary["bytes_delivered"], (2 if kind == "all_reduce" else 1) * 3 * size)


class Places(CompletionTest):
    ALL_TO_ALL = {"kind": "traffic", "pattern": "all_to_all", "size": "5 kB"}

    def test_more_mpi_ranks_than_nodes(self):
        """Three nodes on eight ranks: some have nothing to do."""
        for partition in ["auto", "pods", "metis", "random"]:
            with self.subTest(partition):
                _, messages = self.complete(self.ALL_TO_ALL, star(2), ranks=8, simulation={"partition": partition})
                self.assertEqual(list(messages["bytes"]), [5000, 5000])

    def test_more_mpi_ranks_than_pods(self):
        """Four pods on five and eight ranks."""
        for ranks in [5, 8]:
            for partition in ["auto", "pods"]:
                with self.subTest(ranks=ranks, partition=partition):
                    _, messages = self.complete(self.ALL_TO_ALL, FAT_TREE, ranks=ranks, simulation={"partition": partition})
                    self.assertEqual(len(messages["id"]), 16 * 15)

    def test_mpi_ranks_without_ranks_of_the_job(self):
        """Two ranks on the first of four pods; the other processes have switches and idle hosts only."""
        workload = {"kind": "collective", "collective": "all_reduce", "ranks": 2, "size": "1 MB"}
        summary, _ = self.complete(workload, FAT_TREE, ranks=4, simulation={"partition": "pods"})
        self.assertEqual(summary["bytes_delivered"], 2 * 10**6)
        self.assertEqual(len(table(self.results, "ranks")["rank"]), 2)

    def test_all_ports_of_a_machine(self):
        """The largest fan-in that a small machine has: every host to every other, eight queue pairs each."""
        _, messages = self.complete({**self.ALL_TO_ALL, "queue_pairs": 8}, FAT_TREE)
        count = collections.Counter(zip(messages["source"].tolist(), messages["destination"].tolist()))
        self.assertEqual(set(count.values()), {8})
        self.assertEqual(len(count), 16 * 15)


if __name__ == "__main__":
    unittest.main()
