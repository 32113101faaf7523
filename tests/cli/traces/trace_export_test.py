#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""`weft export chakra|goal`: an exported trace that is read again is the same."""

import functools
import json
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from weft_testing import EXIT_INPUT, NETWORK, STAR, ProgramTest, table, two_at_a_time, weft

TORUS = {"kind": "torus", "dims": [2, 2], "link_rate": "400 Gb/s", "link_delay": "500 ns"}
# Groups, kinds and streams of all sorts; sends across collectives.
PROGRAM = {"kind": "program", "ranks": 4, "communicators": {"a": [0, 2], "b": [3, 1]}, "operations": [
    {"rank": "all", "id": "x", "compute": "1234567 ps"},
    {"id": "y", "collective": "broadcast", "root": 1, "size": "70 kB", "communicator": "b", "after": "x"},
    {"id": "z", "collective": "reduce_scatter", "size": "70 kB", "communicator": "a", "after": "x"},
    {"id": "w", "collective": "all_reduce", "size": "700 kB", "after": ["x"]},
    {"rank": 0, "id": "s", "send": "90 kB", "to": 3, "tag": 9, "after": "x"},
    {"rank": 3, "id": "r", "recv": "90 kB", "from": 0, "tag": 9},
    {"rank": 3, "id": "v", "compute": "2 us", "after": ["r", "w"], "stream": "host"},
    {"id": "u", "collective": "all_gather", "size": "8 kB", "communicator": "a", "after": "z"}]}
MODEL = {"model_type": "gpt2", "n_embd": 64, "n_head": 4, "n_layer": 2, "n_positions": 128, "vocab_size": 512}
TRAINING = {"kind": "training", "model": "model.json",
            "device": "h100-sxm", "parallelism": {"tensor": 2, "data": 2}, "micro_batch": 1, "global_batch": 4,
            "sequence_length": 64, "steps": 1, "algorithm": "ring"}


class TraceExport(ProgramTest):
    def experiment(self, workload, topology=STAR):
        (self.folder / "model.json").write_text(json.dumps(MODEL))
        return {"topology": topology, "network": NETWORK, "workload": workload, "simulation": {"seed": 1}}

    def export(self, *words):
        return self.run_weft("export", *words)

    def test_chakra_read_again_has_the_same_fingerprint_on_any_number_of_processes(self):
        for name, workload in (("program", PROGRAM), ("training", TRAINING)):
            with self.subTest(name=name):
                one, results = self.simulate(self.experiment(workload), output="one.h5")
                self.export("chakra", self.write(self.experiment(workload)), "-o", "again", "--quiet")
                path = self.write(self.experiment({"kind": "chakra", "file": "again", "issue": "streams"}), "again.yaml")
                runs = two_at_a_time([functools.partial(self.simulate, path, output=f"again{n}.h5", ranks=n)
                                      for n in (None, 2, 3, 4, 8)])
                for summary, again in runs:
                    self.assertEqual(summary["fingerprint"], one["fingerprint"])
                    self.assertEqual(table(again, "ranks")["finished"].tolist(), table(results, "ranks")["finished"].tolist())

    def links(self, results):
        rows = table(results, "links")
        return dict(zip(rows["id"].tolist(), zip(rows["payload_bytes"].tolist(), rows["data_packets"].tolist())))

    def test_goal_with_steps_moves_the_same_bytes_over_every_link(self):
        collective = {"kind": "collective", "size": "300000 B", "channels": 2}
        cases = [("program", PROGRAM), ("training", TRAINING)] + [
            (f"{kind}, {algorithm}", {**collective, "collective": kind, "algorithm": algorithm})
            for kind, algorithm in (("all_reduce", "ring"), ("all_reduce", "double_binary_tree"),
                                    ("all_reduce", "halving_doubling"), ("all_to_all", "pairwise"),
                                    ("broadcast", "ring"), ("all_gather", "bruck"))]
        for name, workload in cases:
            with self.subTest(name=name):
                _, results = self.simulate(self.experiment(workload, TORUS), output="one.h5")
                self.export("goal", self.write(self.experiment(workload, TORUS)), "--steps", "-o", "steps.bin", "--quiet")
                self.export("goal", "experiment.yaml", "--steps", "-o", "steps.goal", "--quiet")
                binary, again = self.simulate(self.experiment({"kind": "goal", "file": "steps.bin"}, TORUS))
                self.assertEqual(self.links(again), self.links(results))
                text, _ = self.simulate(self.experiment({"kind": "goal", "file": "steps.goal"}, TORUS))
                self.assertEqual(text["fingerprint"], binary["fingerprint"])

    def test_goal_with_steps_takes_the_same_time(self):
        """Without ACKs there are no credits, which GOAL does not have. One channel, and two compute times."""
        for tuning in ({}, {"launch_latency": "5 us", "step_latency": "700 ns"}, {"reduce_rate": "800 Gb/s"}):
            workload = {"kind": "collective", "collective": "all_reduce", "algorithm": "ring", "size": "4000 kB", **tuning}
            experiment = {**self.experiment(workload), "network": {**NETWORK, "ack": "none"}}
            one, _ = self.simulate(experiment)
            self.export("goal", self.write(experiment), "--steps", "-o", "steps.goal", "--quiet")
            again, _ = self.simulate({**experiment, "workload": {"kind": "goal", "file": "steps.goal"}})
            steps = 6 * 4  # times that are rounded, of a lane
            self.assertAlmostEqual(again["simulated_time_ps"], one["simulated_time_ps"], delta=500 * steps)

    def test_what_a_schedule_cannot_say_is_not_written(self):
        for workload, words, part in (
                (PROGRAM, ["goal"], "rank 1 has the collective 'broadcast 0', and GOAL has none; --steps resolves them"),
                ({"kind": "traffic", "pattern": "permutation", "size": "1 kB"}, ["goal", "--steps"],
                 "one-sided messages, as `kind: traffic` sends them"),
                ({"kind": "collective", "collective": "send_recv", "size": "1 kB"}, ["chakra"], "a send_recv")):
            with self.subTest(part=part):
                done = weft("export", words[0], self.write(self.experiment(workload)), *words[1:], "-o", "x.goal",
                            folder=self.folder)
                self.assertEqual(done.code, EXIT_INPUT, done)
                self.assertIn(part.split("'")[-1], done.err)
                self.assertTrue(done.err.startswith(f"weft: {self.folder / 'experiment.yaml'}: "), done)
                self.assertEqual([path.name for path in self.folder.glob("x.goal*")], [], done)
        one_sided = self.write(self.experiment({"kind": "traffic", "pattern": "permutation", "size": "1 kB"}))
        for kind, older in (("goal", self.folder / "y"), ("chakra", self.folder / "y.0.et")):
            older.write_text("older")
            self.assertEqual(weft("export", kind, one_sided, "-o", "y", folder=self.folder).code, EXIT_INPUT)
            self.assertEqual(older.read_text(), "older")
            self.assertEqual(list(self.folder.glob("*.partial")), [])
        for words, part in ((["chakra", "x.yaml"], "-o PREFIX is missing"), (["goal", "x.yaml"], "-o FILE is missing"),
                            (["chakra", "x.yaml", "--steps", "-o", "x"], "--steps is for goal")):
            done = weft("export", *words, folder=self.folder)
            self.assertEqual(done.code, EXIT_INPUT, done)
            self.assertIn(part, done.err)


if __name__ == "__main__":
    unittest.main()
