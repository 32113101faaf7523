# SPDX-License-Identifier: GPL-2.0-only
"""Published training steps: each set has a file, a page and a row in the table of the README, and they agree."""

# Runs in: quick

import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "validation"))
from oracles.published_report import BEGIN, END, PAGE  # noqa: E402
from oracles.training_sets import FOLDER, read, sets, table_of  # noqa: E402

README = FOLDER / "README.md"
NUMBERS = {19: "nineteen", 20: "twenty", 21: "twenty-one", 22: "twenty-two", 23: "twenty-three", 24: "twenty-four"}


def cells_of_tables(text):
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]


def listed():
    """{set: (hardware, rows, mean error, largest, order)}; a set that is listed twice has two."""
    found = {}
    for first, *cells in cells_of_tables(README.read_text()):
        if page := re.fullmatch(r"\[.+\]\((\w+)\.md\)", first):
            found.setdefault(page[1], []).append(cells)
    return found


class PublishedPages(unittest.TestCase):
    def test_each_set_has_a_page_and_a_row(self):
        self.assertEqual(sorted(listed()), sets())
        self.assertEqual([name for name, rows in listed().items() if len(rows) > 1], [])
        self.assertEqual(sorted(path.stem for path in FOLDER.glob("*.md") if path != README), sets())

    def test_a_page_names_its_file(self):
        for name in sets():
            with self.subTest(name):
                self.assertIn(f"]({name}.yaml)", (FOLDER / f"{name}.md").read_text())

    def test_rows_are_counted(self):
        counts = {name: len(table_of(name)[1]) for name in sets()}
        self.assertEqual({name: int(rows[0][1]) for name, rows in listed().items()}, counts)
        text = " ".join(README.read_text().split())
        self.assertIn(f"{sum(counts.values())} steps of {NUMBERS[len(counts)]} sources", text)
        errors = sorted((float(rows[0][2].removesuffix(" %")) for rows in listed().values()))
        self.assertIn(f"[{sum(counts.values())} steps of {NUMBERS[len(counts)]} sources](validation/published/training/README.md), on newer GPUs "
                      f"too, the sets' mean errors are {errors[0]} to {errors[-1]} %.", (ROOT / "README.md").read_text())

    def test_sets_have_no_other_rows(self):
        """A list of rows by another name would be read by nothing."""
        for name in sets():
            self.assertEqual([key for key in read(name) if "rows" in key and key != "rows"], [], name)

    def test_errors_are_those_of_the_table_of_intervals(self):
        """docs/reference/compute_times.md has them as `scripts/validate --published` wrote them, and an order for sets of one row, too."""
        table = PAGE.read_text().partition(BEGIN)[2].partition(END)[0]
        written = {first: cells[:4] for first, *cells in cells_of_tables(table)}
        for name, ((_, *cells),) in listed().items():
            with self.subTest(name):
                expected = written[read(name)["name"]]
                self.assertEqual(cells, expected if expected[0] != "1" else [*expected[:3], ""])

    def test_readme_is_short(self):
        self.assertLessEqual(len(README.read_text().splitlines()), 150)


if __name__ == "__main__":
    unittest.main()
