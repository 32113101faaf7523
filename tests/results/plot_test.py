#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""scripts/plot draws all pictures for which a file of $WEFT has data; otherwise it prints one line, with exit code 2."""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from schema_test import make_file

PLOT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "plot"
PNG = b"\x89PNG\r\n\x1a\n"


def plot(*words):
    return subprocess.run([sys.executable, PLOT, *map(str, words)], capture_output=True, text=True, check=False)


class Plot(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.temporary.name)
        cls.results = make_file(cls.folder)

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def test_all_pictures(self):
        pictures = self.folder / "new" / "pictures"
        done = plot(self.results, "-o", pictures)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        expected = {f"schema.{kind}.png" for kind in ("links", "utilization", "queue", "rates", "timeline", "messages")}
        self.assertEqual({path.name for path in pictures.iterdir()}, expected)
        for path in pictures.iterdir():
            self.assertTrue(path.read_bytes().startswith(PNG))

    def assert_refused(self, done, text):
        self.assertEqual(done.returncode, 2)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertIn(text, done.stderr)

    def test_refusals(self):
        self.assert_refused(plot(self.folder / "absent.h5"), "No such file")
        self.assert_refused(plot(self.folder / "schema.yaml"), "it is not an HDF5 file")
        self.assert_refused(plot(self.results, "--kind", "circles"), "invalid choice: 'circles'")

    def test_the_name_of_a_picture(self):
        for ending, begin in ((".png", PNG), (".svg", b"<?xml"), (".pdf", b"%PDF")):
            path = self.folder / f"one{ending}"
            done = plot(self.results, "--kind", "rates", "-o", path)
            self.assertEqual((done.returncode, done.stderr, done.stdout), (0, "", f"{path}\n"))
            self.assertTrue(path.read_bytes().startswith(begin))
        for kind in ("all", "links"):
            self.assert_refused(plot(self.results, "--kind", kind, "-o", self.folder / "several.png"), "expected a folder")
        self.assertFalse((self.folder / "several.png").exists())

    def test_a_folder_that_cannot_be_written(self):
        """An environment that fails has exit code 3, as with all commands."""
        done = plot(self.results, "-o", "/proc/pictures")
        self.assertEqual((done.returncode, done.stdout), (3, ""))
        self.assertRegex(done.stderr, r"^weft: cannot write '/proc/pictures/schema\.links\.png': .*\n$")

    def test_interrupted_at_any_time(self):
        for delay in (0.5, 1, 2, 4):
            with self.subTest(delay), tempfile.TemporaryDirectory() as folder:
                process = subprocess.Popen([sys.executable, PLOT, str(self.results), "-o", folder], stdout=subprocess.PIPE,
                                           stderr=subprocess.PIPE, text=True)
                time.sleep(delay)
                process.send_signal(signal.SIGINT)
                _, err = process.communicate(timeout=60)
                self.assertIn((process.returncode, err), ((0, ""), (130, ""), (130, "weft: interrupted\n")))
                for path in pathlib.Path(folder).iterdir():
                    self.assertTrue(path.read_bytes().startswith(PNG), path)

    def test_the_results_are_not_drawn_over(self):
        link = self.folder / f"{self.results.stem}.messages.png"
        link.symlink_to(self.results)
        self.addCleanup(link.unlink)
        before = self.results.read_bytes()
        self.assert_refused(plot(self.results, "--kind", "messages"), "is an input")
        self.assertEqual(self.results.read_bytes(), before)

    def test_queue_needs_samples(self):
        experiment = (self.folder / "schema.yaml").read_text(encoding="utf-8").replace("sampling: 1 us,", "")
        (self.folder / "plain.yaml").write_text(experiment, encoding="utf-8")
        subprocess.run([os.path.abspath(os.environ["WEFT"]), "run", "plain.yaml", "-o", "plain.h5", "--quiet"],
                       cwd=self.folder, check=True, stdout=subprocess.DEVNULL)
        self.assert_refused(plot(self.folder / "plain.h5", "--kind", "queue"), "set output.sampling")


if __name__ == "__main__":
    unittest.main()
