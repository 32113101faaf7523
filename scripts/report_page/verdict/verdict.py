# SPDX-License-Identifier: GPL-2.0-only
"""The bound of the run, its place, faults of links, and possible improvements: at most four sentences, each
from numbers of the file."""

from report_page.verdict.decision import decide
from report_page.verdict.evidence import Evidence
from report_page.verdict.faults import faults
from report_page.verdict.place import place


class Verdict:
    """`kind` is the bound of the run, `sentences` describe it. `path` is what critical_path() gives."""

    def __init__(self, facts, path=None):
        self.evidence = Evidence(facts, path)
        self.kind, single = decide(self.evidence)
        found = (self.kind.bound(self.evidence, single), place(self.evidence), faults(self.evidence),
                 self.kind.advice(self.evidence, single))
        self.sentences = [text for text in found if text]

    def data(self):
        link = self.evidence.blamed.link if self.evidence.congested else None
        return {"kind": self.kind.name, "congested": self.evidence.congested, "sentences": self.sentences,
                "link": link["name"] if link else "", "job": self.evidence.job_name}
