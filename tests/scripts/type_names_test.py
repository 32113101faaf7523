#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# Runs in: quick
"""Two headers never define a type of one name: C++ links both as one type without a word ([basic.def.odr]), and the
destructor of one then runs on objects of the other."""

import collections
import pathlib
import re
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROOMS = ["src", "collectives", "topologies", "workloads"]
# Definitions at the margin, which is in `namespace weft`. Members and inner namespaces are not checked.
KIND = r"^(?:struct|class|union|enum class|enum) +"
ATTRIBUTES = r"(?:\[\[\w+\]\] +|alignas\([^)]*\) +)*"
TYPE = re.compile(KIND + ATTRIBUTES + r"(\w+)(?: final)?\s*(?:$|\{|:[^:])", re.M)


def defined_twice(root):
    places = collections.defaultdict(list)
    for room in ROOMS:
        for header in sorted((root / room).rglob("*.hpp")):
            for name in TYPE.findall(header.read_text()):
                places[name].append(header.relative_to(root).as_posix())
    return {name: where for name, where in places.items() if len(where) > 1}, len(places)


class TypeNames(unittest.TestCase):
    def test_all_headers(self):
        twice, types = defined_twice(ROOT)
        self.assertGreater(types, 300)
        self.assertEqual(twice, {})

    def test_a_second_definition_is_found(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "src").mkdir()
            (root / "workloads").mkdir()
            one = "struct Options;\nstruct Options {\n};\nclass Other final : Options {\n  struct Part {};\n};\n"
            (root / "src" / "a.hpp").write_text(one)
            (root / "workloads" / "b.hpp").write_text("class Options {\n};\nclass Other;\nclass Third::Part {};\n")
            self.assertEqual(defined_twice(root), ({"Options": ["src/a.hpp", "workloads/b.hpp"]}, 2))


if __name__ == "__main__":
    unittest.main()
