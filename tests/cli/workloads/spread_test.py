#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""GPUs that differ (`compute_noise.spread`): a step waits for the slowest of its ranks, and each has one factor for the whole run."""

import pathlib
import sys
import unittest

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from weft_testing import NETWORK, STAR, ProgramTest, table  # noqa: E402

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


if __name__ == "__main__":
    unittest.main()
