#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# Runs in: quick
"""`weft describe --kernels`: the kernels of each part of a model, whose sums are those of its lines."""

import json
import pathlib
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from weft_testing import EXIT_INPUT, NETWORK, STAR, ProgramTest, weft  # noqa: E402

UNITS = {"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
LINE = re.compile(r"  (.{28}) (.{42}) +([\d.e+]+) ?([kMGTP]?) +([\d.e+]+) ?([kMGTP]?) +([\d.]+)$")


class Kernels(ProgramTest):
    def tables(self, **workload):
        """{title: [(place, kernel, FLOPs, bytes, microseconds)]}, the last line the sum."""
        (self.folder / "config.json").write_text(json.dumps({
            "model_type": "gpt2", "vocab_size": 512, "n_positions": 1024, "n_embd": 768, "n_layer": 2, "n_head": 12}))
        experiment = {"topology": {**STAR, "hosts": 1}, "network": NETWORK,
                      "workload": {"kind": "training", "model": "config.json", "device": "a100-sxm", "micro_batch": 4,
                                   "sequence_length": 1024, **workload}}
        tables = {}
        for line in self.run_weft("describe", self.write(experiment), "--kernels").out.splitlines():
            if not line.startswith("  "):
                rows = tables.setdefault(line, [])
            elif match := LINE.match(line):
                place, kernel, flops, f, moved, b, time = match.groups()
                rows.append((place.strip(), kernel.strip(), float(flops) * UNITS[f], float(moved) * UNITS[b], float(time)))
        return tables

    def test_sums_are_those_of_the_lines(self):
        for workload in ({}, {"framework": "megatron_2021"}, {"framework": "megatron_core", "recompute": "full"}):
            tables = self.tables(**workload)
            self.assertIn("block, backward, per rank and micro-batch", tables)
            self.assertEqual("block, recompute, per rank and micro-batch" in tables, "recompute" in workload)
            for rows in tables.values():
                self.assertEqual(rows[-1][0], "sum")
                for column in (2, 3, 4):  # printed with four digits; times to 10 ns
                    total = sum(row[column] for row in rows[:-1])
                    self.assertAlmostEqual(rows[-1][column], total, delta=1e-3 * total + 0.01 * len(rows))

    def test_lists_what_the_framework_has(self):
        forward = "block, forward, per rank and micro-batch"
        kernels = {row[1]: row for row in self.tables(framework="megatron_2021")[forward]}
        scores = 12 * 1024 * 1024 * 4
        self.assertAlmostEqual(kernels["scale, mask, softmax"][3], 3 * scores, delta=1e-3 * 3 * scores)
        self.assertNotIn("scale, mask, softmax", {row[1] for row in self.tables()[forward]})
        step = self.tables(framework="megatron_2021")["step, optimizer, per rank"]
        self.assertIn("Adam", {row[1] for row in step})

    def test_other_workloads_have_none(self):
        experiment = {"topology": {**STAR, "hosts": 2}, "network": NETWORK,
                      "workload": {"kind": "collective", "collective": "all_reduce", "algorithm": "ring", "ranks": 2,
                                   "size": "1 MiB"}}
        result = weft("describe", self.write(experiment), "--kernels")
        self.assertEqual(result.code, EXIT_INPUT)
        self.assertIn("--kernels is for `kind: training`", result.err)

    def test_an_unknown_framework_is_answered_with_the_known_ones(self):
        path = self.write({"topology": {**STAR, "hosts": 1}, "network": NETWORK,
                           "workload": {"kind": "training", "model": "gpt2", "device": "a100-sxm", "framework": "megatron"}})
        result = weft("describe", path)
        self.assertEqual(result.code, EXIT_INPUT)
        self.assertIn("framework", result.err)


if __name__ == "__main__":
    unittest.main()
