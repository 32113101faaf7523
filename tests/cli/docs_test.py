#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Every shell block of README.md and docs/ runs, in order, in a folder that looks like the repository, and prints what the
pages show; code that is quoted from a file is in that file.

`tests/cli/docs_test.py --update [PAGE...]` writes the blocks anew that show what commands print (```output), of all pages or
of these. Figures in sentences it does not change: docs_figures.yaml says which of them are checked, and against what."""

# Time limit: 900 s

import contextlib
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import yaml

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import printed_blocks
import weft_testing

FIGURES = pathlib.Path(__file__).with_name("docs_figures.yaml")
# The test command runs this test: not again from within it.
SKIPPED = {"scripts/test"}
# Pages of other projects: StableHLO, ONNX, ONNX Runtime.
OF_OTHERS = {"docs/spec.md", "docs/Operators.md", "docs/ContribOperators.md"}


def pages():
    yield weft_testing.SOURCE / "README.md"
    yield from sorted((weft_testing.SOURCE / "docs").rglob("*.md"))


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


class Runner:
    """Runs the commands of pages, in a folder that looks like the repository."""

    def __init__(self, folder, scratch):
        self.folder = folder
        repository_in(folder)
        self.settings = weft_testing.environment({
            "PATH": f"{weft_testing.WEFT.parent}{os.pathsep}{os.environ['PATH']}",
            "OMPI_MCA_orte_tmpdir_base": scratch,
            "COLUMNS": "150",
        })

    def run(self, commands):
        """Exit code and the lines that were printed, on standard output and standard error."""
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", commands], cwd=self.folder, text=True, stdin=subprocess.DEVNULL,
            env=self.settings, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=600,
        )
        return done.returncode, done.stdout.splitlines()

    def page(self, page):
        """The blocks of a page, and exit code and printed lines of each block of commands."""
        blocks = printed_blocks.Page(page.read_text())
        return blocks, [(0, []) if commands.strip() in SKIPPED else self.run(commands) for commands in blocks.commands]

    def figures(self, page, results):
        """Sentences of the page, as docs_figures.yaml names them, with figures that are not those of this program."""
        text = " ".join(page.read_text().split())
        printed = "\n".join(line for _, lines in results for line in lines)
        for entry in yaml.safe_load(FIGURES.read_text()).get(str(page.relative_to(weft_testing.SOURCE)), []):
            if "command" in entry:
                code, lines = self.run(entry["command"])
                found = " ".join(lines).split() if code == 0 else []
            else:
                found = printed_blocks.figures_of(entry["printed"], printed)
            message = printed_blocks.wrong_figures(entry["says"], text, found)
            if message:
                yield message


@contextlib.contextmanager
def runner():
    with tempfile.TemporaryDirectory() as name, tempfile.TemporaryDirectory(prefix="weft-mpi-") as scratch:
        yield Runner(pathlib.Path(name), scratch)


class Docs(unittest.TestCase):
    def test_pages_are_as_commands_print(self):
        count = 0
        with runner() as commands:
            for page in pages():
                name = page.relative_to(weft_testing.SOURCE)
                blocks, results = commands.page(page)
                for number, (block, (code, lines)) in enumerate(zip(blocks.commands, results)):
                    with self.subTest(page=name, block=block):
                        wanted = weft_testing.EXIT_INPUT if blocks.shows_mistake(number) else 0
                        self.assertEqual(code, wanted, "\n".join([block, *lines]))
                        count += 1
                for message in blocks.stale([lines for _, lines in results]):
                    with self.subTest(page=name, message=message.splitlines()[0]):
                        self.fail(f"{name}, {message}`tests/cli/docs_test.py --update {name}` writes such blocks anew.")
                for message in commands.figures(page, results):
                    with self.subTest(page=name, message=message):
                        self.fail(f"{name}: {message}")
        self.assertGreater(count, 100, "few blocks found: has their mark-up changed?")

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


def update(names):
    wanted = {(weft_testing.SOURCE / name).resolve() for name in names}
    with runner() as commands:
        for page in pages():
            if wanted and page.resolve() not in wanted:
                continue
            blocks, results = commands.page(page)
            fresh = blocks.renewed([lines for _, lines in results])
            if fresh != page.read_text():
                page.write_text(fresh)
                print(f"{page.relative_to(weft_testing.SOURCE)}: written")
            for message in commands.figures(page, results):
                print(f"{page.relative_to(weft_testing.SOURCE)}: {message}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--update"]:
        update(sys.argv[2:])
    else:
        unittest.main()
