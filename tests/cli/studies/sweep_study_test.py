#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# Time limit: 900 s
"""What a study of `weft sweep` says: its cases, the machines that it compares, errors in it, and the parts of its language."""

import math
import os
import pathlib
import re
import subprocess
import sys
import unittest
import unittest.mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from sweep_testing import SECONDS, STUDY, SweepTest
from weft_testing import EXIT_ENVIRONMENT, EXIT_INPUT, SOURCE, WEFT, environment, weft

sys.path.insert(0, str(SOURCE / "scripts"))
from studies import pareto  # noqa: E402
from studies.expressions import Expression  # noqa: E402
from studies.sweep import Sweep  # noqa: E402
from support.errors import StudyError  # noqa: E402
from support.nodes import flow, with_value  # noqa: E402
from support.quantities import canonical  # noqa: E402


class Cases(SweepTest):
    def listed(self, text, code=0):
        """Rows of --list."""
        return [line.split() for line in self.sweep(text, "--list", code=code).out.splitlines()]

    def test_sections_multiply(self):
        rows = self.listed("""\
experiment: base.yaml
set: {workload.iterations: 2}
grid:
  topology:
    star: {kind: star, hosts: 4, link_rate: 400 Gb/s, link_delay: 500 ns}
    torus: {kind: torus, dims: [2, 2], link_rate: 400 Gb/s, link_delay: 500 ns}
list:
  - {name: small, workload.size: 1KiB, workload.channels: 1}
  - {name: large, workload.size: 1MiB, workload.channels: 2}
random: {cases: 3, seed: 7, keys: {network.window: {from: 64 KiB, to: 1 MiB, scale: log}}}
""")
        self.assertEqual(rows[0], ["case", "topology", "name", "workload.size", "workload.channels", "network.window",
                                   "status"])
        self.assertEqual(len(rows), 1 + 2 * 2 * 3)
        self.assertEqual([row[1:4] for row in rows[1:]], [
            [machine, *case] for machine in ("star", "torus") for case in (("small", "1KiB"), ("large", "1MiB"))
            for _ in range(3)])
        self.assertTrue(all(65536 <= int(row[5]) <= 1 << 20 for row in rows[1:]))
        self.assertEqual([row[5] for row in rows[1:4]], [row[5] for row in rows[4:7]])

    def test_draws_depend_on_the_seed_alone(self):
        def draws(seed, kind="random"):
            return self.listed(f"experiment: base.yaml\n{kind}:\n  cases: 8\n  seed: {seed}\n  keys:\n"
                               "    workload.iterations: {from: 1, to: 800}\n    workload.algorithm: [ring, direct]\n")

        self.assertEqual(draws(3), draws(3))
        self.assertNotEqual(draws(3), draws(4))
        # A Latin hypercube has one case in each eighth of the range, and as many of each choice.
        rows = draws(3, "latin_hypercube")[1:]
        self.assertEqual(sorted(int(8 * (int(row[1]) - 1.5) / 799) for row in rows), list(range(8)))
        self.assertEqual(sorted(row[2] for row in rows), ["direct"] * 4 + ["ring"] * 4)

    def test_named_alternatives_may_set_several_keys(self):
        self.sweep("""\
experiment: base.yaml
grid:
  plan:
    plain: {workload.algorithm: ring}
    wide: {workload.algorithm: ring, workload.channels: 2, topology.link_rate: 800 Gb/s}
""")
        table = self.table()
        self.assertEqual(table["in_plan"], ["plain", "wide"])
        self.assertLess(table["out_job_time"][1], table["out_job_time"][0])

    def test_the_link_that_is_the_bottleneck(self):
        """With one spine and ranks that alternate between leaves, all flows of a leaf leave over its only link; on the ideal
        network nothing queues. Cases that are not on the Pareto front are told."""
        text = """\
experiment:
  topology: {kind: leaf_spine, leaves: 2, hosts_per_leaf: 4, spines: 1, link_rate: 100 Gb/s, link_delay: 500 ns}
  workload: {kind: collective, collective: all_reduce, algorithm: ring, size: 1 MiB,
             placement: {kind: explicit, hosts: [0, 4, 1, 5, 2, 6, 3, 7]}}
grid: {network.fidelity: [packet, ideal]}
outputs: [job_time, longest_queue]
objective: {minimize: job_time}
"""
        done = weft("sweep", self.write(text, "study.yaml"), folder=self.folder, seconds=SECONDS)
        self.assertEqual(done.code, 0, done)
        packets, ideal = self.table()["out_longest_queue"]
        self.assertIn(packets, ["leaf0 -> spine0", "leaf1 -> spine0"])
        self.assertEqual(ideal, "")
        self.assertIn("1 further case is in the table: `weft report study.h5` shows all", done.out)

    def test_machines_that_differ_are_refused(self):
        text = """\
experiment: base.yaml
grid:
  topology:
    star: {kind: star, hosts: 4, link_rate: 400 Gb/s, link_delay: 500 ns}
    torus: {kind: torus, dims: [2, 2], link_rate: 400 Gb/s, link_delay: 500 ns}
equal: [hosts, injection_rate]
"""
        done = self.sweep(text, code=EXIT_INPUT)
        for part in ("study.yaml:6: ", "`injection_rate`", "400 Gb/s in case 0 (topology star)",
                     "800 Gb/s in case 1 (topology torus)"):
            self.assertIn(part, done.err)
        self.assertFalse((self.folder / "study.h5").exists())
        self.sweep(text + "allow_unequal: true\n")
        self.assertEqual(self.table()["machine_injection_rate"], [400e9, 800e9])
        self.sweep(text.replace("[hosts, injection_rate]", "{hosts: exact, injection_rate: 50 %}"))
        self.sweep(text.replace("torus, dims: [2, 2]", "torus, host_link_rate: 400 Gb/s, dims: [2, 2]"))

    def test_machines_of_another_price_or_power_are_refused(self):
        """A star of four has one switch of four ports and four cables; a torus of 2 x 2 has four of three ports, with
        eight cables, and a switch port more for each end."""
        text = """\
experiment: base.yaml
grid:
  topology:
    star: {kind: star, hosts: 4, link_rate: 400 Gb/s, link_delay: 500 ns}
    torus: {kind: torus, dims: [2, 2], host_link_rate: 400 Gb/s, link_rate: 400 Gb/s, link_delay: 500 ns}
accounting: {switch_port_price: 100, optical_cable_price: 250, switch_port_power: 5, optical_end_power: 0, nic_power: 0}
"""
        for figure, star, torus in (("network_cost", 4 * 4 * 100 + 4 * 4 * 250, 4 * 12 * 100 + 4 * 8 * 250),
                                    ("network_power", 4 * 4 * 5, 4 * 12 * 5)):
            done = self.sweep(text + f"equal: [{figure}]\n", code=EXIT_INPUT)
            self.assertIn("study.yaml:7: ", done.err)
            self.assertIn(f"`{figure}`", done.err)
            self.sweep(text + f"equal: {{{figure}: 70 %}}\n")
            self.assertEqual(self.table()[f"machine_{figure}"], [star, torus])
        self.sweep(text + "equal: {cost: 5 %, power: 5 %}\n")

    def test_the_job_array_of_the_documentation(self):
        """The body of the script, for two tasks; then the table, which misses the others until they have been run."""
        page = (SOURCE / "docs/tutorial/studies.md").read_text()
        script = re.search(r"^```\n(#!/bin/sh\n#SBATCH.*?)^```", page, re.MULTILINE | re.DOTALL).group(1)
        self.write(STUDY, "study.yaml")
        self.write(script, "job.sh")

        def task(number):
            path = f"{WEFT.parent}{os.pathsep}{os.environ['PATH']}"
            return subprocess.run(["sh", "job.sh"], cwd=self.folder, text=True, capture_output=True, timeout=SECONDS,
                                  env=environment({"PATH": path, "SLURM_ARRAY_TASK_ID": str(number)}))

        for number in (0, 4):
            done = task(number)
            self.assertEqual(done.returncode, 0, done.stderr)
        self.sweep("study.yaml", "--collect", code=EXIT_ENVIRONMENT)
        self.assertEqual(self.table()["status"], ["done", "missing", "missing", "missing", "done", "missing"])
        for number in (1, 2, 3, 5):
            task(number)
        self.sweep("study.yaml", "--collect", "-o", "study.h5")
        self.sweep(STUDY, "-o", "whole.h5")
        self.assert_same_table("study.h5", "whole.h5")

    def test_the_ready_made_study(self):
        rows = self.listed(str(SOURCE / "workloads" / "studies" / "networks_of_256_gpus.yaml"))
        self.assertEqual(len(rows), 1 + 9 * 3 * 3)
        done = self.sweep(str(SOURCE / "workloads" / "studies" / "networks_of_256_gpus.yaml"), "--case", "72")
        self.assertEqual(done.out, "")
        self.assertEqual(len(list((self.folder / "networks_of_256_gpus.runs").glob("*.h5"))), 1)


# Wrong studies, and the content of their errors: the line of the file, the value found, the value expected.
WRONG = {
    "grid: {}\n": ["study.yaml:1", "missing key 'experiment'"],
    "experiment: base.yaml\ngird: {}\n": ["study.yaml:2", "'gird'", "did you mean 'grid'?"],
    "experiment: none.yaml\n": ["study.yaml:1", "none.yaml", "No such file"],
    "experiment: base.yaml\ngrid:\n  worklaod.size: [1 B]\n": ["study.yaml:3", "worklaod.size", "'workload'"],
    "experiment: base.yaml\ngrid:\n  workload.size: 1 MiB\n": ["study.yaml:3", "'1 MiB'", "a list"],
    "experiment: base.yaml\ngrid:\n  workload: {size: [1 B]}\n": ["study.yaml:3", "`workload.size: [...]`"],
    "experiment: base.yaml\ngrid:\n  output.file: [a, b]\n": ["study.yaml:3", "output.file"],
    "experiment: base.yaml\ngrid:\n  workload.size: []\n": ["study.yaml:3", "no values"],
    "experiment: base.yaml\ngrid:\n  workload.size: [1 B, 1 B]\n": ["study.yaml:3", "twice"],
    "experiment: base.yaml\ngrid: {workload.size: [1 B]}\nlist:\n - {workload.size: 1 B}\n": ["study.yaml:4", "line 2"],
    "experiment: base.yaml\nrandom:\n  cases: no\n  keys: {}\n": ["study.yaml:3", "'no'", "a number of cases"],
    "experiment: base.yaml\nrandom:\n  cases: 2\n  keys:\n    workload.size: {from: 1 B, to: 1 us}\n":
        ["study.yaml:5", "'1 us'", "another unit"],
    "experiment: base.yaml\nrandom:\n  cases: 2\n  keys:\n    workload.size: {from: 0, to: 1, scale: log}\n":
        ["study.yaml:5", "'0'", "above 0"],
    "experiment: base.yaml\noutputs:\n  - job_tim\n": ["study.yaml:3", "'job_tim'", "did you mean 'job_time'?"],
    "experiment: base.yaml\noutputs:\n  - {x: q99 links/busy}\n": ["study.yaml:3", "'q99'", "p0 to p99"],
    "experiment: base.yaml\noutputs:\n  - {x: p9 messages/slowdwn}\n": ["study.yaml:3", "did you mean 'slowdown'?"],
    "experiment: base.yaml\noutputs:\n  - {x: max mesages/slowdown}\n": ["study.yaml:3", "did you mean 'messages'?"],
    "experiment: base.yaml\noutputs:\n  - {x: max links/from_name}\n": ["study.yaml:3", "no column 'from_name' of numbers"],
    "experiment: base.yaml\nderived:\n  a: 1 +\n": ["study.yaml:3", "'1 +'", "no expression"],
    "experiment: base.yaml\nderived:\n  a: job_tim + 1\n": ["study.yaml:3", "did you mean 'job_time'?"],
    "experiment: base.yaml\nderived:\n  a: b\n  b: 1\n": ["study.yaml:3", "unknown name 'b'"],
    "experiment: base.yaml\nderived:\n  hosts: 1\n": ["study.yaml:3", "'hosts'"],
    "experiment: base.yaml\nconstraints:\n  - job_time\n": ["study.yaml:3", "a comparison"],
    "experiment: base.yaml\nderived:\n  a: open('/etc/passwd')\n": ["study.yaml:3", "a call"],
    "experiment: base.yaml\nobjective:\n  minimise: job_time\n": ["study.yaml:3", "did you mean 'minimize'?"],
    "experiment: base.yaml\nobjective: {minimize: tme}\n": ["study.yaml:2", "unknown name 'tme'"],
    "experiment: base.yaml\nequal:\n  - host\n": ["study.yaml:3", "did you mean 'hosts'?"],
    "experiment: base.yaml\nequal:\n  hosts: a bit\n": ["study.yaml:3", "'a bit'", "'5 %'"],
    "experiment: base.yaml\nprocesses: 0\n": ["study.yaml:2", "'0'", "of 1 or more"],
    "experiment: base.yaml\nkeep_runs: perhaps\n": ["study.yaml:2", "'perhaps'", "true or false"],
    "experiment: base.yaml\nexperiment: base.yaml\n": ["study.yaml:2", "twice", "line 1"],
    "experiment: base.yaml\ngrid: {a: [}\n": ["study.yaml:2", "not YAML"],
    "experiment: base.yaml\nderived: {a: 1 + workload_algorithm}\ngrid: {workload.algorithm: [ring]}\n":
        ["study.yaml:2", "mixes texts and numbers"],
    "- a\n": ["study.yaml:1", "a list", "a map"],
    "# nothing\n": ["study.yaml", "empty"],
}


def complaint_in_reading(path):
    try:
        Sweep(path, quiet=True)
    except StudyError as error:
        return str(error)
    return None


class Errors(SweepTest):
    def test_each_names_its_line_and_what_would_be_right(self):
        """The program prints all errors in the same way: it is run for every eighth, and for errors found later than in
        reading. The others are read in this process."""
        os.chdir(self.folder)
        self.addCleanup(os.chdir, SOURCE)
        with unittest.mock.patch.dict(os.environ, environment({"WEFT_PROGRAM": str(WEFT)})):
            for number, (text, parts) in enumerate(WRONG.items()):
                with self.subTest(text=text):
                    said = complaint_in_reading(self.write(text, "study.yaml"))
                    if said is None or number % 8 == 0:
                        said = self.sweep(text, code=EXIT_INPUT).err
                    self.assertEqual(len(said.splitlines()), 1, said)
                    for part in parts:
                        self.assertIn(part, said)
                    self.assertFalse((self.folder / "study.h5").exists())

    def test_no_input_and_no_pipe_is_replaced(self):
        path, pipe = self.write(STUDY, "study.yaml"), self.pipe()
        self.assert_kept(path, "is an input", "sweep", path, "-o", "study.yaml")
        self.assert_kept(self.folder / "base.yaml", "is an input", "sweep", path, "-o", "base.yaml")
        self.assert_kept(pipe, "not a regular file", "sweep", path, "-o", "pipe")
        self.assert_kept(self.write("1,2\n", "table.tsv"), "no HDF5 file", "sweep", path, "-o", "table.tsv")
        (self.folder / "link.h5").symlink_to("table.h5")
        self.sweep("study.yaml", "-o", "link.h5")
        self.assertTrue((self.folder / "link.h5").is_symlink())
        self.assertEqual(len(self.table("table.h5")["case"]), 6)

    def test_studies_and_experiments_are_told_apart(self):
        study = self.write(STUDY, "study.yaml")
        for command in ("run", "describe", "plan"):
            done = weft(command, study, folder=self.folder)
            self.assertEqual(done.code, EXIT_INPUT, done)
            self.assertIn(f"{study}:1: `experiment`: found a study, which `weft sweep` runs", done.err)
        told = self.sweep("base.yaml", code=EXIT_INPUT).err
        self.assertRegex(told, r"base.yaml:\d+: found an experiment, which `weft run` runs; expected a study")

    def test_words(self):
        self.write(STUDY, "study.yaml")
        for words, part in ((["--case", "6"], "0 to 5"), (["-j", "0"], "1 or more"), (["--case", "x"], "invalid int")):
            done = self.sweep("study.yaml", *words, code=EXIT_INPUT)
            self.assertIn(part, done.err)
        self.assertIn("No such file", self.sweep("none.yaml", code=EXIT_INPUT).err)
        done = self.sweep("study.yaml", "-o", "base.yaml/out.h5", code=EXIT_ENVIRONMENT)
        self.assertIn("base.yaml", done.err)


class Parts(unittest.TestCase):
    def test_expressions(self):
        values = {"a": 3, "b": 0.5, "t": "ring"}
        for text, expected in {"a + b * 2": 4, "2 ** a - -1": 9, "a // 2": 1, "7 % a": 1, "5 * ms": 5 * 10**9,
                               "16 * KiB": 16384, "1 < a <= 3": True, "1 < a < 3": False, "not a == 3": False,
                               "t == 'ring' and b < 1": True, "t != 'ring' or b > 1": False,
                               "a if t == 'tree' else b": 0.5}.items():
            self.assertEqual(Expression(text, "here").value(values), expected, text)
        for text in ("1 / (a - 3)", "(-1) ** b", "10.0 ** 400", "9 ** 9 ** 9"):
            self.assertTrue(math.isnan(Expression(text, "here").value(values)), text)

    def test_nothing_but_arithmetic(self):
        for text in ("f(1)", "a.b", "a[0]", "().__class__", "[1]", "(1, 2)", "{1: 2}", "lambda: 1", "a := 1", "f'{a}'",
                     "[x for x in a]", "a in b", "a is b", "~a", "a << 9", "a @ b", "b'x'", "...", "1j", "*a", "yield",
                     "await a", "import os", "a; b", "a\nb", "(" * 300 + "a" + ")" * 300, "1+" * 600 + "1", "", "\0"):
            with self.assertRaises(StudyError, msg=text):
                Expression(text, "here")

    def test_quantities_have_one_text(self):
        for one, other in (("1 MiB", "1024KiB"), ("0.4 Tb/s", "400 Gbps"), ("50 GB/s", "400 Gb/s"), ("1us", "1e3 ns")):
            self.assertEqual(canonical(one), canonical(other))
        for text in ("ring", "1 B extra", "0.5 B", "1 mib", "3"):
            self.assertEqual(canonical(text), text)

    def test_settings(self):
        base = {"a": {"b": ["1", {"c": "2"}]}}
        self.assertEqual(with_value(base, "a.b.1.c", "3"), {"a": {"b": ["1", {"c": "3"}]}})
        self.assertEqual(with_value(base, "x.y", "3"), {**base, "x": {"y": "3"}})
        self.assertEqual(base, {"a": {"b": ["1", {"c": "2"}]}})
        for path in ("a.b.0.c", "a.b.5"):
            with self.assertRaises(KeyError):
                with_value(base, path, "3")
        self.assertEqual(flow({"a": ["1 MiB", "x: y", None, ""]}), '{a: [1 MiB, "x: y", null, ""]}')

    def test_pareto_front(self):
        points = [(1, 5), (2, 4), (2, 5), (3, 3), (1, 5), (3, 4), (0, math.nan)]
        rows = [{"values": {"x": x, "y": -y}, "feasible": True} for x, y in points]
        rows.append({"values": {"x": 0, "y": 0}, "feasible": False})
        self.assertEqual(pareto.front(rows, [("x", True), ("y", False)]),
                         [True, True, False, True, True, False, False, False])
        self.assertEqual(pareto.front(rows, []), [False] * 8)


if __name__ == "__main__":
    unittest.main()
