# SPDX-License-Identifier: GPL-2.0-only
"""Common code of the tests of `weft report`: experiments, tables written by hand, and a page as Chromium shows it."""

import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3]))
from weft_browser import Browser
from weft_testing import NETWORK, SOURCE, STAR, ProgramTest, table

IDLE = {
    "topology": STAR, "network": NETWORK,
    "workload": {"kind": "collective", "collective": "all_reduce", "algorithm": "ring", "ranks": 4, "size": "1 MiB",
                 "iterations": 2},
    "output": {"operations": True},
}
# Three hosts send to a fourth: its link is the bottleneck.
INCAST = {
    "topology": {**STAR, "link_rate": "100 Gb/s"}, "network": NETWORK,
    "workload": {"kind": "traffic", "pattern": "pairs", "size": "2 MB", "pairs": [[1, 0], [2, 0], [3, 0]]},
    "output": {"sampling": "10 us"},
}
TRAINING = SOURCE / "workloads" / "quickstart.yaml"


def write_text(group, name, values, unit="text"):
    group.create_dataset(name, data=np.array(values, dtype="S")).attrs["unit"] = unit


def write_numbers(group, name, values, unit="1", kind=np.int64):
    group.create_dataset(name, data=np.array(values, dtype=kind)).attrs["unit"] = unit


class PageTest(ProgramTest):
    """A test with one browser for all of its pages."""

    @classmethod
    def setUpClass(cls):
        cls.browser = Browser().__enter__()
        cls.addClassCleanup(cls.browser.__exit__, None, None, None)

    def report(self, *files, name="page.html", words=()):
        self.run_weft("report", *files, "-o", self.folder / name, *words, seconds=300)
        return self.folder / name

    def show(self, *files, **options):
        """Writes the page and opens it; it must have no errors, and request nothing else."""
        path = self.report(*files, **options)
        self.browser.open(path)
        self.assertEqual(self.browser.complaints, [])
        wanted = [url for url in self.browser.requests if not url.startswith("data:")]
        self.assertEqual(wanted, [path.resolve().as_uri()])
        return path

    def data(self, selector, name):
        """An attribute data-NAME of all elements, as texts."""
        return self.browser.value(f"[...document.querySelectorAll({selector!r})].map((e) => e.dataset.{name})")

    def number(self, selector, name="value"):
        values = self.data(selector, name)
        self.assertEqual(len(values), 1, selector)
        return float(values[0])

    def verdict(self):
        return {name: self.data("article:not([hidden]) .verdict", name)[0] for name in ("verdict", "congested", "link")}

    def saved(self, experiment, **network):
        """Runs an experiment, shows its report, and returns the share of its time that another network saves."""
        file = self.simulate(experiment)[1]
        other = self.simulate({**experiment, "network": {**experiment["network"], **network}}, output="other.h5")[1]
        self.show(file)
        return 1 - float(table(other, "jobs")["time"][0]) / float(table(file, "jobs")["time"][0])

    def text(self, selector):
        return self.browser.value(f"document.querySelector({selector!r}).innerText").replace("\N{NO-BREAK SPACE}", " ")
