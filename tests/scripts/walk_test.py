# SPDX-License-Identifier: GPL-2.0-only
"""docs/developer/walk.md: ten stops, and each function, class and file that it names is there."""

# Runs in: quick

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "developer" / "walk.md").read_text()
CODE = {path: path.read_text() for folder in ("src", "collectives", "workloads", "topologies")
        for path in (ROOT / folder).rglob("*.[ch]pp")}


def stops():
    return re.findall(r"^(\d+)\. \*\*(.*?)\.\*\*(.*?)(?=^\d+\. |^With |\Z)", PAGE, flags=re.MULTILINE | re.DOTALL)


def names(text):
    """`Fabric::post`, `CollectiveRun`, `parts_of`: not files, keys or values."""
    spans = re.findall(r"`([\w:]+)`", text)
    return [name for name in spans if "::" in name or name[0].isupper() or "_" in name]


def is_there(name):
    """A member stands with its class in a file; anything else as a word."""
    owner, _, member = name.rpartition("::")
    words = [re.compile(rf"\b{word}\b") for word in (owner, member) if word]
    return any(all(word.search(text) for word in words) for text in CODE.values())


class Walk(unittest.TestCase):
    def test_ten_stops(self):
        self.assertEqual([int(number) for number, _, _ in stops()], list(range(1, 11)))

    def test_what_it_names_is_there(self):
        count = 0
        for number, title, text in stops():
            for name in names(text):
                with self.subTest(stop=f"{number}. {title}", name=name):
                    self.assertTrue(is_there(name))
                    count += 1
        self.assertGreater(count, 20)

    def test_each_function_is_in_a_file_that_its_stop_links(self):
        for number, title, text in stops():
            links = re.findall(r"\]\(([^)]+\.[ch]pp)\)", text) or [f"../../{name}" for name in re.findall(r"`([\w/]+\.cpp)`", text)]
            linked = "".join((ROOT / "docs/developer" / target).read_text() for target in links) or "".join(CODE.values())
            with self.subTest(stop=f"{number}. {title}"):
                self.assertTrue(any(name.rpartition("::")[2] in linked for name in names(text)))

    def test_a_name_that_is_gone_is_found(self):
        self.assertFalse(is_there("Fabric::no_such_function"))
        self.assertEqual(names("`Fabric::post` of `a/b.cpp`, `workload:` and `parts_of`"), ["Fabric::post", "parts_of"])


if __name__ == "__main__":
    unittest.main()
