#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Every command says the same of a file that it cannot read: exit code 2 and one line `weft: FILE: ...`, with the name that may
be meant."""

import pathlib
import re
import shutil
import sys
import unittest

import h5py

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from weft_testing import EXIT_INPUT, ProgramTest, weft

EXPERIMENT = {"topology": {"kind": "star", "hosts": 4, "link_rate": "400 Gb/s", "link_delay": "500 ns"},
              "workload": {"kind": "collective", "collective": "all_reduce", "algorithm": "ring", "size": "64 KiB"}}

# Command lines whose last word is a file of the kind.
OF_EXPERIMENT = [["run"], ["describe"], ["workload"], ["topology"], ["perf", "all_reduce"], ["export", "chakra", "-o", "x"],
                 ["export", "goal", "-o", "x"], ["plan"], ["what-if"], ["sweep"]]
OF_RESULTS = [["report"], ["plot"], ["explain"], ["slowdown"], ["account"], ["compare", "first.h5"], ["export", "--csv", "x"],
              ["export", "--trace", "x.json"], ["plan", "first.yaml", "--check"]]
OF_A_RUN = [words for words in OF_RESULTS if words not in (["report"], ["export", "--csv", "x"])]
OF_TRACES = [["import", "auto"], ["import", "chakra"], ["import", "aicb"], ["import", "pytorch"], ["import", "hlo"],
             ["import", "xplane"], ["import", "onnx"], ["import", "flight-recorder"]]


class InputFiles(ProgramTest):
    def setUp(self):
        super().setUp()
        self.write(EXPERIMENT, "first.yaml")
        self.run_weft("run", "first.yaml", "-o", "first.h5", "--quiet")

    def refused(self, words, name, text):
        with self.subTest(" ".join([*words, name])):
            before = sorted(self.folder.rglob("*"))
            done = weft(*words, name, folder=self.folder)
            self.assertEqual((done.code, done.out), (EXIT_INPUT, ""), done)
            self.assertRegex(done.err, rf"\Aweft: {re.escape(name)}: {text}\n\Z", done)
            self.assertEqual(sorted(self.folder.rglob("*")), before, done)

    def test_missing(self):
        gone = r"cannot open this file: No such file or directory"
        for words in OF_EXPERIMENT:
            self.refused(words, "frist.yaml", rf"{gone} \(did you mean 'first.yaml'\?\)")
            if words != ["plan"]:  # it takes such a word for the beginning of the names of a trace, and says so
                self.refused(words, "first", rf"{gone} \(did you mean 'first.yaml'\?\)")
            self.refused(words, "large.yaml", gone)
            self.refused(words, "firsts/first.yaml", rf"{gone}, nor a folder 'firsts'.*")
            self.refused(words, "plans_of_llama31_8b_on_16_gpus",
                         rf"{gone} \(a ready-made one is '.*workloads/studies/plans_of_llama31_8b_on_16_gpus.yaml'\)")
        for words in OF_RESULTS:
            self.refused(words, "frist.h5", rf"{gone} \(did you mean 'first.h5'\?\)")
            self.refused(words, "first", rf"{gone} \(did you mean 'first.h5'\?\)")
            self.refused(words, "incast.h5", rf"{gone}; `weft run .*workloads/incast.yaml -o incast.h5` writes it")
        for words in OF_TRACES:
            self.refused(words, "frist.yaml", r".*\(did you mean 'first.yaml'\?\)")

    def test_results_of_a_run_that_has_not_ended(self):
        (self.folder / "second.h5.partial").write_bytes(b"")
        for words in OF_RESULTS:
            self.refused(words, "second.h5", "cannot open .*; there is 'second.h5.partial', of a run that has not ended or was killed")

    def test_results_before_the_run(self):
        self.write(EXPERIMENT, "second.yaml")
        self.write("experiment: first.yaml\ngrid: {workload.size: [1 KiB]}\noutputs: [job_time]\n", "third.yaml")
        for words in OF_RESULTS:
            self.refused(words, "second.h5", "cannot open .*; `weft run second.yaml -o second.h5` writes it")
            self.refused(words, "third.h5", "cannot open .*; `weft sweep third.yaml -o third.h5` writes it")

    def test_a_folder(self):
        (self.folder / "folder").mkdir()
        for words in OF_EXPERIMENT:
            if words != ["plan"] and words[0] not in ("run", "describe", "workload", "export"):  # these take traces
                self.refused(words, "folder", "cannot open this file: it is a folder")
        for words in OF_RESULTS:
            self.refused(words, "folder", "it is a folder; a result file .* was expected")

    def test_another_kind_of_file(self):
        for words in OF_EXPERIMENT:
            self.refused(words, "first.h5", "this is an HDF5 file, such as `weft run` writes for its results; expected YAML")
        for words in OF_RESULTS:
            self.refused(words, "first.yaml", "it is not an HDF5 file; a result file of `weft run` was expected")
        self.write("experiment: first.yaml\ngrid: {workload.size: [1 KiB]}\noutputs: [job_time]\n", "study.yaml")
        self.run_weft("sweep", "study.yaml", "-o", "study.h5", "--quiet")
        for words in (["run"], ["describe"], ["topology"], ["perf", "all_reduce"], ["plan"]):
            with self.subTest(" ".join(words)):
                done = weft(*words, "study.yaml", folder=self.folder)
                self.assertEqual((done.code, done.out), (EXIT_INPUT, ""), done)
                self.assertRegex(done.err, r"\Aweft: study.yaml:1: (`experiment`: )?found a study, which `weft sweep` runs; .*\n\Z")
        for words in OF_A_RUN:
            self.refused(words, "study.h5", r"it is the table of a study \(weft-study\).*the result file of one run was expected.*")

    def test_damaged_or_newer_results(self):
        (self.folder / "empty.h5").write_bytes(b"")
        (self.folder / "cut.h5").write_bytes((self.folder / "first.h5").read_bytes()[:3000])
        for name, key in (("newer.h5", "format_version"), ("foreign.h5", "format")):
            shutil.copy(self.folder / "first.h5", self.folder / name)
            with h5py.File(self.folder / name, "a") as results:
                results.attrs[key] = 99 if name == "newer.h5" else "theirs"
        for words in OF_RESULTS:
            self.refused(words, "empty.h5", "it is empty; .*")
            self.refused(words, "cut.h5", "it is cut off or damaged: it has 3000 bytes of [0-9]+")
            self.refused(words, "newer.h5", "it has version 99 of the format, and this weft knows 1; .*")
            self.refused(words, "foreign.h5", "it is not a result file of weft: its attribute 'format' is 'theirs', .*")

    def test_an_incomplete_run_is_told(self):
        """`complete` is 0: who reads its numbers is told, in the output or on standard error."""
        shutil.copy(self.folder / "first.h5", self.folder / "cut_short.h5")
        with h5py.File(self.folder / "cut_short.h5", "a") as results:
            results.attrs["complete"] = 0
        for words in (["explain"], ["slowdown"], ["account"], ["compare", "first.h5"], ["export", "--csv", "x"]):
            with self.subTest(" ".join(words)):
                done = weft(*words, "cut_short.h5", folder=self.folder)
                self.assertEqual(done.code, 0, done)
                self.assertRegex(done.out + done.err, "(?i)incomplete|did not reach its end", done)
        self.refused(["plan", "first.yaml", "--check"], "cut_short.h5", "it is of a run that was interrupted or cut short; .*")

    def test_wrong_options(self):
        """Whatever reads the words of a command, C++ or Python, the error has one form."""
        self.write("experiment: first.yaml\ngrid: {workload.size: [1 KiB]}\noutputs: [job_time]\n", "study.yaml")
        for words in (["run", "first.yaml"], ["plot", "first.h5"], ["report", "first.h5"], ["explain", "first.h5"],
                      ["sweep", "first.yaml"], ["import", "aicb", "first.yaml"], ["slowdown", "first.h5"]):
            with self.subTest(" ".join(words)):
                done = weft(*words, "--no-such-option", folder=self.folder)
                self.assertEqual((done.code, done.out), (EXIT_INPUT, ""), done)
                self.assertRegex(done.err, r"\Aweft: .*--no-such-option.*\n\Z", done)
        for words, text in ((["run", "first.yaml", "--quite"], "did you mean '--quiet'"),
                            (["sweep", "first.yaml", "--quite"], "did you mean '--quiet'"),
                            (["what-if", "first.yaml", "--jsn"], "did you mean '--json'"),
                            (["sweep", "first.yaml", "--quie"], "did you mean '--quiet'"),  # no abbreviations
                            (["plot", "first.h5", "--kind", "rate"], "did you mean 'rates'"),
                            (["device", "h100-sxmm"], "did you mean 'h100-sxm'"),
                            (["device", "frist.yaml"], "frist.yaml: cannot open this file.*did you mean 'first.yaml'"),
                            (["device", "first.yaml"], "first.yaml: no device file: "),
                            (["sweep", "study.yaml", "-o", "table.csv"], "table.csv'; expected the name of an HDF5 file"),
                            (["plot", "first.h5", "--kind", "rates"], "first.h5: it has no series of queue pairs: set output.rates")):
            with self.subTest(" ".join(words)):
                done = weft(*words, folder=self.folder)
                self.assertEqual((done.code, done.out), (EXIT_INPUT, ""), done)
                self.assertRegex(done.err, rf"\Aweft: .*{text}.*\n\Z", done)


if __name__ == "__main__":
    unittest.main()
