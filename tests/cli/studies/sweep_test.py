#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# Time limit: 900 s
"""`weft sweep`: the cases of a study, each run once, side by side, interrupted and resumed, with the same table."""

import math
import os
import pathlib
import re
import signal
import subprocess
import sys
import unittest
import unittest.mock

import h5py

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from sweep_testing import BASE, SECONDS, STUDY, SweepTest
from weft_testing import (EXIT_ENVIRONMENT, EXIT_INPUT, EXIT_INTERRUPTED, SOURCE, WEFT, environment, processes_in,
                          same_results, wait_until, weft)

sys.path[:0] = [str(SOURCE / "scripts"), str(SOURCE / "tests" / "results")]
from schema_test import read_schema  # noqa: E402
from studies import columns, outputs  # noqa: E402
from studies.identity import Program  # noqa: E402


class Watched(SweepTest):
    """The program behind a script that writes down each run, and holds runs back while there are certain files."""

    def setUp(self):
        super().setUp()
        self.log, self.endless, self.gate = (self.folder / name for name in ("runs.log", "endless", "gate"))
        self.program = self.folder / "watched"
        self.program.write_text(f"""#!/bin/sh
if [ "$1" = run ] && [ "${{2##*/}}" != columns.yaml ]; then
  echo "$*" >> '{self.log}'
  while [ -e '{self.gate}' ]; do sleep 0.05; done
  [ ! -e '{self.endless}' ] || exec '{WEFT}' "$@" --set 'workload.size=1 GiB' --set workload.iterations=100000
fi
exec '{WEFT}' "$@"
""")
        self.program.chmod(0o755)

    def begin(self, *words):
        with open(self.folder / f"{len(list(self.folder.glob('*.err')))}.err", "w") as said:
            process = subprocess.Popen(
                ["/usr/bin/python3", "-B", str(SOURCE / "scripts" / "commands" / "sweep.py"), *words], cwd=self.folder,
                env=environment({"WEFT_PROGRAM": str(self.program)}), text=True, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=said)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.kill)
        return process

    def end(self, process, code=0):
        process.communicate(timeout=SECONDS)
        said = "".join(path.read_text() for path in sorted(self.folder.glob("*.err")))
        self.assertEqual(process.returncode, code, said)
        return said

    def runs(self):
        return self.log.read_text().splitlines() if self.log.exists() else []

    def test_interrupted_and_resumed_is_as_uninterrupted(self):
        self.write(STUDY, "study.yaml")
        self.end(self.begin("study.yaml", "-o", "whole.h5", "-j", "1"))
        for number in (signal.SIGTERM, signal.SIGINT):
            with self.subTest(number.name):
                name = f"{number.name}.h5"
                self.end(self.begin("study.yaml", "--case", "1", "-o", name))
                self.endless.touch()
                process = self.begin("study.yaml", "-j", "2", "-o", name)
                folder = self.folder / f"{number.name}.runs"
                wait_until(lambda: len(list(folder.glob("*.h5.partial"))) == 2, "two runs under way", process)
                self.assertEqual(len(processes_in(self.folder)), 2)
                process.send_signal(number)
                self.end(process, EXIT_INTERRUPTED)
                self.assertEqual(processes_in(self.folder), [])
                self.assertFalse((self.folder / name).exists())
                kept = [path.name for path in folder.glob("*.json") if not path.name.startswith("columns")]
                self.assertEqual(len(kept), 1)  # the case that had been run before
                self.endless.unlink()
                self.log.write_text("")
                self.end(self.begin("study.yaml", "-o", name))
                self.assertEqual(len(self.runs()), 5)
                self.assert_same_table("whole.h5", name)

    def test_what_has_been_run_is_not_run_again(self):
        self.write(STUDY, "study.yaml")
        self.end(self.begin("study.yaml"))
        self.assertEqual(len(self.runs()), 6)
        self.end(self.begin("study.yaml", "--resume"))
        self.assertEqual(len(self.runs()), 6)
        # Another column of results needs no new run, another case does.
        self.write(STUDY.replace("p90", "p50").replace("256 KiB", "512 KiB"), "study.yaml")
        self.end(self.begin("study.yaml"))
        self.assertEqual(len(self.runs()), 8)
        # The same values in another notation need no new run either; another base does.
        self.write(BASE.replace("400 Gb/s", "0.4 Tbps"), "base.yaml")
        self.end(self.begin("study.yaml"))
        self.assertEqual(len(self.runs()), 8)
        self.write(BASE.replace("400 Gb/s", "200 Gb/s"), "base.yaml")
        self.end(self.begin("study.yaml"))
        self.assertEqual(len(self.runs()), 14)
        self.end(self.begin("study.yaml", "--fresh"))
        self.assertEqual(len(self.runs()), 20)

    def test_equal_cases_run_once(self):
        self.write("experiment: base.yaml\ngrid: {workload.size: [64 KiB, 65536 B, 1 MiB, 0.0625 MiB]}\n", "study.yaml")
        self.end(self.begin("study.yaml", "-j", "4"))
        self.assertEqual(len(self.runs()), 2)
        table = self.table()
        self.assertEqual(table["same_as"], [0, 0, 2, 0])
        self.assertEqual(table["out_job_time"][0], table["out_job_time"][3])
        self.assertNotEqual(table["out_job_time"][0], table["out_job_time"][2])

    def test_equal_cases_of_two_programs_at_the_same_time_run_once(self):
        self.write("experiment: base.yaml\ngrid: {workload.size: [64 KiB, 65536 B]}\n", "study.yaml")
        self.gate.touch()
        first = self.begin("study.yaml", "--case", "0")
        wait_until(self.runs, "a run", first)
        second = self.begin("study.yaml", "--case", "1")
        wait_until(lambda: "another process" in (self.folder / "1.err").read_text(), "the other's waiting", second)
        self.assertIsNone(first.poll())
        self.gate.unlink()
        self.end(first)
        self.end(second)
        self.assertEqual(len(self.runs()), 1)

    def test_what_breaks_a_constraint_before_its_run_is_not_run(self):
        self.write(STUDY + "constraints: [workload_size <= 128 * KiB, hosts == 4, 'twice < 40 * us']\n", "study.yaml")
        self.end(self.begin("study.yaml"))
        self.assertEqual(len(self.runs()), 4)
        table = self.table()
        self.assertEqual(table["status"], ["done", "done", "excluded"] * 2)
        self.assertEqual(table["broken"][2], "workload_size <= 128 * KiB")
        self.assertTrue(math.isnan(table["out_job_time"][2]))
        for time, feasible in zip(table["out_job_time"], table["feasible"]):
            self.assertEqual(feasible, time * 2 < 40e6)

    def test_those_that_run_are_marked_afterwards(self):
        self.write(STUDY + "constraints: [job_time < 0]\n", "study.yaml")
        self.end(self.begin("study.yaml"))
        table = self.table()
        self.assertEqual((table["status"], table["feasible"]), (["done"] * 6, [0] * 6))
        self.assertEqual((table["broken"], table["pareto"]), (["job_time < 0"] * 6, [0] * 6))


class Tables(SweepTest):
    def test_any_number_at_a_time_gives_the_same(self):
        self.sweep(STUDY, "-j", "1", "-o", "one.h5")
        self.sweep(STUDY, "-j", "2", "-o", "two.h5")
        self.assert_same_table("one.h5", "two.h5")

    def test_rows_are_what_the_runs_say(self):
        self.sweep(STUDY)
        table = self.table()
        self.assertEqual(table["case"], list(range(6)))
        self.assertEqual(table["in_workload_algorithm"], ["ring"] * 3 + ["direct"] * 3)
        self.assertEqual(table["in_workload_size"], [65536, 131072, 262144] * 2)
        summary, results = self.simulate(self.folder / "base.yaml", "--set", "workload.algorithm=direct", "--set",
                                         "workload.size=128 KiB")
        self.assertEqual(table["out_job_time"][4], summary["jobs"][0]["time_ps"])
        self.assertEqual(table["out_packet_hops"][4], summary["packet_hops"])
        self.assertEqual(table["out_fingerprint"][4], summary["fingerprint"])
        self.assertEqual(table["derived_twice"][4], 2 * summary["jobs"][0]["time_ps"])
        with h5py.File(self.folder / "study.h5") as study, h5py.File(results) as run:
            self.assertEqual(list(same_results.differences(study["runs/4"], run, [
                *same_results.LEFT_OUT, "/manifest@experiment_file"])), [])
            slowdown = sorted(run["messages/slowdown"][:])
            self.assertTrue(slowdown[len(slowdown) * 8 // 10] <= table["out_tail"][4] <= slowdown[-1])
            self.assertEqual(study["cases/in_workload_size"].attrs["unit"], "B")
            self.assertEqual(study["cases/out_tail"].attrs["unit"], "1")
            for column in [*study["cases"].values(), *study["timing"].values()]:
                self.assertTrue(column.attrs["unit"] and column.attrs["description"], column.name)
                self.assertEqual(len(column), 6)
            self.assertTrue((study["timing/wall_seconds"][:] > 0).all())
            self.assertEqual(study.attrs["complete"], 1)
        best = [min((0, 3), key=lambda i: table["out_job_time"][i + size]) + size for size in range(3)]
        self.assertEqual([i for i in range(6) if table["pareto"][i]], sorted(best))

    def test_a_run_that_is_cut_short_has_empty_cells(self):
        self.sweep("experiment: base.yaml\ngrid: {simulation.until: [1 us, 1 ms]}\n"
                   "outputs: [step_time, packet_hops, {lo: min collectives/time}, {half: p50 collectives/time}]\n")
        table = self.table()
        self.assertEqual(table["status"], ["done", "done"])
        for name in ("out_step_time", "out_lo", "out_half"):
            self.assertTrue(math.isnan(table[name][0]), name)
            self.assertGreater(table[name][1], 1e6, name)
        self.assertGreater(table["out_packet_hops"][0], 0)

    def test_a_study_whose_name_is_not_utf_8(self):
        path = self.write("experiment: base.yaml\ngrid: {workload.algorithm: [ring]}\n", "lat\udce9.yaml")
        strict = environment({"PYTHONIOENCODING": "utf-8:strict"})
        done = subprocess.run([WEFT, "sweep", path, "-o", "table.h5"], cwd=self.folder, env=strict, capture_output=True,
                              check=False)
        self.assertEqual(done.returncode, 0, done)
        with h5py.File(self.folder / "table.h5") as file:
            self.assertEqual(file["manifest"].attrs["study_file"], "lat?.yaml")
        done = subprocess.run([WEFT, "sweep", path, "--list"], cwd=self.folder, env=strict, capture_output=True,
                              check=False)
        self.assertEqual(done.returncode, 0, done)

    def test_reductions_leave_out_times_that_have_not_come(self):
        with h5py.File(self.folder / "times.h5", "w") as file:
            for name, values, unit in (("time", [-1, 4, 2], "ps"), ("none", [-1, -1], "ps"), ("id", [-1, 3], "id")):
                file.create_dataset(f"t/{name}", data=values).attrs["unit"] = unit
            found = {text: outputs.reduced(file, *text.split())["value"]
                     for text in ("min t/time", "mean t/time", "first t/time", "p50 t/none", "min t/id")}
        self.assertEqual(found, {"min t/time": 2, "mean t/time": 3, "first t/time": 4, "p50 t/none": None,
                                 "min t/id": -1})

    def test_costs_energy_and_emissions_are_columns(self):
        """They are those of `weft account` for the run; other prices and grids need no new run."""
        self.sweep("experiment: base.yaml\n"
                   "grid: {workload.algorithm: [ring, direct], accounting.grid_intensity: [FR, PL]}\n"
                   "accounting: {pue: 1.5}\noutputs: [energy_per_step, cost_per_step, carbon_per_step, mean_power]\n"
                   "derived: {twice: 2 * energy_per_step, price: cost, price_again: price, energy: energy_per_step}\n"
                   "constraints: [network_power < cost]\n")
        table = self.table()
        with h5py.File(self.folder / "study.h5") as study:  # a name for another column has its unit
            units = {name: study[f"cases/derived_{name}"].attrs["unit"] for name in ("twice", "price", "price_again", "energy")}
        self.assertEqual(units, {"twice": "1", "price": "$", "price_again": "$", "energy": "J"})
        self.assertEqual(table["same_as"], [0, 0, 2, 2])
        self.assertEqual(len({path.name for path in (self.folder / "study.runs").glob("*.h5")
                              if not path.name.startswith("experiment")}), 2)
        for case, region in enumerate(("FR", "PL", "FR", "PL")):
            done = self.run_weft("account", table["run"][case], "--set", "pue=1.5", "--set", f"grid_intensity={region}",
                                 "--json").summary()["mid"]["figures"]
            for name in ("energy_per_step", "cost_per_step", "carbon_per_step", "mean_power"):
                self.assertEqual(table[f"out_{name}"][case], done[name])
            self.assertEqual(table["derived_twice"][case], 2 * done["energy_per_step"])
            self.assertEqual(table["machine_cost"][case], done["machine_cost"])
        # All emissions except the embodied ones are proportional to the grid: 662 g per kWh over 56.
        operational = [carbon - energy * 56 / 3.6e6 for carbon, energy in
                       zip(table["out_carbon_per_step"][::2], table["out_energy_per_step"][::2])]
        for making, carbon, energy in zip(operational, table["out_carbon_per_step"][1::2],
                                          table["out_energy_per_step"][1::2]):
            self.assertAlmostEqual((carbon - making) / (energy * 662 / 3.6e6), 1, 9)
        with h5py.File(self.folder / "study.h5") as file:
            self.assertEqual([file[f"cases/out_{name}"].attrs["unit"] for name in
                              ("energy_per_step", "cost_per_step", "carbon_per_step", "mean_power")],
                             ["J", "$", "g", "W"])

    def test_mpi_processes_change_nothing(self):
        self.sweep(STUDY, "-o", "alone.h5")
        self.sweep(STUDY + "processes: 2\n", "-o", "two.h5")
        with h5py.File(self.folder / "two.h5") as file:
            self.assertEqual(set(file["timing/processes"][:]), {2})
        with h5py.File(self.folder / "two.h5", "r+") as file, h5py.File(self.folder / "alone.h5") as alone:
            del file["manifest/study_text"]
            file["manifest/study_text"] = alone["manifest/study_text"][()]
        self.assert_same_table("alone.h5", "two.h5")

    def test_a_case_that_fails_is_told_and_ends_nothing(self):
        text = STUDY.replace("[ring, direct]", "[ring, rong]")
        done = self.sweep(text, "--summary", "json", code=EXIT_ENVIRONMENT)
        self.assertEqual((done.summary()["done"], done.summary()["failed"]), (3, 3))
        table = self.table()
        self.assertEqual(table["status"], ["done"] * 3 + ["failed"] * 3)
        self.assertIn("did you mean 'ring'?", table["error"][3])
        (self.folder / "study.h5").rename(self.folder / "first.h5")
        self.sweep(text, "--collect", code=EXIT_ENVIRONMENT)
        self.assert_same_table("first.h5", "study.h5")

    def test_failures_are_told_also_with_quiet(self):
        done = self.sweep(STUDY.replace("[ring, direct]", "[ring, rong]"), code=EXIT_ENVIRONMENT)
        told = [line for line in done.err.splitlines() if "failed: " in line]
        self.assertEqual((len(told), done.out), (3, ""), done)
        self.assertIn("weft: case 3 (workload.algorithm rong, workload.size 64 KiB) failed: ", done.err)

    def test_fidelities_without_packets_are_told(self):
        """On the ideal network a study of oversubscription has equal rows, and the table says why."""
        path = self.write("experiment: base.yaml\ngrid: {network.fidelity: [packet, ideal]}\n", "study.yaml")
        done = weft("sweep", path, folder=self.folder, seconds=SECONDS)
        self.assertEqual(done.code, 0, done)
        self.assertRegex(done.out, r"\n  fidelity ideal in 1 of 2 cases: .*oversubscription costs nothing\n  results ")
        self.write("experiment: base.yaml\ngrid: {workload.size: [1 KiB, 2 KiB]}\noutputs: [busbw]\n", "study.yaml")
        done = weft("sweep", path, folder=self.folder, seconds=SECONDS)
        self.assertNotIn("fidelity", done.out)
        self.assertEqual(len(re.findall(r" \d\S* GB/s\n", done.out)), 2, done.out)

    def test_a_path_for_which_every_case_is_refused_is_a_wrong_study(self):
        hint = "did you mean 'algorithm'?"
        for text, line in ((STUDY.replace("workload.algorithm", "workload.algoritm"), 3),
                           (STUDY + "set: {workload.algoritm: ring}\n", 8),
                           (STUDY + "constraints: [workload_size <= 128 * KiB]\nset: {workload.algoritm: ring}\n", 9),
                           ("experiment: base.yaml\ngrid:\n  plan:\n    one: {workload.algoritm: ring}\n", 4),
                           ("experiment: base.yaml\nlist:\n- {workload.size: 1 KiB, workload.algoritm: ring}\n", 3),
                           ("experiment: base.yaml\nplans: {ranks: 4, tensor: [1, 2]}\n", 2)):
            with self.subTest(text):
                done = self.sweep(text, code=EXIT_INPUT)
                told = done.err.splitlines()[-1]
                self.assertIn(f"study.yaml:{line}: every case was refused for 'workload.", told)
                self.assertIn(hint if "algoritm" in text else "unknown key 'parallelism'", told)
                self.assertFalse((self.folder / "study.h5").exists())
        # Where other cases are done, there is a table.
        self.sweep("experiment: base.yaml\nlist:\n- {workload.size: 1 KiB}\n- {workload.algoritm: ring}\n",
                   code=EXIT_ENVIRONMENT)
        self.assertEqual(self.table()["status"], ["done", "failed"])

    def test_columns_of_results_files_are_those_of_the_documentation(self):
        with unittest.mock.patch.dict(os.environ, environment({"WEFT_PROGRAM": str(WEFT)})):
            known = columns.columns_of_a_run(Program())
        documented, _ = read_schema(SOURCE / "docs" / "reference" / "hdf5_schema.md")
        self.assertEqual({f"/{table}/{column}" for table, names in known.items() for column in names},
                         {path for path, (_, kind, _) in documented.items() if "text" not in kind})

    def test_an_output_that_no_run_has_is_told(self):
        done = self.sweep(STUDY.replace("p90 messages/slowdown", "p90 operations/start"))
        self.assertIn("'p90 operations/start'", done.err)
        self.assertTrue(all(map(math.isnan, self.table()["out_tail"])))

    def test_results_may_be_thrown_away(self):
        self.sweep(STUDY + "keep_runs: false\n")
        self.assertEqual(list((self.folder / "study.runs").glob("*.h5")), [])
        table = self.table()
        self.assertEqual(table["run"], [""] * 6)
        self.sweep(STUDY + "keep_runs: false\n")
        self.assertEqual(table, self.table())

    def test_an_experiment_within_the_study_names_files_beside_it(self):
        self.write("kind: star\nhosts: 4\nlink_rate: 400 Gb/s\nlink_delay: 500 ns\n", "machine.yaml")
        self.sweep("experiment:\n  topology: {kind: file, path: machine.yaml}\n"
                   "  workload: {kind: collective, collective: all_reduce, size: 64 KiB}\n"
                   "grid: {workload.algorithm: [ring, direct]}\n", "-o", "out/inline.h5")
        self.sweep(STUDY)
        self.assertEqual(self.table("out/inline.h5")["out_job_time"], self.table()["out_job_time"][::3])
        # Another content of the file is another experiment.
        before = self.table("out/inline.h5")["identity"]
        self.write("kind: star\nhosts: 5\nlink_rate: 400 Gb/s\nlink_delay: 500 ns\n", "machine.yaml")
        self.sweep("study.yaml", "--list")
        self.sweep("experiment:\n  topology: {kind: file, path: machine.yaml}\n"
                   "  workload: {kind: collective, collective: all_reduce, size: 64 KiB}\n"
                   "grid: {workload.algorithm: [ring, direct]}\n", "-o", "out/inline.h5")
        self.assertFalse(set(before) & set(self.table("out/inline.h5")["identity"]))


if __name__ == "__main__":
    unittest.main()
