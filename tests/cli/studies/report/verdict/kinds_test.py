#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""The registered kinds of verdict: each of them is the verdict on a job that spends most of its time on it, and a new one is one file."""

import pathlib
import sys
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from report_testing import IDLE
from weft_testing import SOURCE, ProgramTest

sys.path.insert(0, str(SOURCE / "scripts"))
from report_page.attribution import CONGESTION, TITLES  # noqa: E402
from report_page.reading import open_report_file  # noqa: E402
from report_page.run_report import Facts  # noqa: E402
from report_page.verdict import registry  # noqa: E402
from report_page.verdict.decision import decide  # noqa: E402
from report_page.verdict.evidence import Evidence  # noqa: E402

# Causes that are no part of a job's time.
BESIDE = {"straggler", "nothing"}


class Kinds(ProgramTest):
    def evidence(self, name, share=0.9):
        """Of an idle network on which `name` takes that share of the time, the rest is compute, and no single resource is busy."""
        evidence = Evidence(self.facts, None)
        evidence.parts.sums, evidence.parts.total = {"compute": 1 - share} | {name: share}, 1.0
        evidence.shares = {kind: evidence.parts.share(kind) for kind in CONGESTION}
        evidence.congested = name in CONGESTION
        for resource in ("link", "edge", "compute", "host", "window", "waits", "carries", "local"):
            setattr(evidence.demands, resource, 0.0)
        return evidence

    def setUp(self):
        super().setUp()
        self.facts = Facts(open_report_file(self.simulate(IDLE)[1]), False)

    def test_every_category_of_time_has_a_kind(self):
        self.assertEqual(set(registry.kinds()), set(TITLES) | BESIDE)

    def test_what_takes_most_of_the_time_is_the_verdict(self):
        for name in TITLES:
            with self.subTest(name):
                evidence = self.evidence(name)
                kind, single = decide(evidence)
                self.assertEqual((kind.name, single), (name, False))
                self.assertIn("the run, which takes", kind.bound(evidence, single))
                self.assertIn("90", kind.bound(evidence, single))
                advice = kind.advice(evidence, single)
                self.assertEqual(advice is None, name == "other", advice)
                if advice:
                    self.assertNotRegex(advice, r"[{}]|\.\.$")
                    self.assertTrue(advice.endswith("."), advice)

    def test_a_job_without_parts_has_no_known_bound(self):
        evidence = self.evidence("other")
        evidence.parts.sums, evidence.parts.total = {}, 0.0
        kind, single = decide(evidence)
        self.assertEqual(kind.name, "nothing")
        self.assertTrue(kind.bound(evidence, single).startswith("The file does not say what bounds the run"))
        self.assertIsNone(kind.advice(evidence, single))

    def test_a_new_kind_is_one_file(self):
        """It claims runs that spend a tenth of their time on it, which for other kinds is not enough."""
        folder = self.folder / "report_page" / "verdict" / "kinds" / "work"
        folder.mkdir(parents=True)
        (folder / "checkpoints.py").write_text(
            "from report_page.verdict.kind import Kind\n\n\n"
            "class Checkpoints(Kind):\n"
            "    name = 'checkpoints'\n"
            "    help = 'Fewer checkpoints may help'\n\n"
            "    def claims(self, evidence, largest):\n"
            "        return evidence.parts.share(self.name) >= 0.1\n\n"
            "    def bound(self, evidence, single):\n"
            "        return f'Checkpoints bound {evidence.whole()}.'\n")
        known = registry.files
        with mock.patch.object(sys, "path", [str(self.folder), *sys.path]), \
                mock.patch.object(registry, "files", lambda: [*known(), folder / "checkpoints.py"]):
            registry.kinds.cache_clear()
            self.addCleanup(registry.kinds.cache_clear)
            evidence = self.evidence("checkpoints", share=0.1)
            kind, single = decide(evidence)
            self.assertEqual(kind.bound(evidence, single)[:24], "Checkpoints bound the ru")
            self.assertEqual(kind.advice(evidence, single), "Fewer checkpoints may help.")
            evidence = self.evidence("checkpoints", share=0.09)
            self.assertEqual(decide(evidence)[0].name, "compute")


if __name__ == "__main__":
    unittest.main()
