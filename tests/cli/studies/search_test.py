#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# Time limit: 900 s
"""`search:` of a study: the ideal network ranks, packets decide, and the result is the best of all packet runs."""

import json
import math
import pathlib
import sys
import unittest

import h5py

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from weft_testing import EXIT_INPUT, SOURCE, ProgramTest, same_results, weft

sys.path.insert(0, str(SOURCE / "scripts"))
from studies.search import mean_ranks, order_correlation  # noqa: E402

SECONDS = 300
BASE = """\
topology: {kind: fat_tree, k: 4, link_rate: 400 Gb/s, link_delay: 500 ns}
workload: {kind: collective, collective: all_reduce, size: 256 KiB}
output: {messages: none}
"""
# On the shared machine of two levels packets collide, which the ideal network does not know.
GRID = """\
experiment: base.yaml
grid:
  workload.algorithm: [ring, direct, halving_doubling, double_binary_tree]
  topology:
    tree: {kind: fat_tree, k: 4, link_rate: 400 Gb/s, link_delay: 500 ns}
    thin: {kind: leaf_spine, leaves: 4, hosts_per_leaf: 4, spines: 1, link_rate: 400 Gb/s, link_delay: 500 ns}
"""


class SearchTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.write(BASE, "base.yaml")

    def sweep(self, study, *words, name="study", code=0):
        path = self.write(study, f"{name}.yaml")
        done = weft("sweep", path, "--quiet", "--summary", "json", *words, folder=self.folder, seconds=SECONDS)
        self.assertEqual(done.code, code, done)
        return json.loads(done.out) if code == 0 else done

    def cases(self, name="study"):
        with h5py.File(self.folder / f"{name}.h5") as file:
            return {column: data.asstr()[:].tolist() if data.dtype.kind == "S" else data[:].tolist()
                    for column, data in file["cases"].items()}

    def test_faults_and_background_transfers_are_for_packets(self):
        """The ideal network, which has none of them, ranks as without them; packets decide with them."""
        grid = "grid: {workload.algorithm: [ring, direct, halving_doubling]}\nsearch: {objective: time, simulate: 2}\n"
        self.sweep("experiment: base.yaml\n" + grid, name="plain")
        more = ("background: [{kind: tcp, from: 0, to: 5, size: 100 kB, min_rto: 1 ms}]\n"
                "network: {loss: [{link: all, probability: 1e-4}], reconvergence: 1 us,\n"
                "  failures: [{at: 5 us, until: 30 us, switch: switch0}]}\n")
        self.write(BASE.replace("none}", "none, queue_depths: true, rates: {interval: 1 us}, "
                                              "pcap: ['host0:0']}") + more, "base_faulty.yaml")
        found = self.sweep("experiment: base_faulty.yaml\n" + grid, name="faulty")
        self.assertEqual((found["done"], found["ranked"]), (2, 1))
        plain, faulty = self.cases("plain"), self.cases("faulty")
        self.assertEqual(plain["ideal_objective"], faulty["ideal_objective"])
        self.assertTrue(all(before < after for before, after in zip(plain["objective"], faulty["objective"])
                            if before == before))

    def test_parameters_of_another_model(self):
        """With `fidelity: loggp` that model decides among the best of the ideal network, which has no L."""
        self.write(BASE + "network: {fidelity: loggp, loggp: {L: 1 us}}\n", "base_loggp.yaml")
        found = self.sweep("experiment: base_loggp.yaml\ngrid: {workload.algorithm: [ring, direct]}\n"
                           "search: {objective: time, simulate: 1}\n")
        self.assertEqual((found["done"], found["ranked"]), (1, 1))

    def test_it_finds_the_best_of_all(self):
        self.sweep(GRID, name="all")
        times = self.cases("all")["out_step_time"]
        found = self.sweep(GRID + "search: {objective: time, simulate: 3}\n")
        self.assertEqual(found["search"]["best"], times.index(min(times)))
        self.assertEqual((found["done"], found["ranked"], found["runs"]), (3, 5, 3))
        table = self.cases()
        decided = [i for i in range(8) if table["place"][i] > 0]
        self.assertEqual(sorted(table["ideal_place"]), list(range(1, 9)))
        self.assertEqual(sorted(table["ideal_place"][i] for i in decided), [1, 2, 3])
        for i in range(8):
            self.assertEqual(table["status"][i], "done" if i in decided else "ranked")
            if i in decided:
                self.assertEqual(table["objective"][i], times[i])
                self.assertEqual(table["out_step_time"][i], times[i])
        # Spearman's formula without ties, over the places of the three.
        ideal = {i: table["ideal_place"][i] for i in decided}
        square = sum((ideal[i] - table["place"][i]) ** 2 for i in decided)
        self.assertAlmostEqual(found["search"]["correlation"], 1 - 6 * square / (3 * 8))
        with h5py.File(self.folder / "study.h5") as file:
            self.assertEqual(file["manifest"].attrs["search_best"], found["search"]["best"])
            self.assertEqual(file["cases/objective"].attrs["unit"], "ps")
            self.assertEqual(sorted(map(int, file["runs"])), decided)
            self.assertEqual(file.attrs["complete"], 1)
        # All of them, and at another number at a time: the same best, and a table with the same order.
        whole = self.sweep(GRID + "search: {objective: time, simulate: 8}\n", "-j", "1", name="whole")
        self.assertEqual((whole["search"]["best"], whole["done"]), (found["search"]["best"], 8))
        self.assertLess(whole["search"]["correlation"], 1)
        self.sweep(GRID + "search: {objective: time, simulate: 3}\n", "-j", "1", "-o", "one.h5")
        with h5py.File(self.folder / "one.h5") as one, h5py.File(self.folder / "study.h5") as other:
            self.assertEqual(list(same_results.differences(one, other, ["/timing", "/runs", "/cases/run"])), [])

    def test_over_placements(self):
        """Eight ranks side by side on two leaves, or one on each leaf in turn, whose messages all cross the spine, of the
        rate of a quarter of the hosts: side by side is best, and found."""
        study = ("experiment: {topology: {kind: leaf_spine, leaves: 4, hosts_per_leaf: 4, spines: 1, link_rate: 400 Gb/s, "
                 "link_delay: 500 ns}, workload: {kind: collective, collective: all_reduce, size: 256 KiB, ranks: 8}, "
                 "output: {messages: none}}\n"
                 "grid:\n"
                 "  workload.algorithm: [ring, halving_doubling]\n"
                 "  workload.placement: {together: {hosts: [0, 1, 2, 3, 4, 5, 6, 7]}, "
                 "apart: {hosts: [0, 4, 8, 12, 1, 5, 9, 13]}}\n")
        self.sweep(study, name="all")
        table = self.cases("all")
        best = table["out_step_time"].index(min(table["out_step_time"]))
        found = self.sweep(study + "search: {objective: time, simulate: 2}\n")
        self.assertEqual(found["search"]["best"], best)
        self.assertEqual(table["in_workload_placement"][best], "together")
        # A ring that crosses the spine at every step takes longer on the same algorithm.
        for pair in ((0, 1), (2, 3)):
            together, apart = (table["out_step_time"][case] for case in pair)
            self.assertLess(together, apart)

    def test_constraints_hold(self):
        """Those of machines before anything runs, those of outcomes on the ideal network and by packets."""
        found = self.sweep(GRID + "search: {objective: energy_per_step * cost, simulate: 8}\n"
                           "constraints: [network_ports < 50, energy_per_step < 1]\n")
        # 16 host ports and 2 x 32 others; 16 and 2 x 4: only the thin machine remains.
        self.assertEqual((found["excluded"], found["done"]), (4, 4))
        self.assertEqual({case["status"] for case in found["case_list"][::2]}, {"excluded"})
        self.assertEqual(found["search"]["best"] % 2, 1)
        least = min(case["values"]["energy_per_step"] for case in found["case_list"][1::2])
        limit = least * 1.0001
        found = self.sweep(GRID + "search: {objective: time, simulate: 8}\noutputs: [energy_per_step]\n"
                           f"constraints: [energy_per_step < {limit!r}, network_ports < 50]\n")
        self.assertEqual([case["case"] for case in found["case_list"] if case["feasible"]], [found["search"]["best"]])
        found = self.sweep(GRID + "search: {objective: negative, simulate: 8}\nderived: {negative: 0 - step_time}\n"
                           "outputs: [step_time]\n")
        times = [case["values"]["step_time"] for case in found["case_list"]]
        self.assertEqual(found["search"]["best"], times.index(max(times)))
        found = self.sweep(GRID + "search: {objective: time}\nconstraints: [step_time < 0]\n")
        self.assertEqual((found["search"]["best"], found["done"], found["ranked"]), (None, 0, 8))

    def test_a_job_array_ranks(self):
        """Tasks run cases on the ideal network; then one command does the rest."""
        path = self.write(GRID + "search: {objective: time, simulate: 2}\n", "array.yaml")
        for number in range(8):
            self.run_weft("sweep", path, "--case", number, "--quiet", seconds=SECONDS)
        runs = self.folder / "array.runs"
        self.assertEqual(len(list(runs.glob("*.h5"))), 8)
        self.run_weft("sweep", path, "--quiet", seconds=SECONDS)
        self.assertEqual(len(list(runs.glob("*.h5"))), 10)
        self.sweep(GRID + "search: {objective: time, simulate: 2}\n", "-o", "whole.h5")
        with h5py.File(self.folder / "array.h5") as one, h5py.File(self.folder / "whole.h5") as other:
            self.assertEqual(list(same_results.differences(one, other, [
                "/timing", "/runs", "/cases/run", "/manifest@study_file"])), [])

    def test_plans_of_parallelism(self):
        text = ("experiment: base.yaml\nplans: {ranks: 16, tensor: [1, 2, 8], pipeline: [1, 3, 4], expert: [1, 4]}\n")
        path = self.write(text, "plans.yaml")
        rows = [line.split() for line in self.run_weft("sweep", path, "--list", "--quiet").out.splitlines()]
        self.assertEqual([name.rpartition(".")[2] for name in rows[0][1:5]], ["tensor", "pipeline", "expert", "data"])
        # 3 divides no 16, 8 x 4 is more than 16; experts share the data-parallel ranks: 4 of 16, 4, 8; not of 2.
        self.assertEqual([tuple(map(int, row[1:5])) for row in rows[1:]], [
            (1, 1, 1, 16), (1, 1, 4, 16), (1, 4, 1, 4), (1, 4, 4, 4), (2, 1, 1, 8), (2, 1, 4, 8), (2, 4, 1, 2),
            (8, 1, 1, 2)])

    def test_memory_and_energy_of_plans(self):
        """A model of 124 million parameters on four GPUs, by energy per token, with a budget of memory."""
        self.write("""\
topology: {kind: star, hosts: 4, link_rate: 400 Gb/s, link_delay: 500 ns}
workload: {kind: training, model: gpt2, device: h100-sxm, global_batch: 4, sequence_length: 256, algorithm: ring}
output: {messages: none}
""", "base.yaml")
        found = self.sweep("experiment: base.yaml\nplans: {ranks: 4, tensor: [1, 2, 4], pipeline: [1, 2]}\n"
                           "search: {objective: energy_per_token, simulate: 2}\noutputs: [step_time, memory, fits]\n"
                           "constraints: [memory < 1.7 * GB, fits == 1]\n")
        cases = found["case_list"]
        self.assertEqual(len(cases), 5)
        # Data-parallel ranks hold 124 M parameters with 16 B each, 2.0 GB: more than the budget.
        self.assertNotIn(0, found["search"]["order"])
        self.assertIsNotNone(found["search"]["best"])
        best = cases[found["search"]["best"]]["values"]
        self.assertLess(best["memory"], 1.7e9)
        tokens = 4 * 256
        self.assertAlmostEqual(best["energy_per_token"] * tokens, best["energy_per_token"] * 1024)

    def test_what_is_wrong_is_told_with_its_line(self):
        for line, parts in {"search: {}": ["missing key 'objective'"],
                            "search: {objective: tim}": ["did you mean 'time'?"],
                            "search: {objective: step_tme * 2}": ["did you mean 'step_time'?"],
                            "search: {objective: time, simulate: 0}": ["'0'", "of 1 or more"],
                            "search: {objective: time, best: 1}": ["'best'"],
                            "search: {objective: workload_algorithm}": ["no number"],
                            "plans: {tensor: [1]}": ["missing key 'ranks'"],
                            "plans: {ranks: 4, tensor: [3]}": ["no plan"],
                            "plans: {ranks: 4, tensr: [3]}": ["did you mean 'tensor'?"]}.items():
            with self.subTest(line):
                done = self.sweep(GRID + line + "\n", code=EXIT_INPUT)
                for part in ("study.yaml:7: ", *parts):
                    self.assertIn(part, done.err)


class Orders(unittest.TestCase):
    def test_correlation(self):
        self.assertEqual(mean_ranks([30, 10, 20, 10]), [4, 1.5, 3, 1.5])
        self.assertAlmostEqual(order_correlation([1, 2, 3], [10, 20, 30]), 1)
        self.assertAlmostEqual(order_correlation([1, 2, 3], [3, 2, 1]), -1)
        # d = (0, 1, -1, 1, -1): 1 - 6 x 4 / (5 x 24).
        self.assertAlmostEqual(order_correlation([1, 2, 3, 4, 5], [1, 3, 2, 5, 4]), 0.8)
        self.assertTrue(math.isnan(order_correlation([1], [1])))
        self.assertTrue(math.isnan(order_correlation([1, 1], [1, 2])))


if __name__ == "__main__":
    unittest.main()
