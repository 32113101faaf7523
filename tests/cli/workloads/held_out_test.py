#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# Runs in: quick
"""The rows used for the fit and the rows that judge the fit are disjoint."""

import csv
import pathlib
import re
import sys
import unittest

import yaml

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import weft_testing  # noqa: E402

sys.path.insert(0, str(weft_testing.SOURCE / "scripts"))
from devices.tables import held_out, read  # noqa: E402

TABLES = weft_testing.SOURCE / "validation" / "compute" / "kernels_by_shape"
SETS = weft_testing.SOURCE / "validation" / "published" / "training"
EXPERTS = ("tokens", "hidden", "inter", "topk", "experts", "tp", "ep")
SHAPES = {"gemms.csv": ("m", "n", "k"), "attention.csv": ("batch", "seq", "heads", "kv_heads", "head_dim"),
          "memory.csv": ("op", "rows", "cols"), "experts.csv": EXPERTS, "experts_uneven.csv": EXPERTS}  # fmt: skip


def rows_of(path):
    with open(path, encoding="utf-8") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


class HeldOut(unittest.TestCase):
    def test_no_row_of_a_validation_table_is_fitted_to(self):
        for name, columns in SHAPES.items():
            rows = rows_of(TABLES / name)
            self.assertGreater(len(rows), 140)
            for row in rows:
                shape = [row[column] if column == "op" else int(row[column]) for column in columns]
                self.assertTrue(held_out(*shape), f"{name}: {shape}")
            # And the fit itself takes none of them.
            given, unseen = read(TABLES / name).halves()
            self.assertEqual((len(given), len(unseen)), (0, len(rows)))

    def test_about_a_third_is_held_out(self):
        shapes = [(m, n, k) for m in range(1, 9) for n in range(1, 9) for k in range(1, 9)]
        share = sum(held_out(*shape) for shape in shapes) / len(shapes)
        self.assertAlmostEqual(share, 1 / 3, delta=0.07)  # three standard deviations of 512 draws are 0.0625

    def test_no_device_or_catalogue_comes_from_a_published_step_that_is_predicted(self):
        """Sources of constants do not name the sources of the sets."""
        constants = "\n".join(path.read_text() for folder in ("devices", "frameworks")
                              for path in (weft_testing.SOURCE / "workloads" / folder).glob("*.yaml"))  # fmt: skip
        # Model FLOP utilisations are only in `efficiency`, which jobs that name a framework do not read.
        constants = re.sub(r"# Model FLOP utilisation.*?\nefficiency: \S+", "", constants, flags=re.DOTALL)
        for path in SETS.glob("*.yaml"):
            data = yaml.safe_load(path.read_text())
            if "rows" not in data:
                continue
            files = re.findall(r"[\w./-]+\.(?:md|py)\b", data["source"])
            for name in files:
                self.assertNotIn(name, constants, path.name)
            for seconds in published(data):
                self.assertNotRegex(constants, rf"\b{re.escape(seconds)} (?:s|tokens)\b", path.name)


def published(data):
    for row in data["rows"].values() if isinstance(data["rows"], dict) else data["rows"]:
        if isinstance(row, dict):
            yield str(row.get("tokens", row.get("seconds")))
        elif "columns" in data:
            yield str(dict(zip(data["columns"], row, strict=True))["seconds"])


if __name__ == "__main__":
    unittest.main()
