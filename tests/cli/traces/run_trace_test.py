# SPDX-License-Identifier: GPL-2.0-only
"""`weft run TRACE`: traces of other programs where an experiment is expected, alone and on several processes."""

# Time limit: 300 s

import importlib.util
import json
import os
import pathlib
import signal
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import chakra_files  # noqa: E402
import flight_files
import weft_testing  # noqa: E402
from weft_testing import EXIT_INPUT, SOURCE, attributes  # noqa: E402


def sample(name, folder):
    spec = importlib.util.spec_from_file_location("sample", SOURCE / "tests" / "importers" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.sample(folder)[0]


class RunTrace(weft_testing.ProgramTest):
    def setUp(self):
        super().setUp()
        self.scratch = self.folder / "tmp"
        self.scratch.mkdir()
        self.extra = {"TMPDIR": str(self.scratch)}

    def leftovers(self):
        return [path for path in [*self.folder.glob(".*"), *self.scratch.glob(".weft*")]]

    def run_trace(self, trace, *words, ranks=None):
        done = weft_testing.weft("run", trace, "-o", "out.h5", "--summary", "json", "--quiet", *words, ranks=ranks,
                                 folder=self.folder, extra=self.extra)
        self.assertEqual(done.code, 0, done)
        self.assertEqual(self.leftovers(), [])
        return done.summary()

    def test_each_kind_of_trace_runs(self):
        for name in ("chakra", "goal", "aicb", "flows", "htsim", "nccl_topology"):
            with self.subTest(format=name):
                trace = sample(name, self.folder)
                summary = self.run_trace(trace)
                self.assertTrue(summary["complete"])
                self.assertEqual(summary["experiment"], trace)
                self.assertEqual(attributes(self.folder / "out.h5", "manifest")["experiment_file"], trace)

    def test_results_are_those_of_the_imported_experiment_on_any_number_of_processes(self):
        trace = sample("goal", self.folder)
        self.run_weft("import", "goal", trace, "-o", "imported.yaml", "--quiet")
        due = self.simulate(self.folder / "imported.yaml", output="due.h5")[0]["fingerprint"]
        for ranks in (None, 2, 4):
            self.assertEqual(self.run_trace(trace, ranks=ranks)["fingerprint"], due)

    def test_settings_and_default_output(self):
        trace = sample("flows", self.folder)
        done = weft_testing.weft("run", trace, "--set", "topology.link_delay=9 us", "--summary", "json", "--quiet",
                                 folder=self.folder, extra=self.extra)
        self.assertGreater(done.summary()["simulated_time_ps"], 18_000_000)
        self.assertTrue((self.folder / "flows.h5").exists())

    def test_workload_and_describe(self):
        trace = sample("goal", self.folder)
        read = json.loads(self.run_weft("workload", trace, "--json", "--no-run").out)
        self.assertEqual((read["ranks"], read["operations_by_kind"]["send"]["size_bytes"]), (4, 16384))
        self.assertIn("ring.goal", self.run_weft("describe", trace).out)

    def test_what_is_left_out_is_said_where_there_is_no_experiment_that_lists_it(self):
        for rank in range(2):
            dump = flight_files.Dump(rank, 2)
            dump.call("broadcast", 100, [[1024]])
            dump.write(self.folder / "dumps")
        done = weft_testing.weft("run", "dumps", "-o", "out.h5", "--quiet", folder=self.folder, extra=self.extra)
        self.assertEqual((done.code, done.err), (0, "weft: warning: dumps/nccl_trace_rank_0: the root of a broadcast is not "
                         "recorded, and is taken to be the first rank of its group (2 times)\n"), done)

    def test_damage_is_told_by_the_importer(self):
        sample("htsim", self.folder)
        path = self.write((self.folder / "ring.cm").read_text().replace("3->0", "3->9"), "bad.cm")
        for ranks in (None, 2):
            done = weft_testing.weft("run", path.name, ranks=ranks, folder=self.folder, extra=self.extra)
            self.assertEqual(done.code, EXIT_INPUT, done)
            self.assertIn("bad.cm:8: 3->9", done.err)
            self.assertEqual(self.leftovers(), [])

    def test_errors_of_weft_s_readers_name_the_trace(self):
        """By a name that can be opened, also when the folder of the import is gone."""
        sample("goal", self.folder)
        (self.folder / "inner").mkdir()
        path = self.folder / "inner" / "bad.goal"
        path.write_text((self.folder / "ring.goal").read_text().replace("send 4096b", "send 4096"))
        for ranks in (None, 2):
            done = weft_testing.weft("run", "inner/bad.goal", ranks=ranks, folder=self.folder, extra=self.extra)
            self.assertEqual(done.code, EXIT_INPUT, done)
            self.assertEqual(done.messages(), [f"weft: {path}:4: the size is '4096'; expected bytes such as 4096b"])

    def test_more_ranks_than_one_switch_has_ports(self):
        says = "expected up to 65535, the ports of one switch, or --topology with the machine"
        for name, text, place in (("x.goal", "// many\n\nnum_ranks 1000000000\nrank 0 {\n}\n", "3: 1000000000 ranks"),
                                  ("x.cm", "Nodes 70000\nConnections 1\n0->1 id 1 start 0 size 1\n", "1: 70000 ranks"),
                                  ("x.csv", "src,dst,size\n0,1,5\n69999,1,5\n0,1,5\n", "3: 70000 ranks")):
            self.write(text, name)
            done = weft_testing.weft("run", name, folder=self.folder, extra=self.extra)
            self.assertEqual((done.code, done.err), (EXIT_INPUT, f"weft: {name}:{place}: {says}\n"), done)

    def test_a_folder_without_one_rank_s_file(self):
        """Its format is known by the files that are there."""
        sample("multiverse", self.folder)
        nodes = [chakra_files.node(0, chakra_files.COMP, duration=1)]
        (self.folder / "chakra").mkdir()
        chakra_files.write(self.folder, [nodes] * 4, "chakra/w")
        for folder, name, what in (("chakra", "w.2.et", "it is missing: there are files of 3 ranks, up to 3"),
                                   ("input", "npu.1.json", "it is missing: there are files of 3 NPUs, up to 3"),
                                   ("chakra", "w.0.et", "found 0 traces in the folder (no file NAME.0.et)"),
                                   ("input", "npu.0.json", "it is missing: there are files of 2 NPUs, up to 3")):
            (self.folder / folder / name).unlink()
            for words in (["run", folder], ["import", "auto", folder]):
                done = weft_testing.weft(*words, folder=self.folder, extra=self.extra)
                self.assertEqual((done.code, done.out), (EXIT_INPUT, ""), done)
                self.assertIn(what, done.err)
        (self.folder / "chakra" / "w.0.et").write_bytes(b"")
        done = weft_testing.weft("run", "chakra", folder=self.folder, extra=self.extra)
        self.assertEqual(done.code, EXIT_INPUT, done)
        self.assertIn("chakra/w.2.et: it is missing", done.err)

    def test_what_is_neither_is_an_experiment_that_is_wrong(self):
        for name, text in {"a.txt": "hello\n", "b.yaml": "topolgy: {}\n", "c.json": '{"topology": 3}'}.items():
            done = weft_testing.weft("run", self.write(text, name), folder=self.folder, extra=self.extra)
            self.assertEqual(done.code, EXIT_INPUT, done)
            self.assertIn(name, done.err)
            self.assertEqual(self.leftovers(), [])
        done = weft_testing.weft("run", "nothing", folder=self.folder)
        self.assertEqual(done.code, EXIT_INPUT, done)

    def test_a_signal_to_the_process_alone_ends_the_import_too(self):
        flows = "start,source,destination,bytes\n" + "".join(f"{i},0,1,1\n" for i in range(300_000))
        process = weft_testing.start(["run", self.write(flows, "long.csv"), "--quiet"], folder=self.folder, extra=self.extra)
        weft_testing.wait_until(self.leftovers, "an import", process)
        process.send_signal(signal.SIGTERM)
        self.assertNotEqual(process.wait(60), 0)
        weft_testing.wait_until(lambda: not self.leftovers(), "the end of what was imported")
        # An importer that went on would write its files now.
        deadline = time.monotonic() + 3
        while time.monotonic() < deadline:
            self.assertEqual(self.leftovers(), [])
            time.sleep(0.1)

    def test_a_signal_leaves_nothing(self):
        flows = "start,source,destination,bytes\n" + "".join(f"{i},0,1,1\n" for i in range(300_000))
        trace = self.write(flows, "long.csv")
        process = weft_testing.start(["run", trace, "--quiet"], folder=self.folder, extra=self.extra)
        weft_testing.wait_until(self.leftovers, "an import", process)
        os.killpg(process.pid, signal.SIGTERM)
        self.assertNotEqual(process.wait(60), 0)
        weft_testing.wait_until(lambda: not self.leftovers(), "the end of what was imported")


if __name__ == "__main__":
    unittest.main()
