#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# Runs in: full
# Time limit: 3600 s
"""The ready-made study of five networks for 256 GPUs: one file and one command, on one and two workers, interrupted and
resumed, with the same table, and its page."""

import pathlib
import signal
import subprocess
import sys
import unittest

import h5py

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from weft_browser import Browser
from weft_testing import EXIT_INTERRUPTED, SOURCE, WEFT, ProgramTest, environment, same_results, wait_until

STUDY = SOURCE / "workloads" / "studies" / "networks_of_256_gpus.yaml"
CASES = 81
SECONDS = 3000


class Networks(ProgramTest):
    def sweep(self, *words):
        return subprocess.Popen([str(WEFT), "sweep", str(STUDY), "--quiet", *words], cwd=self.folder, env=environment(),
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def end(self, process, code=0):
        _, said = process.communicate(timeout=SECONDS)
        self.assertEqual(process.returncode, code, said)

    def test_any_number_of_workers_and_interruptions_give_the_same_table(self):
        self.end(self.sweep("-j", "1", "-o", "one.h5"))
        folder = self.folder / "two.runs"
        for number, at_least in ((signal.SIGINT, 8), (signal.SIGTERM, 40)):
            process = self.sweep("-j", "2", "-o", "two.h5")
            wait_until(lambda: len(list(folder.glob("[!m]*.json"))) >= at_least, f"{at_least} runs", process, SECONDS)
            process.send_signal(number)
            self.end(process, EXIT_INTERRUPTED)
            self.assertFalse((self.folder / "two.h5").exists())
        self.end(self.sweep("-j", "2", "-o", "two.h5"))
        with h5py.File(self.folder / "one.h5") as one, h5py.File(self.folder / "two.h5") as two:
            self.assertEqual(len(one["cases/case"]), CASES)
            self.assertEqual(set(one["cases/status"].asstr()[:]), {"done"})
            self.assertEqual(list(same_results.differences(one, two, ["/timing", "/runs", "/cases/run"])), [])
            best = sorted(one["cases/case"][one["cases/pareto"][:] == 1].tolist())
        self.look_at_the_page(best)

    def look_at_the_page(self, best):
        self.run_weft("report", "one.h5")
        with Browser() as browser:
            browser.open(self.folder / "one.html")
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
