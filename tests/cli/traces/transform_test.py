#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""`workload.transform`: end times and bytes that are derived here, for every kind of change and several readers."""

import functools
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import chakra_files as et
from chakra_files import COLL, COMP, node
from weft_testing import EXIT_INPUT, NETWORK, STAR, ProgramTest, table, two_at_a_time, weft

US = 10**6  # picoseconds


class Transform(ProgramTest):
    def experiment(self, workload, *changes):
        return {"topology": STAR, "network": NETWORK, "workload": {**workload, "transform": list(changes)},
                "simulation": {"seed": 1}, "output": {"operations": True}}

    def rows(self, workload, *changes):
        """Label -> (start, end) of rank 0, in microseconds."""
        summary, results = self.simulate(self.experiment(workload, *changes))
        rows = table(results, "operations")
        self.assertEqual(summary["operations"], len(rows["rank"]))
        return {label: (start / US, end / US) for rank, label, start, end
                in zip(rows["rank"], rows["label"], rows["start"], rows["end"]) if rank == 0}

    KERNELS = {"kind": "program", "ranks": 1, "operations": [
        {"rank": 0, "id": "a", "compute": "4 us", "label": "gemm 1"},
        {"rank": 0, "id": "b", "compute": "2 us", "label": "zero", "stream": "host", "after": "a"},
        {"rank": 0, "id": "c", "compute": "3 us", "label": "add 1", "stream": "host", "after": "b"},
        {"rank": 0, "id": "d", "compute": "1 us", "label": "add 2", "stream": "host"},
        {"rank": 0, "id": "e", "compute": "8 us", "label": "gemm 2", "after": "c"}]}

    def test_kernels(self):
        self.assertEqual(self.rows(self.KERNELS), {"gemm 1": (0, 4), "zero": (4, 6), "add 1": (6, 9), "add 2": (9, 10),
                                                   "gemm 2": (9, 17)})
        self.assertEqual(self.rows(self.KERNELS, {"scale": {"kernels": "gemm*", "by": 0.5}}),
                         {"gemm 1": (0, 2), "zero": (2, 4), "add 1": (4, 7), "add 2": (7, 8), "gemm 2": (7, 11)})
        # Of the ranks that are named: of this one, or of others.
        two = {**self.KERNELS, "ranks": 2}
        of = {"scale": {"kernels": "gemm*", "by": 0.5}}
        self.assertEqual(self.rows(two, {"scale": {**of["scale"], "ranks": [0]}}), self.rows(two, of))
        self.assertEqual(self.rows(two, {"scale": {**of["scale"], "ranks": [1]}}), self.rows(two))
        # Operations that waited for "zero" wait for "gemm 1".
        self.assertEqual(self.rows(self.KERNELS, {"remove": {"kernels": "zero"}}),
                         {"gemm 1": (0, 4), "add 1": (4, 7), "add 2": (7, 8), "gemm 2": (7, 15)})
        # "gemm 2" waits for the whole of the fused kernel, which takes 4 us, or half of it.
        self.assertEqual(self.rows(self.KERNELS, {"fuse": {"kernels": "add*"}}),
                         {"gemm 1": (0, 4), "zero": (4, 6), "add 1 and 1 more": (6, 10), "gemm 2": (10, 18)})
        self.assertEqual(self.rows(self.KERNELS, {"remove": {"kernels": "zero"}}, {"fuse": {"kernels": "add*", "by": 0.5}}),
                         {"gemm 1": (0, 4), "add 1 and 1 more": (4, 6), "gemm 2": (6, 14)})

    def collectives(self, *changes):
        et.write(self.folder, [[node(0, COMP, duration=3), node(1, COLL, [0], comm_type=et.ALL_REDUCE, comm_size=400_000),
                                node(2, COLL, [1], comm_type=et.ALL_GATHER, comm_size=100_000), node(3, COMP, [2], duration=2)]
                               for _ in range(4)])
        return self.experiment({"kind": "chakra", "file": "trace"}, *changes)

    def test_collectives(self):
        """A ring sends 2 (n - 1) S bytes in an all-reduce, (n - 1) S in an all-gather of S."""
        def sent(*changes):
            summary, results = self.simulate(self.collectives(*changes))
            self.assertTrue(summary["complete"])
            return summary["bytes_delivered"], table(results, "collectives")["bytes"].tolist(), summary["operations"]
        self.assertEqual(sent(), (9 * 400_000, [400_000, 400_000], 16))
        self.assertEqual(sent({"resize": {"collectives": "all_reduce*", "by": 2.5}}), (9 * 400_000 + 6 * 600_000,
                                                                                      [1_000_000, 400_000], 16))
        self.assertEqual(sent({"resize": {"communicator": 0, "precision": {"from": "fp32", "to": "fp8"}}}),
                         (9 * 100_000, [100_000, 100_000], 16))
        self.assertEqual(sent({"remove": {"collectives": "all_reduce*"}}), (3 * 400_000, [400_000], 12))

    def test_ranks_move(self):
        """Rank 0 sends from host 2, where rank 2 was."""
        workload = {"kind": "program", "ranks": 4, "operations": [{"rank": 0, "send": "5 kB", "to": 1},
                                                                  {"rank": 1, "recv": "5 kB", "from": 0}]}
        _, results = self.simulate(self.experiment(workload, {"move": {0: 2, 2: 3, 3: 0}}))
        rows = table(results, "ranks")
        self.assertEqual(dict(zip(rows["rank"].tolist(), rows["node"].tolist())), {0: 2, 1: 1, 2: 3, 3: 0})

    def test_iterations(self):
        """Three rounds take three times as long: each begins when all of the rank's operations have ended."""
        once, _ = self.simulate(self.collectives())
        summary, results = self.simulate(self.collectives({"repeat": 3}))
        self.assertEqual(summary["simulated_time_ps"], 3 * once["simulated_time_ps"])
        self.assertEqual(summary["bytes_delivered"], 3 * once["bytes_delivered"])
        self.assertEqual(summary["operations"], 3 * once["operations"] + 2 * 4)
        self.assertEqual(len(table(results, "collectives")["id"]), 6)
        self.assertEqual(summary["jobs"][0]["steps"], 3)

    def test_every_kind_of_workload(self):
        (self.folder / "x.goal").write_text("num_ranks 2\nrank 0 {\na: calc 1000\nb: send 8b to 1\nb requires a\n}\n"
                                            "rank 1 {\nrecv 8b from 0\n}\n")
        goal = {"kind": "goal", "file": "x.goal"}
        one, _ = self.simulate(self.experiment(goal))
        two, _ = self.simulate(self.experiment(goal, {"scale": {"kernels": "*", "by": 3}}))
        self.assertEqual(two["simulated_time_ps"], one["simulated_time_ps"] + 2 * US)
        three, _ = self.simulate(self.experiment(goal, {"remove": {"kernels": "*"}}))
        self.assertEqual(three["simulated_time_ps"], one["simulated_time_ps"] - US)
        collective = {"kind": "collective", "collective": "all_reduce", "size": "1 MB"}
        four, _ = self.simulate(self.experiment(collective, {"resize": {"by": 2}}))
        five, _ = self.simulate(self.experiment({**collective, "size": "2 MB"}))
        self.assertEqual(four["simulated_time_ps"], five["simulated_time_ps"])

    def test_describe_says_it(self):
        path = self.write(self.collectives({"scale": {"kernels": "gemm*", "by": 0.5}}, {"remove": {"kernels": "zero"}},
                                           {"fuse": {"kernels": "add*"}}, {"remove": {"collectives": "all_gather*"}},
                                           {"resize": {"communicator": 0, "by": 2}}, {"move": {0: 1, 1: 0}}, {"repeat": 2}))
        out = self.run_weft("describe", path).out
        for line in ("kernels 'gemm*' take 0.5 times as long", "kernels 'zero' are left out",
                     "kernels 'add*' that follow each other on a stream are one, 1 times as long as all of them",
                     "collectives 'all_gather*' are left out", "collectives '*' of communicator 0 have 2 times the bytes",
                     "ranks change places: 0 to that of 1, 1 to that of 0", "all operations 2 times, one after another"):
            self.assertRegex(out, r"transform +" + line.replace("*", r"\*"))

    def test_the_same_on_any_number_of_processes(self):
        path = self.write(self.collectives({"scale": {"kernels": "*", "by": 0.3, "ranks": [1, 2]}}, {"repeat": 2}, {"move": {0: 3, 3: 0}}))
        one, *others = two_at_a_time([functools.partial(self.simulate, path, output=f"{n}.h5", ranks=n)
                                      for n in (None, 2, 3, 4, 8)])
        for summary, results in others:
            self.assertEqual(summary["fingerprint"], one[0]["fingerprint"])
            self.assert_same_results(one[1], results)

    def test_complaints(self):
        for change, part in (({"speed": 2}, "unknown key 'speed'"), ({"scale": {"kernels": "x"}}, "by"),
                             ({"scale": {"kernels": "x", "by": 0}}, "by"), ({"repeat": 0}, "repeat"),
                             ({"scale": {"kernels": "x", "by": 2, "ranks": [0, 4]}}, "rank 4 is out of range: there are ranks 0 to 3"),
                             ({"scale": {"kernels": "x", "by": 2, "ranks": []}}, "found no rank"),
                             ({"remove": {"collectives": "broadcst"}}, "no collective of the workload fits 'broadcst'"),
                             ({"resize": {"communicator": 7, "by": 2}}, "fits '*' in communicator 7"),
                             ({"remove": {}}, "expected 'kernels' or 'collectives'"),
                             ({"move": {0: 1}}, "rank 0 takes the place of rank 1, which stays there"),
                             ({"move": {0: 1, 2: 1}}, "takes that place already"),
                             ({"move": {9: 1}}, "'9' is no rank; there are ranks 0 to 3"),
                             ({"resize": {"precision": {"from": "fp32", "to": "fp31"}}}, "unknown value 'fp31'")):
            with self.subTest(part=part):
                done = weft("run", self.write(self.collectives(change)), "-o", "out.h5", folder=self.folder)
                self.assertEqual(done.code, EXIT_INPUT, done)
                self.assertIn(part, done.err)
        traffic = self.experiment({"kind": "traffic", "pattern": "permutation", "size": "1 kB"}, {"repeat": 2})
        done = weft("run", self.write(traffic), "-o", "out.h5", folder=self.folder)
        self.assertIn("begin at given times, which cannot be repeated", done.err)


if __name__ == "__main__":
    unittest.main()
