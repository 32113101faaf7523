#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# Runs in: full
# Time limit: 3600 s
"""The ready-made search over plans for Llama-3.1-8B on 16 GPUs finds the plan that is best of all by packets, with five
packet runs instead of one for each plan."""

import json
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from weft_testing import SOURCE, ProgramTest

STUDY = SOURCE / "workloads" / "studies" / "plans_of_llama31_8b_on_16_gpus.yaml"
SECONDS = 3500


class Plans(ProgramTest):
    def sweep(self, study):
        return json.loads(self.run_weft("sweep", study, "--quiet", "--summary", "json", "-o", "plans.h5",
                                        seconds=SECONDS).out)

    def test_the_search_finds_the_best_of_all_packet_runs(self):
        found = self.sweep(STUDY)
        self.assertEqual((found["cases"], found["failed"], found["missing"], found["done"]), (11, 0, 0, 5))
        # The same without a search: finished runs are in the folder already, the rest runs.
        text = "".join(line for line in STUDY.read_text().splitlines(True) if not line.startswith("search:"))
        whole = self.sweep(self.write(text, "exhaustive.yaml"))
        self.assertEqual((whole["done"], whole["failed"]), (11, 0))
        times = [case["values"]["step_time"] if case["feasible"] else float("inf") for case in whole["case_list"]]
        self.assertEqual(found["search"]["best"], times.index(min(times)))
        for case in found["case_list"]:
            if case["status"] == "done":
                self.assertEqual(case["values"]["step_time"], times[case["case"]])


if __name__ == "__main__":
    unittest.main()
