#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# Runs in: quick
"""Blocks that show what commands print: which are stale, how they are written anew, and figures of sentences."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from printed_blocks import Page, figures_of, first_stale, renewed, wrong_figures

PRINTED = """machine
  topology                 star
  hosts                    16
run
  simulated time     329.641 us
  wall time          0.017 s (and 0.000 s to build)
  packet-hops        247.7 k (14.58 M/s)
  fingerprint        6422ca1a5c4ea158""".splitlines()


class Comparison(unittest.TestCase):
    def stale(self, *lines):
        return first_stale(lines, PRINTED)

    def test_lines_are_there_in_order(self):
        self.assertIsNone(self.stale("  hosts                    16", "run"))
        self.assertIsNone(self.stale("machine", "...", "  hosts                    16"))
        self.assertEqual(self.stale("machine", "  hosts                    16"), 1)  # nothing says that a line is left out
        self.assertEqual(self.stale("run", "...", "machine"), 2)

    def test_values_are_exact(self):
        self.assertEqual(self.stale("  topology                 star", "  hosts                    17"), 1)
        self.assertEqual(self.stale("  simulated time     329.642 us"), 0)
        self.assertEqual(self.stale("  fingerprint        6422ca1a5c4ea159"), 0)

    def test_the_machine_is_not_compared(self):
        self.assertIsNone(self.stale("  wall time          1.5 s (and 0.020 s to build)", "  packet-hops        247.7 k (900 k/s)"))
        self.assertEqual(self.stale("  packet-hops        247.8 k (14.58 M/s)"), 0)
        row = "  2          0.217 s    42.4 MiB        84.8 MiB   501.6 ns   158 of each            extrapolated"
        other = "  2          12 ms      1.4 GiB         3.8 GiB    501.6 ns   158 of each            extrapolated"
        self.assertIsNone(first_stale([row], [other]))
        self.assertEqual(first_stale([row], [other.replace("501.6", "501.7")]), 0)

    def test_parts_of_lines_are_left_out(self):
        self.assertIsNone(self.stale("  wall time          0.018 s ..."))
        self.assertIsNone(self.stale("  packet-hops ... (1 k/s)"))
        self.assertEqual(self.stale("  packet-hops ... (1 kB)"), 0)
        self.assertIsNone(self.stale("  topology ..."))
        self.assertEqual(self.stale("  topologies ..."), 0)


class Renewal(unittest.TestCase):
    def test_lines_become_what_is_printed(self):
        before = ["  topology                 star", "  hosts                    12", "  ...", "  packet-hops        1 k (7 M/s)"]
        after = [PRINTED[1], PRINTED[2], "  ...", PRINTED[6]]
        self.assertEqual(renewed(before, PRINTED), after)
        self.assertIsNone(first_stale(after, PRINTED))

    def test_lines_stay_short(self):
        printed = ["job a: 7.5 ms on 8 ranks: 40 % transfer, 30 % window, 30 % peers"]
        self.assertEqual(renewed(["job a: 7.33 ms on 8 ranks: 48 % transfer, ..."], printed),
                         ["job a: 7.5 ms on 8 ranks: 40 % transfer, ..."])

    def test_what_is_no_longer_printed_goes(self):
        self.assertEqual(renewed(["machine", "  colour                   red", "  hosts                    4"], PRINTED),
                         ["machine", "...", PRINTED[2]][:1] + ["  ...", PRINTED[2]])

    def test_what_the_machine_decides_stays(self):
        before = ["  simulated time     1 us", "  wall time          9 s (and 3.000 s to build)"]
        self.assertEqual(renewed(before, PRINTED), [PRINTED[4], before[1]])


class Pages(unittest.TestCase):
    TEXT = "Text.\n\n```sh\nweft run a.yaml\n```\n\nIt prints:\n\n```output\nsimulated time 3 us\n```\n\n```sh\nweft b\n```\n"

    def test_a_block_belongs_to_the_commands_before_it(self):
        page = Page(self.TEXT)
        self.assertEqual(page.commands, ["weft run a.yaml\n", "weft b\n"])
        message, = page.stale([["simulated time 4 us"], ["simulated time 3 us"]])
        self.assertIn("line 10 is not what the commands before it print now", message)
        self.assertIn("resembles it most:\n    simulated time 4 us\n", message)
        fresh = page.renewed([["simulated time 4 us"], []])
        self.assertEqual(fresh, self.TEXT.replace("3 us", "4 us"))
        self.assertEqual(list(Page(fresh).stale([["simulated time 4 us"], []])), [])
        with self.assertRaisesRegex(ValueError, "line 1: no commands"):
            Page("```output\nx\n```\n")

    def test_lines_that_are_left_out_are_named(self):
        page = Page(self.TEXT.replace("time 3 us", "time 3 us\nresults b.h5"))
        message, = page.stale([["simulated time 3 us", "wall time 1 s", "results b.h5"], []])
        self.assertIn("line 11 is printed elsewhere", message)

    def test_mistakes_fail(self):
        page = Page(self.TEXT.replace("simulated time 3 us", "weft: --set a=b: unknown key"))
        self.assertEqual([page.shows_mistake(k) for k in range(2)], [True, False])


class Figures(unittest.TestCase):
    def test_where_figures_come_from(self):
        printed = "gradients   248,879,616 B, 7 reductions\nstep  14.172 ms"
        self.assertEqual(figures_of(r"^step +([\d.]+) ms$", printed), ["14.172"])
        self.assertEqual(figures_of([r"(\d) reductions", {r"([\d,]+) B": 1e-6}], printed), ["7", "248.879616"])
        self.assertEqual(figures_of(["nothing (.*)"], printed), [])

    def test_a_figure_is_rounded_to_its_last_digit(self):
        text = "The step takes 45.6 ms, and 1,520 packets of it are marked."
        self.assertIsNone(wrong_figures("takes {} ms, and {} packets", text, ["45.599", "1520"]))
        self.assertIn("takes {} ms", wrong_figures("takes {} ms, and {} packets", text, ["45.66", "1520"]))
        self.assertIn("commands print 45.6, 1519", wrong_figures("takes {} ms, and {} packets", text, ["45.6", "1519"]))
        self.assertIn("0 times", wrong_figures("lasts {} ms", text, ["45.6"]))
        self.assertIn("has 1 figures", wrong_figures("takes {} ms", text, []))


if __name__ == "__main__":
    unittest.main()
