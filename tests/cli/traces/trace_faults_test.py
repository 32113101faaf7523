#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Traces that other simulators end with operations left over, or never end: here all operations are executed, or the exit code
shows that they were not."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import chakra_files as et
from chakra_files import COLL, COMP, RECV, SEND, node
from weft_testing import EXIT_INPUT, NETWORK, STAR, ProgramTest, table, weft

MTU = 4096


class TraceFaults(ProgramTest):
    def experiment(self, workload, **network):
        return {"topology": STAR, "network": {**NETWORK, **network}, "workload": workload, "simulation": {"seed": 1},
                "output": {"operations": True}}

    def all_executed(self, nodes, issue="astra_sim", **network):
        """Runs a trace of Chakra; gives the summary and the results."""
        et.write(self.folder, nodes)
        summary, results = self.simulate(self.experiment({"kind": "chakra", "file": "trace", "issue": issue}, **network))
        self.assertTrue(summary["complete"])
        self.assertEqual(summary["operations"], sum(len(of_rank) for of_rank in nodes))
        self.assertEqual(len(table(results, "operations")["rank"]), summary["operations"])
        return summary, results

    def test_operations_left_over_are_no_success(self):
        """Each waits for the other's message before it sends; a third one continues until its end."""
        (self.folder / "x.goal").write_text(
            "num_ranks 3\nrank 0 {\na: recv 8b from 1\nb: send 8b to 1\nb requires a\n}\n"
            "rank 1 {\na: recv 8b from 0\nb: send 8b to 0\nb requires a\n}\nrank 2 {\ncalc 1000\n}\n")
        for network in ({}, {"fidelity": "ideal"}, {"fidelity": "loggp"}):
            path = self.write(self.experiment({"kind": "goal", "file": "x.goal"}, **network))
            for ranks in (None, 2):
                done = weft("run", path, "-o", "out.h5", "--quiet", folder=self.folder, ranks=ranks)
                self.assertEqual(done.code, EXIT_INPUT, done)
                self.assertIn("rank 0: operation 0 (line 3), recv of 8 B from rank 1, tag 0: no such message has come", done.err)
                self.assertIn("deadlock", done.err)

    def test_sizes_around_multiples_of_a_packet(self):
        sizes = [k * MTU + d for k in (1, 2, 7, 64) for d in (-1, 0, 1)]
        summary, _ = self.all_executed([[node(i, SEND, comm_size=size, comm_dst=1) for i, size in enumerate(sizes)],
                                        [node(i, RECV, comm_size=size, comm_src=0) for i, size in enumerate(sizes)]])
        self.assertEqual(summary["bytes_delivered"], sum(sizes))

    def test_empty_collectives_and_messages(self):
        kinds = (et.ALL_REDUCE, et.ALL_GATHER, et.ALL_TO_ALL, et.REDUCE_SCATTER, et.BROADCAST)
        nodes = [[node(i, COLL, [i - 1] if i else [], comm_type=kind, comm_size=0) for i, kind in enumerate(kinds)]
                 for _ in range(4)]
        nodes[0].append(node(9, SEND, [4], comm_size=0, comm_dst=1))
        nodes[1].append(node(9, RECV, [4], comm_size=0, comm_src=0))
        self.all_executed(nodes)

    def test_many_messages_of_one_source_and_tag(self):
        """Sizes tell them apart: a wrong match would be an error."""
        sizes = [(i * 7919) % 30_000 + 1 for i in range(200)]
        for issue in ("astra_sim", "streams"):
            self.all_executed([[node(i, SEND, comm_size=size, comm_dst=1, comm_tag=5) for i, size in enumerate(sizes)],
                               [node(i, RECV, comm_size=size, comm_src=0, comm_tag=5) for i, size in enumerate(sizes)]], issue)

    def test_messages_one_after_another_have_ids_of_their_own(self):
        """Each is sent when the one before it has arrived and been answered, with one of two tags: whatever the program uses
        again of a message that is done, no row of another one is lost, and each recv gets the bytes of its own send."""
        rounds, there, back = 60, [], []
        for i in range(rounds):
            to, answer = 100 + i, 5000 - i
            before = [2 * i - 1] if i else []
            there += [node(2 * i, SEND, before, comm_size=to, comm_dst=1, comm_tag=i % 2),
                      node(2 * i + 1, RECV, [2 * i], comm_size=answer, comm_src=1, comm_tag=i % 2)]
            back += [node(2 * i, RECV, before, comm_size=to, comm_src=0, comm_tag=i % 2),
                     node(2 * i + 1, SEND, [2 * i], comm_size=answer, comm_dst=0, comm_tag=i % 2)]
        _, results = self.all_executed([there, back])
        messages = table(results, "messages")
        self.assertEqual(len(set(messages["id"])), 2 * rounds)
        for source, sizes in ((0, [100 + i for i in range(rounds)]), (1, [5000 - i for i in range(rounds)])):
            own = messages["source"] == source
            order = messages["issued"][own].argsort()
            self.assertEqual(list(messages["bytes"][own][order]), sizes)

    def test_more_than_two_gibibytes(self):
        """A message and a collective; on the network that knows messages, whose work does not grow with their bytes."""
        size = 5 * 2**31 + 1
        summary, _ = self.all_executed([[node(0, SEND, comm_size=size, comm_dst=1)], [node(0, RECV, comm_size=size, comm_src=0)]],
                                       fidelity="ideal")
        self.assertEqual(summary["bytes_delivered"], size)
        (self.folder / "x.goal").write_text(f"num_ranks 2\nrank 0 {{\nsend {size}b to 1\n}}\nrank 1 {{\nrecv {size}b from 0\n}}\n")
        summary, _ = self.simulate(self.experiment({"kind": "goal", "file": "x.goal"}, fidelity="ideal"))
        self.assertEqual((summary["bytes_delivered"], summary["operations"]), (size, 2))

    def test_ids_given_twice(self):
        et.write(self.folder, [[node(3, COMP), node(3, COMP)]])
        done = weft("run", self.write(self.experiment({"kind": "chakra", "file": "trace"})), "-o", "out.h5", folder=self.folder)
        self.assertEqual(done.code, EXIT_INPUT, done)
        self.assertIn("trace.0.et: node 3 'node 3': another node has this id", done.err)

    def test_operators_of_the_processor(self):
        """As in PyTorch's traces: a call on the processor that only starts a collective, and the kernel behind it; the
        processor's operations continue while the accelerator works."""
        nodes = [[node(1, COMP, duration=2, is_cpu_op=True), node(2, COLL, [1], duration=3, is_cpu_op=True),
                  node(3, COLL, [2], comm_type=et.ALL_REDUCE, comm_size=100_000, is_cpu_op=False),
                  node(4, COMP, [2], duration=4, is_cpu_op=True), node(5, COMP, [3, 4], duration=1, is_cpu_op=False)]
                 for _ in range(2)]
        for issue in ("astra_sim", "streams"):
            self.all_executed(nodes, issue)


if __name__ == "__main__":
    unittest.main()
