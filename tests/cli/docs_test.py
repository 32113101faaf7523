# SPDX-License-Identifier: GPL-2.0-only
"""Every shell block of README.md and docs/ runs, in order, in a folder that looks like the repository; code that is quoted
from a file is in that file."""

# Time limit: 900 s

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import weft_testing

# The test command runs this test: not again from within it.
SKIPPED = {"scripts/test"}
# Pages of other projects: StableHLO, ONNX, ONNX Runtime.
OF_OTHERS = {"docs/spec.md", "docs/Operators.md", "docs/ContribOperators.md"}


def pages():
    yield weft_testing.SOURCE / "README.md"
    yield from sorted((weft_testing.SOURCE / "docs").rglob("*.md"))


def shell_blocks(page):
    return re.findall(r"^```sh\n(.*?)^```", page.read_text(), flags=re.MULTILINE | re.DOTALL)


def repository_in(folder):
    """Links to everything of the repository but the build folder, which is that of the program under test."""
    for entry in weft_testing.SOURCE.iterdir():
        if entry.name not in ("out", ".git") and not entry.name.startswith("build"):
            (folder / entry.name).symlink_to(entry)
    (folder / "build").symlink_to(weft_testing.WEFT.parent)
    (folder / "out").mkdir()


def anchors(page):
    """The anchors of a page's headings: lower case, without punctuation, hyphens for spaces."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE))
    return [heading.strip().replace(" ", "-") for heading in plain]


class Docs(unittest.TestCase):
    def test_blocks_run(self):
        count = 0
        with tempfile.TemporaryDirectory() as name, tempfile.TemporaryDirectory(prefix="weft-mpi-") as scratch:
            folder = pathlib.Path(name)
            repository_in(folder)
            settings = weft_testing.environment({
                "PATH": f"{weft_testing.WEFT.parent}{os.pathsep}{os.environ['PATH']}",
                "OMPI_MCA_orte_tmpdir_base": scratch,
            })
            for page in pages():
                for block in shell_blocks(page):
                    if block.strip() in SKIPPED:
                        continue
                    with self.subTest(page=page.name, block=block):
                        done = subprocess.run(
                            ["bash", "-euo", "pipefail", "-c", block], cwd=folder, text=True, stdin=subprocess.DEVNULL,
                            env=settings, capture_output=True, timeout=600,
                        )
                        self.assertEqual(done.returncode, 0, f"{block}\n{done.stdout}\n{done.stderr}")
                        count += 1
        self.assertGreater(count, 3, "no blocks found: has their mark-up changed?")

    def test_quoted_code_is_in_its_file(self):
        """A block that begins with the name of a file as a comment is an excerpt of it: scripts/quote writes it anew."""
        quoted = r"^```(?:cpp|python|yaml)\n(?://|#) \w\S*/\S+\n"
        self.assertGreater(sum(len(re.findall(quoted, page.read_text(), re.MULTILINE)) for page in pages()), 30,
                           "few quotations found: has their mark-up changed?")
        done = subprocess.run([weft_testing.SOURCE / "scripts/quote", "--check"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_every_registry_has_a_page(self):
        """docs/extending quotes a registration of each."""
        told = "".join(page.read_text() for page in (weft_testing.SOURCE / "docs/extending").glob("*.md"))
        count = 0
        for folder in ("src", "topologies", "collectives", "workloads"):
            for header in (weft_testing.SOURCE / folder).rglob("*.hpp"):
                for interface in re.findall(r"^using \w+ = Registry<(\w+)>", header.read_text(), re.MULTILINE):
                    with self.subTest(header=header.relative_to(weft_testing.SOURCE)):
                        self.assertIn(f"Registration<{interface}, ", told)
                        count += 1
        self.assertGreater(count, 15)

    def test_links_lead_somewhere(self):
        """Also to a heading: `page.md#heading`, with the anchors that GitHub and mkdocs make of headings."""
        others = (page for pattern in ("*.md", "workloads/README.md", "validation/**/*.md") for page in sorted(weft_testing.SOURCE.glob(pattern)))
        for page in [*pages(), *others]:
            for target, anchor in re.findall(r"\]\(([^)#:\s]*)(?:#([^)\s]*))?\)", page.read_text()):
                with self.subTest(page=page.relative_to(weft_testing.SOURCE), target=target, anchor=anchor):
                    goal = page.parent / target if target else page
                    self.assertTrue(goal.exists())
                    if anchor:
                        self.assertIn(anchor, anchors(goal))

    def test_pages_named_in_code_are_there(self):
        """`(docs/reference/network.md)` of messages, comments and --help."""
        count = 0
        for folder in ("src", "topologies", "collectives", "workloads", "scripts", "tests", "validation"):
            for path in sorted((weft_testing.SOURCE / folder).rglob("*")):
                if path.suffix not in (".cpp", ".hpp", ".py", ".yaml", ".cmake", ".md", "") or not path.is_file():
                    continue
                for name in re.findall(r"(?<![\w/.])docs/[\w/]+\.md", path.read_text(errors="replace")):
                    with self.subTest(file=path.relative_to(weft_testing.SOURCE), page=name):
                        self.assertTrue(name in OF_OTHERS or (weft_testing.SOURCE / name).is_file())
                        count += 1
        self.assertGreater(count, 50)

    def test_readme_is_short(self):
        self.assertLessEqual(len((weft_testing.SOURCE / "README.md").read_text().splitlines()), 100)


if __name__ == "__main__":
    unittest.main()
