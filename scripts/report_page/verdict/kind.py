# SPDX-License-Identifier: GPL-2.0-only
"""What all kinds of verdict share: the sentence on the bound of the run, and the one on what may help."""

from report_page.attribution import TITLES
from report_page.values import percent
from report_page.verdict.beside import against_delays, against_straggler, also_a_straggler
from report_page.verdict.thresholds import SHOWN


class Kind:
    """A kind of verdict. `name` is a category of a job's time (report_page.attribution), or a cause beside these."""

    name = ""
    # Kinds of higher precedence are asked first whether they bound the run.
    precedence = 0
    # Whether ranks spend this time because congestion delays what they wait for.
    follows_congestion = False
    # Whether, under congestion, advice on this kind is better than advice on the congestion.
    helps_under_congestion = False
    # What may help, as a clause.
    help = None

    def claims(self, evidence, largest):
        """Whether the run is bound by this, though its time by category is mostly `largest`."""
        return False

    def hides_congestion(self, evidence):
        """Whether means over ranks hide most of what congestion costs beside this kind."""
        return False

    @property
    def title(self):
        text = TITLES[self.name]
        return text[0].upper() + text[1:]

    def bound(self, evidence, single):
        """`single`: the kind follows from a single link or rank, and not from means."""
        parts, whole = evidence.parts, evidence.whole()
        if parts.total and not parts.exact:
            return f"{self.title} bounds {whole} ({evidence.measured()})."
        share = parts.share(self.name) if parts.total else evidence.shares.get(self.name, 0)
        rest = [name for name in evidence.longest_parts(SHOWN) if name != self.name]
        others = ", ".join(f"{TITLES[name]} {percent(parts.share(name))}" for name in rest[:2])
        on_path = f", and {percent(evidence.path.get(self.name, 0))} of its critical path" if evidence.path else ""
        return (f"{self.title} bounds {whole}: {percent(share)} of it{f' ({others})' if others else ''}{on_path}"
                f"{also_a_straggler(evidence)}.")

    def what_helps(self, evidence):
        return self.help

    def advice(self, evidence, single):
        if evidence.congested and not self.helps_under_congestion:
            return evidence.worst_congestion.advice_against(evidence)
        text = self.what_helps(evidence)
        return f"{text}{self.also_helps(evidence)}{against_delays(evidence, self)}." if text else None

    def also_helps(self, evidence):
        """What may help against other causes."""
        return against_straggler(evidence)
