# SPDX-License-Identifier: GPL-2.0-only
"""Every format of `weft import`, by walking the registry: a sample is imported, counted as an independent count has it,
runs to the end with all its operations, and what is damaged is refused without a trace.

A format has tests/importers/NAME.py, with
sample(folder)      writes an input by the format's own rules; gives the words after `weft import FORMAT`
counts(folder)      {"ranks": .., "operations": {kind: number}, "bytes": {kind: bytes}} by a count of its own
damaged(folder)     (what, words) of inputs that are to be refused
further(folder)     words of another input, if there is one that other code reads"""

# Time limit: 600 s

import importlib.util
import json
import pathlib
import sys
import unittest
import unittest.mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import chakra_files
import weft_testing
from weft_testing import EXIT_INPUT, SOURCE

sys.path.insert(0, str(SOURCE / "scripts"))
from importing import registry  # noqa: E402


def samples_of(name):
    """tests/importers/NAME.py, apart from the package of the same name in scripts/."""
    path = SOURCE / "tests" / "importers" / f"{name.replace('-', '_')}.py"
    spec = importlib.util.spec_from_file_location(f"samples_of_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def of_each_format(check):
    """`check(self, name, samples, folder)` for each format, in a folder of its own."""
    def test(self):
        for name in registry.formats():
            with self.subTest(format=name):
                folder = self.folder / name
                folder.mkdir()
                check(self, name, samples_of(name), folder)

    return test


class Conformance(weft_testing.ProgramTest):
    def imported(self, name, words, folder, *more):
        return weft_testing.weft("import", name, *words, *more, folder=folder)

    def test_summaries_are_lines_of_a_list(self):
        listed = self.run_weft("import", "--help").out
        for name in registry.formats():
            self.assertRegex(listed, rf"(?m)^  {name} +\S")
            self.assertLessEqual(len(registry.load(name).SUMMARY), 90)

    @of_each_format
    def test_samples_are_counted_and_run_to_the_end(self, name, samples, folder):
        words = samples.sample(folder)
        done = self.imported(name, words, folder, "-o", "out.yaml", "--json")
        self.assertEqual(done.code, 0, done)
        read, due = json.loads(done.out), samples.counts(folder)
        for what in ("ranks", "operations", "bytes"):
            self.assertEqual(read[what], due[what], f"{name}: {what}")
        run = weft_testing.weft("run", "out.yaml", "--summary", "json", "--quiet", folder=folder)
        self.assertEqual(run.code, 0, run)
        self.assertTrue(run.summary()["complete"], name)
        self.assertEqual(run.summary()["operations"], sum(due["operations"].values()), f"{name}: executed")

    @of_each_format
    def test_further_inputs_run(self, name, samples, folder):
        if not hasattr(samples, "further"):
            return
        done = self.imported(name, samples.further(folder), folder, "-o", "out.yaml", "--json")
        self.assertEqual(done.code, 0, done)
        run = weft_testing.weft("run", "out.yaml", "--summary", "json", "--quiet", folder=folder)
        self.assertEqual(run.code, 0, run)
        self.assertEqual(run.summary()["operations"], sum(json.loads(done.out)["operations"].values()))

    @of_each_format
    def test_damage_is_refused_and_leaves_nothing(self, name, samples, folder):
        count = 0
        for what, words in samples.damaged(folder):
            with self.subTest(damage=what):
                before = sorted(folder.iterdir())
                done = self.imported(name, words, folder, "-o", "out.yaml")
                self.assertEqual(done.code, EXIT_INPUT, done)
                self.assertRegex(done.err, r"^weft: [^\n]+\n$")
                self.assertEqual(sorted(folder.iterdir()), before)
                count += 1
        self.assertGreater(count, 1, name)

    @of_each_format
    def test_content_tells_the_format(self, name, samples, folder):
        words = samples.sample(folder)
        if len(words) == 1:
            self.assertEqual(registry.recognise(folder / words[0]), name)

    def test_a_new_format_is_tried_without_any_edit(self):
        """A module is all it takes; and its samples, without which it fails."""
        (self.folder / "newcomer.py").touch()
        tried = []
        check = of_each_format(lambda _, name, samples, folder: tried.append(name))
        with unittest.mock.patch.object(registry, "FOLDER", self.folder), \
                unittest.mock.patch(f"{__name__}.samples_of", lambda name: tried.append(f"samples of {name}")):
            check(self)
        self.assertEqual(tried, ["samples of newcomer", "newcomer"])
        self.assertRaises(FileNotFoundError, samples_of, "newcomer")

    def test_words_that_are_wrong(self):
        for words in (["gaol", "x"], ["goal"], ["auto"], ["goal", "missing.goal"], ["auto", "/dev/null"]):
            with self.subTest(words=words):
                done = weft_testing.weft("import", *words, folder=self.folder)
                self.assertEqual((done.code, done.out), (EXIT_INPUT, ""), done)

    def test_a_file_that_does_not_exist(self):
        done = weft_testing.weft("import", "auto", "nothing", folder=self.folder)
        self.assertEqual((done.code, done.err), (EXIT_INPUT, "weft: nothing: there is no such file or folder\n"), done)

    def test_quiet_only_prints_nothing(self):
        """What is wrong is refused all the same."""
        nodes = [chakra_files.node(0, chakra_files.COLL, comm_type=42, comm_size=8)]
        chakra_files.write(self.folder, [nodes, nodes])
        words = samples_of("goal").sample(self.folder)
        done = weft_testing.weft("import", "chakra", "trace", "-o", "out.yaml", "--quiet", folder=self.folder)
        self.assertEqual(done.code, EXIT_INPUT, done)
        self.assertIn("trace.0.et: node 0", done.err)
        self.assertFalse((self.folder / "out.yaml").exists())
        done = self.run_weft("import", "goal", *words, "-o", "out.yaml", "--quiet")
        self.assertEqual(done.out + done.err, "")
        self.assertIn("ranks", json.loads(self.run_weft("import", "goal", *words, "-o", "out.yaml", "--quiet", "--json").out))

    def test_only_a_named_output_is_replaced(self):
        """The default one may be an experiment that its user has changed."""
        words = ["import", "goal", *samples_of("goal").sample(self.folder), "--quiet"]
        self.run_weft(*words)
        (self.folder / "ring.yaml").write_text("changed")
        done = weft_testing.weft(*words, folder=self.folder)
        self.assertEqual(done.code, EXIT_INPUT, done)
        self.assertEqual(done.err, "weft: 'ring.yaml' exists; name the output with -o ring.yaml to replace it\n")
        self.assertEqual((self.folder / "ring.yaml").read_text(), "changed")
        self.run_weft(*words, "-o", "ring.yaml")
        self.assertIn("kind: goal", (self.folder / "ring.yaml").read_text())

    def test_no_folder_is_made(self):
        words = samples_of("goal").sample(self.folder)
        done = weft_testing.weft("import", "goal", *words, "-o", "none/ring.yaml", folder=self.folder)
        self.assertEqual((done.code, done.err), (weft_testing.EXIT_ENVIRONMENT,
                                                 "weft: cannot write into 'none': No such file or directory\n"), done)
        self.assertFalse((self.folder / "none").exists())

    def test_errors_about_what_is_no_text(self):
        """weft's readers name what they found byte by byte: half of a character, or one that is not in UTF-8."""
        (self.folder / "u.goal").write_bytes("num_ranks 1\nrank 0 {\nl\u00e9: calc 5\n}\n".encode())
        (self.folder / "k.0.et").write_bytes(b'{"version":"0.0.4"}{"id":1,"name":"caf\xe9","type":"COMP_NODE",'
                                             b'"duration_micros":5}')
        for words, says in ((["goal", "u.goal"], "u.goal:3: "), (["auto", "u.goal"], "u.goal:3: "),
                            (["chakra", "k.0.et"], "k.0.et")):
            with self.subTest(words=words):
                done = weft_testing.weft("import", *words, "-o", "out.yaml", folder=self.folder)
                self.assertEqual(done.code, EXIT_INPUT, done)
                self.assertRegex(done.err, r"^weft: [^\n]+\n$")
                self.assertIn(says, done.err)

    def test_a_computation_as_long_as_simulated_time(self):
        """The error is about the file of Multiverse, not about the one that is written from it."""
        samples_of("multiverse").write(self.folder / "long",
                                       lambda rank, text: text.replace('"12"', '"9158400000000"', 1))
        done = weft_testing.weft("import", "multiverse", "long", "-o", "out.yaml", folder=self.folder)
        self.assertEqual(done.code, EXIT_INPUT, done)
        self.assertRegex(done.err, r"^weft: long/npu.0.json:\d+: .*durationMicros: found '9158400000000'; expected a "
                                   r"whole number from 0 to 9158399999999\n$")

    def test_a_name_that_is_not_utf_8(self):
        words = samples_of("goal").sample(self.folder)
        name = "lat\udce9.goal"
        (self.folder / words[0]).rename(self.folder / name)
        self.run_weft("import", "goal", name, *words[1:], "-o", "experiment.yaml")
        self.run_weft("run", "experiment.yaml", "-o", "out.h5", "--quiet", extra={})

    def test_an_input_is_not_overwritten(self):
        words = samples_of("goal").sample(self.folder)
        done = weft_testing.weft("import", "goal", *words, "-o", words[0], folder=self.folder)
        self.assertEqual(done.code, EXIT_INPUT, done)
        self.assertEqual((self.folder / words[0]).read_text(), samples_of("goal").text())
        topology = self.write("topology: {kind: star, hosts: 16, link_rate: 100 Gb/s, link_delay: 1 us}", "star.yaml")
        self.assert_kept(topology, "is an input", "import", "goal", *words, "--topology", topology, "-o", topology)
        self.assert_kept(self.pipe(), "not a regular file", "import", "goal", *words, "-o", "pipe")
        (self.folder / "link.yaml").symlink_to("experiment.yaml")
        self.run_weft("import", "goal", *words, "-o", "link.yaml")
        self.assertTrue((self.folder / "link.yaml").is_symlink())
        self.assertIn("workload", (self.folder / "experiment.yaml").read_text())


if __name__ == "__main__":
    unittest.main()
