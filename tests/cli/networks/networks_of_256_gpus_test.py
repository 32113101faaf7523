#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# Runs in: full
# Time limit: 3600 s
"""The ready-made study of five networks for 256 GPUs: one file and one command, interrupted and resumed, with the rows
that cases give that run alone, and its page. Its largest calls have a quarter of their bytes here: how many packets a
case has is nothing to a study, and two thirds of the time. That any number of workers gives one table is held to all cases of a smaller
study: cli/studies/sweep."""

import pathlib
import signal
import subprocess
import sys
import unittest

import h5py
import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from weft_browser import Browser
from weft_testing import EXIT_ENVIRONMENT, EXIT_INTERRUPTED, SOURCE, WEFT, ProgramTest, environment, wait_until

STUDY = SOURCE / "workloads" / "studies" / "networks_of_256_gpus.yaml"
CASES = 81
LARGEST, HERE = "16 MiB", "4 MiB"
ALONE = range(0, CASES, 10)  # of nine machines, each with another of nine algorithms and sizes
OF_ALL_CASES = {"pareto"}  # the rows on the front depend on all rows
SECONDS = 3000


class Networks(ProgramTest):
    def setUp(self):
        super().setUp()
        text = STUDY.read_text()
        self.assertEqual(text.count(LARGEST), 1)
        self.study = self.write(text.replace(LARGEST, HERE), STUDY.name)

    def sweep(self, *words):
        return subprocess.Popen([str(WEFT), "sweep", str(self.study), "--quiet", *words], cwd=self.folder, env=environment(),
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def end(self, process, code=0):
        _, said = process.communicate(timeout=SECONDS)
        self.assertEqual(process.returncode, code, said)

    def test_interrupted_and_resumed_it_gives_the_rows_of_cases_alone(self):
        folder = self.folder / "two.runs"
        for number, at_least in ((signal.SIGINT, 8), (signal.SIGTERM, 40)):
            process = self.sweep("-j", "2", "-o", "two.h5")
            wait_until(lambda: len(list(folder.glob("[!m]*.json"))) >= at_least, f"{at_least} runs", process, SECONDS)
            process.send_signal(number)
            self.end(process, EXIT_INTERRUPTED)
            self.assertFalse((self.folder / "two.h5").exists())
        self.end(self.sweep("-j", "2", "-o", "two.h5"))
        for case in ALONE:
            self.end(self.sweep("--case", str(case), "-o", "alone.h5"))
        self.end(self.sweep("--collect", "-o", "alone.h5"), EXIT_ENVIRONMENT)  # most are missing
        with h5py.File(self.folder / "alone.h5") as alone, h5py.File(self.folder / "two.h5") as two:
            self.assertEqual(len(two["cases/case"]), CASES)
            self.assertEqual(set(two["cases/status"].asstr()[:]), {"done"})
            self.assertEqual(set(alone["cases"]), set(two["cases"]))
            for name in set(two["cases"]) - OF_ALL_CASES - {"run"}:
                with self.subTest(name):
                    numpy.testing.assert_array_equal(*(file["cases"][name][:][ALONE] for file in (alone, two)))
            best = sorted(two["cases/case"][two["cases/pareto"][:] == 1].tolist())
        self.look_at_the_page(best)

    def look_at_the_page(self, best):
        self.run_weft("report", "two.h5")
        with Browser() as browser:
            browser.open(self.folder / "two.html")
            self.assertEqual((browser.complaints, browser.requests[1:]), ([], []))
            shown = browser.value("[...document.querySelectorAll('span[data-front]')].map((e) => "
                                  "Number(e.dataset.front))")
            self.assertEqual(sorted(shown), best)
            inputs = browser.value("[...document.querySelectorAll('[data-input]')].map((e) => e.dataset.input)")
            self.assertEqual(set(inputs), {"in_machine", "in_balancing", "in_workload_algorithm"})
            text = browser.value("document.querySelector('[data-name=front]').innerText")
            for unit in ("µs", "J", "$"):
                self.assertIn(unit, text)


if __name__ == "__main__":
    unittest.main()
