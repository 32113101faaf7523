# SPDX-License-Identifier: GPL-2.0-only
"""Pages of docs/validation against rows: verdicts and tolerances have to agree, measured values need not."""

# Runs in: quick

import dataclasses
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "validation"))
import pages  # noqa: E402
from harness import Row  # noqa: E402

HELD = Row("pfc/headroom", "IEEE 802.1Q", "|drops| of 2", "0 ± 1 packets", "0 packets", "+0 packets", True)
SHOWN = Row("pfc/victim", "Zhu et al. 2015", "its rate", "20 Gb/s", "21 Gb/s", "+5 %", True, compared=True)


class ValidationPages(unittest.TestCase):
    def differences(self, *rows, **how):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "pfc.md").write_text(pages.family_page("pfc", [HELD, SHOWN]))
            return pages.differences(rows, {HELD.case, SHOWN.case, "pfc/port_fair"}, folder, **how)

    def test_rows_as_written(self):
        self.assertEqual(self.differences(HELD, SHOWN), [])

    def test_pages_have_the_cases_that_there_are(self):
        there = {path.parent.relative_to(ROOT / "validation").as_posix() for path in (ROOT / "validation").glob("*/*/check.py")}
        self.assertEqual({case for case, *_ in pages.promises()}, there)

    def test_measured_values_may_move(self):
        moved = dataclasses.replace(HELD, measured="1 packets", error="+1 packets")
        self.assertEqual(self.differences(moved, dataclasses.replace(SHOWN, measured="19 Gb/s")), [])

    def test_what_is_promised_may_not(self):
        wider, failed = dataclasses.replace(HELD, expected="0 ± 2 packets"), dataclasses.replace(HELD, passed=False)
        for changed in (wider, failed, dataclasses.replace(HELD, quantity="drops"),
                        dataclasses.replace(HELD, case="pfc/port_fair")):
            with self.subTest(changed=changed):
                found = self.differences(changed, SHOWN)
                self.assertEqual([text.partition(":")[0] for text in found], ["docs/validation has", "this run gives"])

    def test_rows_come_and_go(self):
        self.assertEqual(self.differences(HELD), ["docs/validation has: pfc/victim | its rate | 20 Gb/s | compared"])

    def test_only_what_is_compared_may_be_left_out(self):
        other = dataclasses.replace(SHOWN, quantity="the rate of others")
        self.assertEqual(self.differences(HELD, other, compares=False), ["this run gives: pfc/victim | the rate of others | 20 Gb/s | compared"])
        self.assertEqual(self.differences(SHOWN, compares=False), ["docs/validation has: pfc/headroom | |drops| of 2 | 0 ± 1 packets | pass"])
        # A case of which nothing ran.
        self.assertEqual(self.differences(HELD, compares=False), ["docs/validation has: pfc/victim | its rate | 20 Gb/s | compared"])

    def test_every_case_has_its_section(self):
        cases = {path.parent.relative_to(ROOT / "validation").as_posix() for path in ROOT.glob("validation/*/*/check.py")}
        self.assertEqual({case for case, *_ in pages.promises()}, cases)

    def test_the_overview_counts_the_pages(self):
        overview = (pages.FOLDER / "README.md").read_text()
        for family, promises in pages.grouped(sorted(pages.promises()), lambda row: row[0].partition("/")[0]).items():
            held = sum(verdict != "compared" for *_, verdict in promises)
            cases = len({case for case, *_ in promises})
            self.assertIn(f"({family}.md) | {cases} | {held} | ", overview)


if __name__ == "__main__":
    unittest.main()
