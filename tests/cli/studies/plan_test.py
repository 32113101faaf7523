#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# Time limit: 900 s
"""`weft plan`: packet-hops and memory predicted before a run, and the error of the prediction. Wall times are printed, but not
tested: other programs on the machine change them; tests/performance/plan_accuracy.py tests them by hand."""

import importlib.util
import json
import pathlib
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from weft_testing import (EXIT_ENVIRONMENT, EXIT_INPUT, EXIT_INTERRUPTED, FAT_TREE, NETWORK, SOURCE, WEFT,
                          ProgramTest, environment, processes_in, start, stop, wait_until, weft)

sys.path.insert(0, str(SOURCE / "scripts"))
from studies.plan import Plan, check  # noqa: E402

SECONDS = 300
MEMORY, PACKET_HOPS = 1.2, 1.05  # factors

# Of different kinds; each takes a second or a few on one process, so that a short calibration sees a part of it.
EXPERIMENTS = {
    "ring": {"topology": FAT_TREE, "network": NETWORK,
             "workload": {"kind": "collective", "collective": "all_reduce", "size": "256 MiB"}},
    "buffers": {"topology": FAT_TREE, "network": {**NETWORK, "flow_control": "pfc", "buffer": {"size": "8 MiB"}},
                "workload": {"kind": "collective", "collective": "all_to_all", "algorithm": "pairwise",
                             "size": "64 MiB"}},
    "many hosts": {"topology": {**FAT_TREE, "k": 16}, "network": NETWORK, "output": {"messages": "none"},
                   "workload": {"kind": "traffic", "pattern": "permutation", "size": "4 MiB"}},
    "many messages": {"topology": {**FAT_TREE, "k": 8}, "network": NETWORK,
                      "workload": {"kind": "collective", "collective": "all_to_all", "algorithm": "pairwise",
                                   "size": "128 KiB", "iterations": 10}},
}


def sample(name, folder):
    """A small trace of a format, as tests/importers writes it."""
    spec = importlib.util.spec_from_file_location("sample", SOURCE / "tests" / "importers" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.sample(folder)[0]


class PlanTest(ProgramTest):
    def plan(self, path, *words, seconds="0.5"):
        done = self.run_weft("plan", path, "--seconds", seconds, "--json", "--quiet", *words, seconds=SECONDS)
        return done.summary()


class Predictions(PlanTest):
    def test_packet_hops_and_memory(self):
        for name, text in EXPERIMENTS.items():
            path = self.write(text)
            self.plan(path, "--processes", "1,2", "-o", "plan.json")
            for ranks in (1, 2):
                with self.subTest(name, ranks=ranks):
                    _, results = self.simulate(path, ranks=ranks, seconds=SECONDS, start=weft)
                    told = self.plan(path, "--check", results, "--plan", "plan.json")["check"]
                    self.assertLessEqual(told["packet-hops"]["factor"], PACKET_HOPS, told)
                    self.assertLessEqual(told["memory"]["factor"], MEMORY, told)
                    self.assertGreater(told["wall time"]["planned"], 0)

    def test_a_run_that_ends_within_the_calibration_is_measured(self):
        workload = {"kind": "collective", "collective": "all_reduce", "size": "1 MiB"}
        path = self.write({"topology": FAT_TREE, "network": NETWORK, "workload": workload})
        plan = self.plan(path, "--processes", "1,4", seconds="60")
        self.assertTrue(plan["complete"])
        self.assertEqual([row["basis"] for row in plan["rows"]], ["measured", "extrapolated"])
        summary, _ = self.simulate(path)
        self.assertEqual(plan["calibrated"], summary["packet_hops"])
        self.assertEqual(plan["counted_work"], summary["packet_hops"])
        self.assertEqual(plan["simulated_ps"], summary["simulated_time_ps"])
        self.assertEqual(plan["parallelism"], summary["parallel"]["parallelism"])
        part = json.loads(self.run_weft("topology", path, "--json", "--processes", "4").out)["partitions"][0]
        self.assertEqual(plan["rows"][1]["lookahead_ps"], part["lookahead_ps"])
        self.assertLessEqual(plan["rows"][1]["memory"], plan["rows"][0]["memory"])

    def test_settings_change_the_plan(self):
        path = self.write({"topology": FAT_TREE, "network": NETWORK,
                           "workload": {"kind": "collective", "collective": "all_reduce", "size": "1 MiB"}})
        one = self.plan(path, "--processes", "1")
        two = self.plan(path, "--processes", "1", "--set", "workload.iterations=2")
        self.assertEqual(two["counted_work"], 2 * one["counted_work"])

    def test_networks_without_packets_count_messages(self):
        for fidelity in ("ideal", "loggp"):
            plan = self.plan(self.write({"topology": FAT_TREE, "network": {**NETWORK, "fidelity": fidelity},
                                         "workload": {"kind": "collective", "collective": "all_reduce", "size": "1 MiB"}}),
                             seconds="60")
            self.assertEqual(plan["unit"], "messages")
            self.assertEqual(plan["calibrated"], plan["counted_work"])

    def test_a_run_beside_endless_traffic_is_planned_by_its_end_or_as_at_least(self):
        """weft describe does not count what continues until all others have ended: a job computes for 30 s."""
        ends = {"kind": "program", "ranks": 2, "operations": [{"rank": "all", "compute": "30 s"}]}
        endless = {"kind": "traffic", "pattern": "permutation", "ranks": 2, "size": "64 KiB",
                   "start": {"process": "poisson", "load": 0.9}}
        jobs = [{"name": "a", "workload": ends},
                {"name": "b", "background": True, "placement": {"first": 2}, "workload": endless}]
        path = self.write({"topology": FAT_TREE, "network": NETWORK, "workload": {"kind": "jobs", "jobs": jobs},
                           "output": {"messages": "none"}})
        plan = self.plan(path, "--processes", "1")
        self.assertLess(plan["simulated_ps"], 10**13)
        self.assertEqual((plan["at_least"], plan["rows"][0]["basis"]), (True, "at least"))
        plan = self.plan(path, "--processes", "1", "--set", "simulation.until=20 s")
        self.assertEqual((plan["at_least"], plan["simulated_ps"]), (False, 2 * 10**13))
        self.assertAlmostEqual(plan["rows"][0]["wall_seconds"] / (plan["work"] * plan["seconds_per_work"]), 1, 1)
        self.assertGreater(plan["work"], 5 * plan["calibrated"])

    def test_a_run_that_is_cut_short(self):
        workload = {"kind": "collective", "collective": "all_reduce", "size": "1 MiB"}
        path = self.write({"topology": FAT_TREE, "network": NETWORK, "workload": workload})
        plan = self.plan(path, "--set", "simulation.until=10 us", seconds="60")
        self.assertEqual((plan["complete"], plan["simulated_ps"]), (True, 10**7))
        self.assertLess(plan["work"], 0.5 * plan["counted_work"])
        words = ["plan", path, "--processes", "1", "--quiet"]
        self.assertIn("ends at simulation.until", self.run_weft(*words, "--set", "simulation.until=10 us").out)
        self.assertNotIn("simulation.until", self.run_weft(*words, "--set", "simulation.until=1 s").out)
        # One that takes longer than the calibration.
        path = self.write({"topology": FAT_TREE, "network": NETWORK, "workload": {**workload, "size": "1 GiB"}})
        whole = self.plan(path, "--processes", "1")
        plan = self.plan(path, "--processes", "1", "--set", "simulation.until=20 ms")
        self.assertEqual((plan["complete"], plan["simulated_ps"]), (False, 2 * 10**10))
        self.assertLess(plan["work"], 0.7 * whole["work"])

    def test_a_trace_is_imported_first(self):
        """As for `weft run TRACE`: the work is that of the run, and nothing is left."""
        scratch = self.folder / "tmp"
        scratch.mkdir()
        for name in ("flows", "goal", "htsim", "aicb", "chakra"):
            with self.subTest(name):
                trace = sample(name, self.folder)
                summary, _ = self.simulate(self.folder / trace)
                done = weft("plan", trace, "--processes", "1,2", "--quiet", "--json", "--seconds", "60",
                            folder=self.folder, extra={"TMPDIR": str(scratch)}, seconds=SECONDS)
                self.assertEqual((done.code, done.err, list(scratch.iterdir())), (0, "", []), done)
                plan = done.summary()
                self.assertEqual((plan["complete"], plan["calibrated"], plan["simulated_ps"]),
                                 (True, summary["packet_hops"], summary["simulated_time_ps"]))
        self.write("start,source,destination,bytes\n0,0,-1,5\n", "bad.csv")
        self.write("hello\n", "a.txt")
        for name, part in (("bad.csv", "bad.csv:2: "), ("a.txt", "a.txt:1: found 'hello'; expected the map of an")):
            done = weft("plan", name, "--quiet", folder=self.folder, extra={"TMPDIR": str(scratch)})
            self.assertEqual((done.code, len(done.err.splitlines()), list(scratch.iterdir())), (EXIT_INPUT, 1, []), done)
            self.assertIn(part, done.err)

    def behind(self, script):
        """`weft plan` with a program whose `topology` is that line of shell."""
        program = self.folder / "program"
        program.write_text(f"#!/bin/sh\nif [ \"$1\" = topology ]; then\n{script}\nfi\nexec '{WEFT}' \"$@\"\n")
        program.chmod(0o755)
        path = self.write({"topology": FAT_TREE, "network": NETWORK,
                           "workload": {"kind": "collective", "collective": "all_reduce", "size": "64 KiB"}})
        return subprocess.run(
            ["/usr/bin/python3", "-B", SOURCE / "scripts" / "commands" / "plan.py", path, "--processes", "2", "--json",
             "--quiet", "--seconds", "60"], env=environment({"WEFT_PROGRAM": str(program)}), cwd=self.folder,
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS, check=False)

    def test_what_the_program_prints_before_the_partitions(self):
        done = self.behind("echo 'a note {of the network}'")
        self.assertEqual(done.returncode, 0, done)
        self.assertGreater(json.loads(done.stdout)["rows"][0]["lookahead_ps"], 0)
        done = self.behind("echo 'nothing that is JSON'; exit 0")
        self.assertEqual((done.returncode, done.stderr), (EXIT_ENVIRONMENT, (
            "weft: `weft topology --json` printed 'nothing that is JSON'; expected one JSON object; is it of another "
            "version?\n")))

    def test_a_name_that_is_not_utf_8(self):
        done = weft("plan", self.write("{topology: {kind: star}}", "lat\udce9.yaml"))
        self.assertEqual(done.code, EXIT_INPUT, done)
        self.assertIn("missing key", done.err)
        self.assertEqual(len(done.err.splitlines()), 1, done)

    def test_the_table_says_what_is_measured(self):
        path = self.write({"topology": FAT_TREE, "network": NETWORK,
                           "workload": {"kind": "collective", "collective": "all_reduce", "size": "1 MiB"}})
        out = self.run_weft("plan", path, "--seconds", "60", seconds=SECONDS).out
        for part in ("counted by weft describe", "measured: to its end", "extrapolated", "1024", "beyond the"):
            self.assertIn(part, out)

    def test_interrupted(self):
        workload = {"kind": "traffic", "pattern": "permutation", "size": "1 TiB"}
        path = self.write({"topology": FAT_TREE, "network": NETWORK, "workload": workload})
        process = start(["plan", path, "--seconds", "3000"], folder=self.folder)
        self.addCleanup(stop, process)
        wait_until(lambda: [pid for pid in processes_in(self.folder) if b"--summary" in command_of(pid)], "the run",
                   process)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, EXIT_INTERRUPTED)
        self.assertEqual(processes_in(self.folder), [])


def command_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


class Wrong(PlanTest):
    def test_input(self):
        good = self.write({"topology": FAT_TREE, "network": NETWORK, "workload": {
            "kind": "collective", "collective": "all_reduce", "size": "1 MiB"}}, "good.yaml")
        self.write("{topology: {kind: star}}", "bad.yaml")
        self.write("{}", "no.json")
        self.simulate(good)
        self.run_weft("run", good, "-o", "cut.h5", "--set", "simulation.until=1 us", "--quiet")
        for words, parts in (
            (["none.yaml"], ["none.yaml", "No such file"]),
            (["bad.yaml"], ["bad.yaml:1", "missing key"]),
            ([good, "--processes", "1,x"], ["'x'"]),
            ([good, "--seconds", "0"], ["'0'", "above 0"]),
            ([good, "--plan", "no.json"], ["--check"]),
            ([good, "--check", "none.h5"], ["none.h5"]),
            ([good, "--check", "good.yaml"], ["good.yaml", "HDF5"]),
            ([good, "--check", "cut.h5"], ["cut.h5", "complete"]),
            ([good, "--check", "out.h5", "--set", "workload.size=2 MiB"], ["out.h5", "workload.size", "1 MiB", "2 MiB"]),
            ([good, "--check", "out.h5", "--plan", "no.json"], ["no.json", "no plan"]),
            ([good, "--check", "out.h5", "--plan", "bad.yaml"], ["bad.yaml", "no plan"]),
            ([good, "--check", "out.h5", "--plan", "no.json", "-o", "new.json"], ["-o", "--plan reads one"]),
        ):
            with self.subTest(words=words):
                done = weft("plan", *words, "--quiet", folder=self.folder)
                self.assertEqual(done.code, EXIT_INPUT, done)
                self.assertEqual(len(done.err.splitlines()), 1, done.err)
                for part in parts:
                    self.assertIn(part, done.err)


    def test_no_input_and_no_pipe_is_replaced(self):
        good = self.write({"topology": FAT_TREE, "network": NETWORK, "workload": {
            "kind": "collective", "collective": "all_reduce", "size": "1 MiB"}}, "good.yaml")
        self.assert_kept(good, "is an input", "plan", good, "-o", "good.yaml")
        self.assert_kept(self.pipe(), "not a regular file", "plan", good, "-o", "pipe")


class Arithmetic(unittest.TestCase):
    """The model of the wall time, with figures made up."""

    def row(self, processes, parallelism=8.0, balance=1.0, lookahead=0, rows=(0, 0, 0)):
        plan = Plan.__new__(Plan)
        plan.partitions = {processes: {"lookahead_ps": lookahead, "cut_links": 4, "balance": balance}}
        plan.simulated_ps, plan.work, plan.seconds_per_work = 10**12, 8 * 10**9, 1e-9
        plan.parallelism, plan.build_seconds, plan.cores, plan.complete = parallelism, 0.5, 16, False
        plan.memory_each, plan.memory_shared = 100, 1000
        plan.row_bytes, plan.message_rows, plan.rows_in_memory = rows
        return plan.row(processes)

    def test_brents_bound(self):
        self.assertAlmostEqual(self.row(1)["wall_seconds"], 8.5)
        self.assertAlmostEqual(self.row(2)["wall_seconds"], 0.5 + 7 / 2 + 1)
        self.assertAlmostEqual(self.row(4, balance=2.0)["wall_seconds"], 0.5 + 2 * 7 / 4 + 1)
        self.assertAlmostEqual(self.row(16, parallelism=1.0)["wall_seconds"], 8.5)

    def test_processes_meet_once_per_epoch(self):
        alone, meeting = self.row(2), self.row(2, lookahead=500_000)
        self.assertEqual(meeting["epochs"], 2e6)
        self.assertAlmostEqual(meeting["wall_seconds"] - alone["wall_seconds"], 2e6 * 0.3e-6)
        self.assertGreater(self.row(64, lookahead=500_000)["wall_seconds"] - self.row(64)["wall_seconds"], 2e6 * 4e-6)
        self.assertAlmostEqual(meeting["work_per_epoch"], 8e9 / 2e6 / 2)

    def test_memory_is_shared_out(self):
        self.assertEqual([self.row(n)["memory"] for n in (1, 2, 10)], [1100, 600, 200])
        self.assertEqual(self.row(10)["memory_of_all"], 2000)
        rows = (3, 40, 30)  # bytes of each, rows, most in memory
        self.assertEqual([self.row(n, rows=rows)["memory"] for n in (1, 2)], [1100 + 3 * 30, 600 + 3 * 20])

    def test_check(self):
        plan = {"unit": "packet-hops", "counted_work": 100, "rows": [self.row(2)]}
        run = {"processes": 2, "packet-hops": 110, "memory": 300, "wall_seconds": 10.0}
        factors = {name: ratio for name, _, _, ratio in check(plan, run)}
        alone = check({**plan, "rows": [self.row(1)]}, {**run, "processes": 1, "processor_seconds": 17.0})
        self.assertAlmostEqual({name: ratio for name, _, _, ratio in alone}["processor time"], 2)
        self.assertAlmostEqual(factors["packet-hops"], 1.1)
        self.assertAlmostEqual(factors["wall time"], 2.0)
        self.assertAlmostEqual(factors["memory"], 2.0)


if __name__ == "__main__":
    unittest.main()
