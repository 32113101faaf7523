#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# Runs in: quick
"""The content of the results file: portions, samples of messages, runs that are cut short, and --verify."""

import pathlib
import sys
import unittest

import h5py

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from weft_testing import EXIT_INPUT, FAT_TREE, NETWORK, ProgramTest, attributes, table, weft  # noqa: E402

EXPERIMENT = {
    "topology": FAT_TREE,
    "network": NETWORK,
    "workload": {"kind": "traffic", "pattern": "all_to_all", "size": "20 kB",
                 "start": {"process": "periodic", "interval": "10 us", "count": 10}},
}


def with_output(**output):
    return {**EXPERIMENT, "output": output}


class Output(ProgramTest):
    def test_portions_change_nothing(self):
        whole, expected = self.simulate(with_output(sampling="3 us"), output="whole.h5")
        for ranks in (None, 3):
            portions, results = self.simulate(with_output(sampling="3 us", rows_in_memory=100), output="portions.h5",
                                              ranks=ranks)
            self.assertEqual(portions["fingerprint"], whole["fingerprint"])
            self.assert_same_results(expected, results, ignore=["/manifest/experiment_text"])
        with h5py.File(results) as file:
            self.assertIsNotNone(file["messages/id"].chunks)  # it did grow
            rows = list(zip(file["messages/delivered"][:], file["messages/id"][:]))
        self.assertEqual(rows, sorted(rows))

    def test_many_portions_are_warned_of(self):
        """All processes stop for each. One process does not wait for others."""
        def warnings(rows, ranks):
            workload = {"kind": "traffic", "pattern": "permutation", "size": "1 kB",
                        "start": {"process": "periodic", "interval": "100 us", "count": 40}}
            return self.simulate({**with_output(rows_in_memory=rows), "workload": workload}, ranks=ranks)[0]["warnings"]

        (warning,) = warnings(5, 2)  # 16 messages at a time
        self.assertRegex(warning, r"all processes stopped \d+ times to write rows")
        self.assertIn("output.rows_in_memory: 1000 or more", warning)
        self.assertEqual(warnings(1000, 2), [])
        self.assertEqual(warnings(5, None), [])

    def test_the_input_is_not_written_over(self):
        """Also by another name, through a link, and named by the experiment itself."""
        path = self.write(EXPERIMENT)
        text = path.read_bytes()
        (self.folder / "link.h5").symlink_to(path)
        for words in (["run", path, "-o", path], ["run", path, "-o", "link.h5"],
                      ["run", path, "--set", f"output.file={path.name}"], ["workload", path, "--dump", path],
                      ["topology", path, "--export", "yaml", "-o", f"./{path.name}"], ["export", "goal", path, "-o", path]):
            done = weft(*words, folder=self.folder)
            self.assertEqual(done.code, EXIT_INPUT, done)
            self.assertIn("which is the input; expected another file", done.err)
            self.assertEqual(path.read_bytes(), text, words)

    def test_the_name_of_another_format_is_refused(self):
        done = weft("run", self.write(EXPERIMENT), "-o", "results.csv", folder=self.folder)
        self.assertEqual(done.code, EXIT_INPUT, done)
        for word in ("results.csv", "FILE.h5", "weft export"):
            self.assertIn(word, done.err)
        self.assertFalse((self.folder / "results.csv").exists())

    def test_samples_of_messages(self):
        whole, path = self.simulate(EXPERIMENT, output="all.h5")
        everything = table(path, "messages")
        some, path = self.simulate(with_output(messages="sampled", message_sample=8), output="some.h5", ranks=2)
        sample = table(path, "messages")
        self.assertEqual(some["fingerprint"], whole["fingerprint"])
        self.assertEqual(some["messages"], len(everything["id"]))
        self.assertLess(abs(len(sample["id"]) - len(everything["id"]) / 8), 0.25 * len(everything["id"]) / 8)
        rows = {row[0]: row for row in zip(*(everything[name] for name in sorted(everything, key="id".__ne__)))}
        for row in zip(*(sample[name] for name in sorted(sample, key="id".__ne__))):
            self.assertEqual(row, rows[row[0]])
        none, path = self.simulate(with_output(messages="none"), output="none.h5")
        self.assertEqual(none["fingerprint"], whole["fingerprint"])
        with h5py.File(path) as file:
            self.assertNotIn("messages", file)

    def test_wrong_samples(self):
        for output, words in [({"messages": "some"}, ["'some'", "all, sampled, none"]),
                              ({"message_sample": 8}, ["messages: sampled"]),
                              ({"messages": "none", "message_sample": 8}, ["messages: none"]),
                              ({"rows_in_memory": 0}, ["rows_in_memory"])]:
            done = weft("run", self.write(with_output(**output)), folder=self.folder)
            self.assertEqual(done.code, EXIT_INPUT, done)
            for word in words:
                self.assertIn(word, done.err)

    def test_until(self):
        until = 40_000_000  # ps: the fourth of ten rounds has just begun
        experiment = {**EXPERIMENT, "simulation": {"until": "40 us"}}
        one, first = self.simulate(experiment, output="one.h5")
        three, second = self.simulate(experiment, output="three.h5", ranks=3)
        self.assert_same_results(first, second)
        self.assertEqual(one["fingerprint"], three["fingerprint"])
        self.assertEqual(one["simulated_time_ps"], until)
        self.assertFalse(one["complete"])
        self.assertEqual(attributes(first)["complete"], 0)
        self.assertLess(table(first, "messages")["delivered"].max(), until)
        ranks = table(first, "ranks")
        self.assertTrue((ranks["compute"] + ranks["exposed"] + ranks["idle"] == until).all())
        # The events until then are those of a whole run.
        _, path = self.simulate(EXPERIMENT, output="all.h5")
        early = table(path, "messages")
        early = {name: column[early["delivered"] < until] for name, column in early.items()}
        for name, column in table(first, "messages").items():
            self.assertEqual(list(column), list(early[name]), name)
        late, _ = self.simulate({**EXPERIMENT, "simulation": {"until": "1 s"}}, output="late.h5")
        self.assertTrue(late["complete"])
        self.assertLess(late["simulated_time_ps"], 1e12)

    def test_verify(self):
        for ranks, words in [(None, []), (2, []), (2, ["--set", "simulation.until=33 us"])]:
            summary, path = self.simulate(with_output(sampling="3 us"), "--verify", *words, ranks=ranks)
            self.assertTrue(summary["verified"])
            self.assertEqual([item.name for item in path.parent.glob("*.h5*")], [path.name])
        summary, _ = self.simulate(EXPERIMENT)
        self.assertFalse(summary["verified"])


if __name__ == "__main__":
    unittest.main()
