# SPDX-License-Identifier: GPL-2.0-only
"""The site of scripts/site: every page of docs/ is in its navigation, no link is broken, and a broken one is reported."""

# Runs in: full

import importlib.machinery
import importlib.util
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tests"))
import weft_browser  # noqa: E402

loader = importlib.machinery.SourceFileLoader("site_of_weft", str(ROOT / "scripts" / "site"))
site = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
loader.exec_module(site)


def pages_of(nav):
    for entry in nav:
        for value in entry.values():
            if isinstance(value, str):
                yield value
            else:
                yield from pages_of(value)


class Navigation(unittest.TestCase):
    def test_every_page_has_one_place(self):
        pages = sorted(path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md"))
        self.assertEqual(sorted(pages_of(site.navigation())), pages)

    def test_sections_are_in_order(self):
        titles = [title for entry in site.navigation()[1:] for title in entry]
        self.assertEqual(titles, ["Tutorial", "Concepts", "Reference", "Extending", "Developer"])


class Built(unittest.TestCase):
    def test_without_a_broken_link(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([ROOT / "scripts/site", folder], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stdout, f"{folder}/index.html\n")
            text = (pathlib.Path(folder) / "concepts/model.html").read_text()
            self.assertIn('href="../reference/hdf5_schema.html', text)
            # Without jQuery the theme's menu does not open in a narrow window.
            scripts = re.findall(r'<script src="\.\./([^"]+)"', text)
            self.assertTrue(any("jquery" in script for script in scripts), scripts)
            self.assertEqual([script for script in scripts if not (pathlib.Path(folder) / script).is_file()], [])
            self.assertGreater(min((pathlib.Path(folder) / script).stat().st_size for script in scripts if "jquery" in script), 50_000)
            # A header outside of docs/ is a page, too.
            self.assertIn("TopologyBuilder", (pathlib.Path(folder) / "repository/src/graph/topology/topology_builder.hpp.html").read_text())
            with weft_browser.Browser() as browser:
                self.search(browser, pathlib.Path(folder) / "search.html")
                self.menu(browser, pathlib.Path(folder) / "developer/tree.html")

    def search(self, browser, page):
        """The page of results, opened as a file: browsers refuse requests and workers of such pages."""
        browser.open(page, "?q=tensor_overlap+userbuffers")
        links = browser.value("[...document.querySelectorAll('#mkdocs-search-results a')].map((link) => link.getAttribute('href'))")
        self.assertIn("reference/training.html#tensor-ranks-beside-gemms", links[0])
        self.assertTrue((page.parent / links[0].partition("#")[0]).is_file())
        browser.open(page, "?q=nobodyhaswrittenthis")
        self.assertIn("No section has all of these words.", browser.value("document.body.innerText"))

    def menu(self, browser, page):
        """The entry of the page is the current one, and in view."""
        browser.call("Page.navigate", url=page.as_uri())
        while not browser.value(f"location.pathname === '{page}' && document.readyState === 'complete'"):
            browser.settle()
        browser.settle()
        current = "document.querySelector('.wy-menu-vertical a.current')"
        self.assertEqual(browser.value(f"{current}.innerText.trim()"), site.title_of(ROOT / "docs/developer/tree.md"))
        self.assertTrue(browser.value(f"{current}.getBoundingClientRect().top > 0 && {current}.getBoundingClientRect().bottom < innerHeight"))

    def test_a_broken_link_ends_it(self):
        with tempfile.TemporaryDirectory() as name:
            site.ROOT, site.DOCS = pathlib.Path(name), pathlib.Path(name, "docs")
            self.addCleanup(setattr, site, "ROOT", ROOT)
            self.addCleanup(setattr, site, "DOCS", ROOT / "docs")
            (site.DOCS / "pictures").mkdir(parents=True)
            start = site.DOCS / "README.md"
            start.write_text("# Documents\n")
            self.assertEqual(site.build(site.ROOT / "out"), 0)
            start.write_text("# Documents\n\n[gone](nowhere.md)\n")
            self.assertNotEqual(site.build(site.ROOT / "out"), 0)


if __name__ == "__main__":
    unittest.main()
