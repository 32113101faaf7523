#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""The minimiser finds the keys and values that a failure needs, and no others; the judge finds the planted faults."""

import json
import os
import pathlib
import subprocess
import sys
import unittest

import h5py

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import cases  # noqa: E402
import shrink  # noqa: E402
import tallies  # noqa: E402
from draw import Draw  # noqa: E402
from experiments import Experiment  # noqa: E402
from weft_testing import STAR, ProgramTest  # noqa: E402

TRAFFIC = {"kind": "traffic", "pattern": "permutation", "size": "100 kB"}
GOOD = {"topology": STAR, "workload": TRAFFIC}
LARGE = {
    "topology": {"kind": "star", "hosts": 12, "link_rate": "25 Gb/s", "link_delay": "730 ns", "host_link_rate": "1 Gb/s"},
    "network": {"mtu": "4096 B", "buffer": {"size": "500 kB", "alpha": 2.5}, "loss": [
        {"link": "all", "probability": 0.01}, {"class": "host", "bit_error_rate": 1e-8}]},
    "workload": {"kind": "program", "operations": [{"rank": rank, "compute": "7 us"} for rank in range(9)]},
    "output": {"operations": True, "sampling": "3 us"},
}
RUNS = [vars(cases.Run(1)), vars(cases.Run(2, "metis", 7)), vars(cases.Run(8, "random", verify=True))]


class Shrinking(unittest.TestCase):
    def shrunk(self, fails, parts=LARGE, runs=RUNS, most=2000):
        return shrink.Shrinker(fails, most).shrink(parts, runs)

    def test_a_standstill_has_a_time(self):
        message = "weft: a.yaml: from 750 ms to 1.75 s of simulated time 3 packets have been dropped or lost, and none has arrived: "
        self.assertEqual(cases.standstill(message + "the run gets no further; look at network.buffer"), 1.75e12)
        self.assertEqual(cases.standstill("weft: a.yaml:1: no such key"), 0)

    def test_one_key(self):
        """Only a loss with a bit error rate matters: all else is removed."""
        fails = lambda parts, runs: any("bit_error_rate" in item for item in parts.get("network", {}).get("loss", []))  # noqa: E731
        parts, runs = self.shrunk(fails)
        self.assertEqual(list(parts), ["network"])
        self.assertEqual(list(parts["network"]), ["loss"])
        self.assertEqual([list(item) for item in parts["network"]["loss"]], [["bit_error_rate"]])
        self.assertEqual(len(runs), 1)

    def test_two_keys_and_a_number(self):
        fails = lambda parts, runs: (parts.get("topology", {}).get("hosts", 0) >= 5  # noqa: E731
                                     and "alpha" in parts.get("network", {}).get("buffer", {}))
        parts, _ = self.shrunk(fails)
        self.assertEqual(parts["topology"], {"hosts": 5})
        self.assertEqual(list(parts["network"]["buffer"]), ["alpha"])

    def test_items_of_a_list(self):
        wanted = {"rank": 6, "compute": "7 us"}
        fails = lambda parts, runs: any(item.get("rank") == 6  # noqa: E731
                                        for item in parts.get("workload", {}).get("operations", []))
        parts, _ = self.shrunk(fails)
        self.assertEqual(parts, {"workload": {"operations": [{"rank": wanted["rank"]}]}})

    def test_runs(self):
        """It needs two runs, one of them on three processes or more."""
        fails = lambda parts, runs: len(runs) > 1 and max(run["processes"] for run in runs) >= 3  # noqa: E731
        _, runs = self.shrunk(fails)
        self.assertEqual(sorted(run["processes"] for run in runs), [1, 3])
        self.assertFalse(any(run["verify"] or run["partition"] or run["rows_in_memory"] for run in runs))

    def test_no_more_tries_than_allowed(self):
        asked = []
        self.shrunk(lambda parts, runs: asked.append(1) or parts == LARGE, most=10)
        self.assertEqual(len(asked), 10)

    def test_nothing_that_does_not_fail(self):
        parts, runs = self.shrunk(lambda parts, runs: parts == LARGE and runs == RUNS)
        self.assertEqual((parts, runs), (LARGE, RUNS))

    def test_what_is_held_stays(self):
        shrinker = shrink.Shrinker(lambda parts, runs: True, 2000, held=["network.buffer", "output.sampling"])
        parts, _ = shrinker.shrink(LARGE, RUNS)
        self.assertEqual(parts, {"network": {"buffer": LARGE["network"]["buffer"]}, "output": {"sampling": "3 us"}})

    def test_smaller_values(self):
        self.assertEqual(shrink.smaller(5), [0, 1, 2, 3, 4])
        self.assertEqual(shrink.smaller("25 Gb/s"), ["100 Gb/s"])
        self.assertEqual(shrink.smaller("100 Gb/s"), [])
        self.assertEqual(shrink.smaller("730 ns")[0], "1 ns")
        self.assertEqual(shrink.smaller("ring"), [])


class Judging(ProgramTest):
    """The test makes mistakes that the program does not make: the judge has to report them."""

    def judged(self, runs, parts=None, change=None, absurd=False, seconds=60):
        experiment = Experiment(0, parts or GOOD)
        experiment.write(self.folder)
        judge = cases.Judge(absurd, seconds)
        original, results = cases.execute, []

        def execute(run, folder, output, seconds):
            ended = original(run, folder, output, seconds)
            results.append(output)
            if change:
                change(len(results) - 1, ended, pathlib.Path(folder) / output)
            return ended

        cases.execute = execute
        try:
            return {fault.name for fault in judge.judge(self.folder, runs)}
        finally:
            cases.execute = original

    def test_no_faults(self):
        runs = [cases.Run(1, verify=True), cases.Run(2, "random", 3), cases.Run(3)]
        self.assertEqual(self.judged(runs), set())
        self.assertEqual(self.judged(runs[:2], {"topology": {"kind": "no_such_kind"}}), set())

    def test_other_results(self):
        def change(number, ended, path):
            if number == 1:
                with h5py.File(path, "r+") as file:
                    file["messages/tag"][...] = 7
                    file["links"].attrs["description"] = "other"

        self.assertEqual(self.judged([cases.Run(1), cases.Run(1)], change=change), {"differs: links, messages"})

    def test_exit_codes(self):
        def code(value, text="weft: FILE: a message"):
            def change(number, ended, path):
                if number == 1:
                    ended.code, ended.err = value, text
            return change

        runs = [cases.Run(1), cases.Run(1)]
        for value, wanted in [(70, "exit 70: FILE: a message"), (3, "exit 3: FILE: a message"),
                              (2, "differs: exit codes 0 and 2"), (-11, "signal: SIGSEGV"), (139, "signal: SIGSEGV"),
                              (1, "exit 1: FILE: a message")]:
            with self.subTest(value):
                self.assertEqual(self.judged(runs, change=code(value)), {wanted})
        self.assertIn("exit 2: without a message", self.judged(runs, change=code(2, "")))
        self.assertIn("exit 2: several messages", self.judged(runs, change=code(2, "weft: weft: FILE: one\nFILE: two")))

    def test_broken_laws(self):
        def change(number, ended, path):
            with h5py.File(path, "r+") as file:
                file["links/utilization"][0] = 2

        found = self.judged([cases.Run(1)], change=change)
        self.assertTrue(any("links_are_not_overloaded" in name for name in found), found)

    def test_no_end(self):
        """A run that does not end is ended, and that is a fault."""
        parts = {**GOOD, "workload": {**TRAFFIC, "size": "100 TiB"}}
        self.assertEqual(self.judged([cases.Run(1)], parts, seconds=2), {"hang: alone"})
        self.assertEqual(self.judged([cases.Run(1)], parts, seconds=2, absurd=True), set())

    def test_nothing_arrives(self):
        """A run in which everything is lost ends with exit code 3 and reports it: no fault, on any number of processes."""
        parts = {**GOOD, "network": {"loss": [{"link": "all", "probability": 1}]}}
        self.assertEqual(self.judged([cases.Run(1), cases.Run(2), cases.Run(3)], parts), set())

    def test_harm(self):
        parts = {**GOOD, "workload": {**TRAFFIC, "size": "1 TiB"}, "output": {"sampling": "1 ms"}}
        runs = [cases.Run(1, harm="signal", after=0.5), cases.Run(2, harm="signal", after=1.5),
                cases.Run(2, harm="kill", after=1.0)]
        found = {name for name in self.judged(runs, parts) if not name.startswith("law")}
        self.assertEqual(found, set())
        self.assertEqual(self.judged([cases.Run(1), cases.Run(1, harm="full disk", room=5000)]), set())

    def test_killed_when_finished(self):
        """The file of a process that was lost in its last moment is that of an undisturbed run, or should not be there."""
        def lost(fingerprint=None):
            def change(number, ended, path):
                if number == 1:
                    ended.code, ended.stopped = 137, 0.0
                    with h5py.File(path, "r+") as file:
                        file.attrs["fingerprint"] = fingerprint or file.attrs["fingerprint"]
            return change

        parts = {**GOOD, "simulation": {"until": "1 us"}}  # so that `complete` is 0 in both
        runs = [cases.Run(1), cases.Run(2, harm="kill", after=100.0)]
        self.assertEqual(self.judged(runs, parts, lost()), set())
        self.assertEqual(self.judged(runs, parts, lost("0x0000000000000001")), {"after kill: a file is there though the exit code is 137"})

    def test_deafness(self):
        """A program that ends late after a signal, or with a file marked as complete, is detected."""
        def change(number, ended, path):
            ended.stopped = 1000.0
            with h5py.File(path, "r+") as file:
                file.attrs["complete"] = 1

        parts = {**GOOD, "workload": {**TRAFFIC, "size": "1 TiB"}}
        found = self.judged([cases.Run(1, harm="signal", after=0.7)], parts, change)
        self.assertIn("deaf to SIGTERM: at some moment", found)
        self.assertIn("after signal: interrupted, but the file is complete", found)

    def test_plan(self):
        """Two numbers of processes at least, and all kinds of runs within a few hundred cases."""
        plans = [cases.plan(Draw(seed), ["auto", "metis"], False) for seed in range(500)]
        for runs in plans:
            self.assertGreaterEqual(len({run.processes for run in runs if not run.harm}), 2)
        every = [run for runs in plans for run in runs]
        self.assertEqual({run.processes for run in every}, set(cases.PROCESSES))
        self.assertEqual({run.harm for run in every}, {"", *cases.HARMS})
        self.assertTrue(any(run.verify for run in every))
        self.assertTrue(any(run.rows_in_memory == 1 for run in every))

    def test_what_an_experiment_gives_is_left(self):
        runs = [cases.Run(1, "metis", 7), cases.Run(2, "random", 9)]
        cases.leave_given(runs, {"simulation": {"partition": "-"}, "output": "?"})
        self.assertEqual([(run.partition, run.rows_in_memory) for run in runs], [("", 7), ("", 9)])

    def test_classes_have_no_numbers(self):
        self.assertEqual(cases.plain("/tmp/a/experiment.yaml:3: `a.b`: found 12 kB at host3"),
                         cases.plain("experiment.yaml:14: `c`: found 7 kB at host11"))


class Programs(ProgramTest):
    """The programs as one calls them."""

    def call(self, name, *words):
        done = subprocess.run([sys.executable, pathlib.Path(__file__).parent / name, *map(str, words)], text=True,
                              capture_output=True, cwd=self.folder, env=os.environ, timeout=250, check=False)
        return done.returncode, done.stdout + done.stderr

    def test_one_seed(self):
        code, text = self.call("run", "--seed", 12, "--keep", "kept")
        self.assertIn(code, (0, 1), text)
        self.assertIn("1 cases", text)
        self.assertEqual(json.loads((self.folder / "kept/tally.json").read_text())["cases"], 1)
        code, text = self.call("run", "--table", "kept")
        self.assertEqual(code, 0, text)
        self.assertIn("| any case | 1 |", text)
        self.assertEqual(self.call("run", "--seeds", "x")[0], 2)

    def test_minimise(self):
        """A run without an end, kept as the runner keeps it, becomes smaller."""
        folder = self.folder / "seed-1"
        folder.mkdir()
        parts = {**GOOD, "workload": {**TRAFFIC, "size": "100 TiB"}, "output": {"operations": True}}
        Experiment(1, parts).write(folder)
        fault = cases.Fault("hang", "alone", vars(cases.Run(1)))
        (folder / "case.json").write_text(json.dumps({"absurd": 0, "runs": [vars(cases.Run(1))], "faults": [vars(fault)]}))
        code, text = self.call("minimise", "seed-1", "--limit", 2, "--tries", 12)
        self.assertEqual(code, 0, text)
        small = json.loads((folder / "minimal/experiment.yaml").read_text())
        self.assertNotIn("output", small)
        self.assertIn("size", small["workload"])
        self.assertIn("hang: alone", (folder / "minimal/report.txt").read_text())


class Tallies(unittest.TestCase):
    def test_rows(self):
        tally = tallies.Tally()
        judge = cases.Judge()
        lossy = Experiment(3, {"network": {"loss": []}, "topology": {}, "workload": {}})
        tally.add(lossy, [cases.Run(1), cases.Run(2, harm="kill")], judge, 1.0)
        judge.faults.append(cases.Fault("hang", "alone"))
        tally.add(lossy, [cases.Run(1)], judge, 1.0)
        tally.add(Experiment(4, {"network": "?"}, refused="no", absurd=1), [cases.Run(1)], cases.Judge(), 1.0)
        self.assertEqual(tally.tried["packets lost on links at random"], [2, 1, 0, 1])
        self.assertEqual(tally.tried["SIGKILL of one process"], [1, 1, 0, 0])
        self.assertEqual(tally.tried["values that make no sense"], [1, 0, 1, 0])
        self.assertIn("| any case | 3 | 1 | 1 | 1 |", tallies.table([tally]))
        self.assertIn("1 x hang: alone   (seeds 3)", tally.summary())


if __name__ == "__main__":
    unittest.main()
