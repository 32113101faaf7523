#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""GPUs that differ (`compute_noise.spread`): a step waits for the slowest of its ranks, and each has one factor for the whole run."""

import json
import math
import pathlib
import statistics
import sys
import unittest

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from weft_testing import NETWORK, SOURCE, STAR, ProgramTest, served, table  # noqa: E402

sys.path.insert(0, str(SOURCE / "validation"))
from oracles.gpu_spread import Waiting, mean_of_largest, slower_device  # noqa: E402

RANKS, STEPS, COMPUTE = 8, 4, 1_000_000_000  # ps of a computation


class Spread(ProgramTest):
    def steps(self, name, noise, ranks=None):
        """Times at which all have met (ps), and factors [rank, step] of a data-parallel job: each step computes and sums up 1 MB."""
        operations = []
        for step in range(STEPS):
            before = {"after": f"sum {step - 1}"} if step else {}
            operations.append({"rank": "all", "id": f"compute {step}", "compute": f"{COMPUTE} ps", **before})
            operations.append({"id": f"sum {step}", "collective": "all_reduce", "size": "1 MB", "after": f"compute {step}"})
        experiment = {"topology": {**STAR, "hosts": RANKS}, "network": NETWORK, "output": {"operations": True},
                      "workload": {"kind": "program", "ranks": RANKS, "operations": operations,
                                   **({"compute_noise": noise} if noise else {})}}  # fmt: skip
        words = ["--set", "simulation.partition=random"] if ranks else []  # METIS has nothing to cut in a star
        _, path = self.simulate(experiment, *words, output=f"{name}.h5", ranks=ranks)
        rows = table(path, "operations")
        took = rows["end"] - rows["start"]
        computes = np.array([str(label).startswith("compute") for label in rows["label"]])
        order = np.lexsort((rows["start"][computes], rows["rank"][computes]))
        factors = (took[computes] / COMPUTE)[order].reshape(RANKS, STEPS)
        met = [max(rows["end"][rows["label"] == f"sum {step}"]) for step in range(STEPS)]
        return np.diff([0, *met]), factors, path

    def test_a_step_waits_for_the_slowest_rank(self):
        quiet, alike, _ = self.steps("quiet", None)
        self.assertEqual(alike.tolist(), [[1] * STEPS] * RANKS)
        rest = quiet - COMPUTE  # the sum over all ranks
        self.assertTrue(all(rest > 0))
        spread, factors, _ = self.steps("spread", {"spread": "10 %"})
        for rank in factors:
            self.assertEqual(len(set(rank)), 1, "one factor for the whole run")
        slowest = factors.max()
        self.assertGreater(slowest, 1.02)
        self.assertEqual(len(set(factors[:, 0])), RANKS)
        # Ranks that are ready sooner have sent some of the first round: never later than if all had come with the slowest, and
        # at most the sum's own time sooner.
        all_slow, _, _ = self.steps("all", {"slow_ranks": [{"ranks": list(range(RANKS)), "factor": float(slowest)}]})
        for step, bound, sum_of_all in zip(spread, all_slow, rest):
            self.assertLessEqual(step, bound + 1)
            self.assertGreater(step, slowest * COMPUTE + sum_of_all / 2)
        np.testing.assert_allclose(spread, slowest * COMPUTE + rest, rtol=0.02)

    def test_same_for_all_numbers_of_processes(self):
        _, factors, first = self.steps("one", {"spread": "10 %"})
        for ranks in (2, 3, 4, 8):
            _, others, path = self.steps(f"of_{ranks}", {"spread": "10 %"}, ranks=ranks)
            self.assertEqual(factors.tolist(), others.tolist())
            self.assert_same_results(first, path, ["/manifest/effective_experiment"], f"{ranks} processes")


MODEL = {
    "model_type": "llama", "max_position_embeddings": 1024, "hidden_size": 1024, "intermediate_size": 4096,
    "num_hidden_layers": 2, "num_attention_heads": 8, "num_key_value_heads": 8, "vocab_size": 256,
}  # fmt: skip
COPIES, SPREAD, SEEDS = 16, 0.05, 40


class Pipelines(ProgramTest):
    """The factor of a row with a pipeline against steps of the whole job, whose GPUs are drawn."""

    def job(self, words, batches):
        """4 stages of 2 blocks and 2 copies; the last stage has the head, with `words`."""
        model = self.write(json.dumps({**MODEL, "num_hidden_layers": 8, "vocab_size": words}), f"model_{words}.json")
        return {"topology": {**STAR, "hosts": 8, "link_rate": "12800 Gb/s"}, "network": {"fidelity": "ideal"}, "output": {"messages": "none"},
                "workload": {"kind": "training", "model": model.name, "micro_batch": 4, "micro_batches": batches, "sequence_length": 1024,
                             "device": str(SOURCE / "workloads" / "devices" / "h100-sxm.yaml"),
                             "parallelism": {"pipeline": 4, "data": 2}}}  # fmt: skip

    def step(self, job, noise=None, seed=1):
        workload = {**job["workload"], **({"compute_noise": noise} if noise else {})}
        summary, _ = self.simulate({**job, "workload": workload, "simulation": {"seed": seed}})
        return summary["simulated_time_ps"] * 1e-12

    def test_factor_is_the_mean_of_drawn_steps(self):
        """Within 0.5 % and four standard errors of 40 steps. All kernels are stretched here, so that all of a stage's seconds count."""
        spread, seeds = 0.03, 40
        for words, batches in ((256, 8), (256, 32), (32_000, 16)):
            job = self.job(words, batches)
            counted = json.loads(served("workload", self.write(job), "--no-run", "--json", folder=self.folder).out)["of_ranks"]
            stages = tuple((one["compute_seconds"],) * 2 for one in counted)
            self.assertEqual(len(stages), 4)
            mean = self.step(job)
            compute = (self.step(job, {"slow_ranks": [{"ranks": list(range(8)), "factor": 1.05}]}) - mean) / 0.05
            factor = Waiting(8, together=1, passes=batches, stages=stages).factor(spread)
            drawn = [self.step(job, {"spread": spread}, seed) for seed in range(1, seeds + 1)]
            expected, found = mean + compute * (factor - 1), statistics.mean(drawn)
            self.assertAlmostEqual(expected / found, 1, delta=0.005 + 4 * statistics.stdev(drawn) / math.sqrt(seeds) / found)
            if words > 256:  # the others are shorter, and as if all were as slow as the slowest of all GPUs it would be too long
                self.assertGreater(1 + spread * mean_of_largest(8), factor + 0.3 * spread)


class Copies(ProgramTest):
    """With `symmetry` a rank stands for several, and has the factor of the slowest of them."""

    def step(self, noise=None, simulated=None, seed=1):
        """Seconds of a step of a data-parallel job of 16 ranks."""
        workload = {
            "kind": "training", "model": self.write(json.dumps(MODEL), "model.json").name, "micro_batch": 8, "sequence_length": 1024,
            "device": str(SOURCE / "workloads" / "devices" / "h100-sxm.yaml"), "parallelism": {"data": COPIES},
            **({"compute_noise": noise} if noise else {}), **({"symmetry": {"data": simulated}} if simulated else {}),
        }  # fmt: skip
        experiment = {"topology": {**STAR, "hosts": simulated or COPIES, "link_rate": "12800 Gb/s"}, "network": {"fidelity": "ideal"},
                      "simulation": {"seed": seed}, "workload": workload, "output": {"messages": "none"}}  # fmt: skip
        summary, _ = self.simulate(experiment)
        return summary["simulated_time_ps"] * 1e-12

    def test_steps_of_some_copies_are_distributed_as_those_of_all(self):
        """A step in which all have factor f takes r + c f, c being all of the computation, and the slowest of n ranks has 1 + s E(n) in
        the mean, with a deviation of s D(n). D(16)^2 is 0.295 (Teichroew, Annals of Mathematical Statistics 27, 1956, table II)."""
        quiet = {simulated: self.step(simulated=simulated) for simulated in (None, 2, 4)}
        for simulated, rest in quiet.items():
            ranks = list(range(simulated or COPIES))
            compute = (self.step({"slow_ranks": [{"ranks": ranks, "factor": 1.1}]}, simulated) - rest) / 0.1
            self.assertGreater(compute, rest / 2)
            factors = [1 + (self.step({"spread": SPREAD}, simulated, seed) - rest) / compute for seed in range(1, SEEDS + 1)]
            error = SPREAD * math.sqrt(0.295 / SEEDS)
            # ln of a lognormal factor is the normal number: exp(s z - s^2 / 2) with s^2 = ln(1 + 0.05^2).
            deviation = math.sqrt(math.log1p(SPREAD**2))
            drawn = [(math.log(factor) + deviation**2 / 2) * SPREAD / deviation for factor in factors]
            # Ranks that are ready sooner send sooner, so that a step waits a little less: 2 % of what it waits.
            self.assertAlmostEqual(statistics.mean(drawn), SPREAD * mean_of_largest(COPIES), delta=4 * error + 0.002 * SPREAD)
            self.assertAlmostEqual(statistics.stdev(drawn) / (SPREAD * math.sqrt(0.295)), 1, delta=4 * math.sqrt(4.4 / SEEDS) / 2)

    def test_the_factor_of_published_rows_is_the_mean_of_what_is_drawn(self):
        """A program of GEMMs and sums on 8 ranks: with the device of the slowest of 8 GPUs, and with factors drawn by 60 seeds. A
        deviation of D(8) = sqrt(0.3729) (Teichroew, the same) of a spread of 1.5 % has a standard error of 0.12 %."""
        device = SOURCE / "workloads" / "devices" / "h100-sxm.yaml"

        def time(device, noise=None, seed=1):
            operations = []
            for step in range(2):
                before = {"after": f"sum {step - 1}"} if step else {}
                operations.append({"rank": "all", "id": f"gemm {step}", "compute": {"m": 8192, "n": 8192, "k": 8192}, **before})
                operations.append({"id": f"sum {step}", "collective": "all_reduce", "size": "1 MB", "after": f"gemm {step}"})
            workload = {"kind": "program", "ranks": 8, "operations": operations, "device": str(device),
                        **({"compute_noise": noise} if noise else {})}  # fmt: skip
            summary, _ = self.simulate({"topology": {**STAR, "hosts": 8}, "network": {"fidelity": "ideal"},
                                        "simulation": {"seed": seed}, "workload": workload})  # fmt: skip
            return summary["simulated_time_ps"]

        mean, seeds = time(device), 60
        deterministic = time(slower_device(device, Waiting(8).factor(), self.folder)) / mean
        drawn = [time(device, {"spread": 0.015}, seed) / mean for seed in range(1, seeds + 1)]
        self.assertGreater(deterministic, 1.015)
        self.assertAlmostEqual(statistics.mean(drawn), deterministic, delta=4 * 0.015 * math.sqrt(0.3729 / seeds))


if __name__ == "__main__":
    unittest.main()
