#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""docs/reference/keys.md has each map's keys as the program reads them, each with a meaning."""

import importlib.machinery
import importlib.util
import pathlib
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from weft_testing import SOURCE, WEFT, registered, two_at_a_time

sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader("experiment_keys", str(SOURCE / "scripts" / "keys"))
keys = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
loader.exec_module(keys)
keys.WEFT = WEFT


def sections_of_page():
    """{title: {key: (value, default, meaning)}}, with the keys that a section names as those of another."""
    sections, known = {}, None
    for line in keys.PAGE.read_text().splitlines():
        if line.startswith("## "):
            known = sections[line[3:]] = {}
        elif found := re.match(r"\| `(\w+)` \|", line):
            known[found[1]] = keys.cells(line)[1:]
        elif line.startswith("And of ["):
            known.update({name: None for name in re.findall(r"`(\w+)`", line.partition("): ")[2])})
    return sections


class Keys(unittest.TestCase):
    def test_page_has_the_keys_that_are_read(self):
        asked = list(keys.sections())
        page = sections_of_page()
        self.assertEqual([section["title"] for section in asked], list(page))
        for section, known in zip(asked, two_at_a_time([lambda s=s: keys.ask(s) for s in asked])):
            with self.subTest(section=section["title"]):
                self.assertEqual(sorted(known), sorted(page[section["title"]]))

    def test_every_key_has_a_meaning(self):
        for title, known in sections_of_page().items():
            for key, told in known.items():
                with self.subTest(section=title, key=key):
                    self.assertTrue(told is None or told[2])

    def test_every_family_and_kind_has_a_section(self):
        titles = " ".join(sections_of_page())
        for what, place in (("topologies", "topology"), ("workloads", "workload")):
            for name in registered(what):
                self.assertIn(f"`{place}` of `kind: {name}`", titles)
        for name in registered("congestion-controls") - {"none"}:
            self.assertIn(f"`network.{name}`", titles)

    def test_a_key_without_a_description_is_told(self):
        section = {"title": "`output`", "place": "output", "tables": ["experiment.md#output"]}
        lines, missing = keys.lines_of(section, {"file": "text", "nothing_says": "text"}, {})
        self.assertEqual(len(missing), 1)
        self.assertIn("`nothing_says` has no line", missing[0])
        self.assertTrue(any(line.startswith("| `file` | text | name of the experiment") for line in lines), lines)

    def test_kinds_of_values(self):
        for key, kind in (("mtu", "size"), ("switch_latency", "time"), ("trimming", "true, false"), ("buffer", "map"),
                          ("queues", "`committed`, `output`"), ("ack_interval", "whole number from 1 to 1024")):
            self.assertEqual(keys.kind_of("network", key, {}, [], True), kind)


if __name__ == "__main__":
    unittest.main()
