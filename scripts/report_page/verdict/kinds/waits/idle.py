# SPDX-License-Identifier: GPL-2.0-only
from report_page.attribution import CONGESTION, TITLES, category, parts_of
from report_page.demands import LONG_WAITS
from report_page.values import percent
from report_page.verdict import registry
from report_page.verdict.kind import Kind


def last_rank(evidence):
    """(rank, category of most of its time, share) of the rank of a job that is least idle, if most others have long ended."""
    run = evidence.facts.run
    names, values = parts_of(run, "ranks")
    if "idle" not in names or not run.has("ranks", "rank"):
        return None
    rank = run.column("ranks", "rank")
    mine = (evidence.facts.jobs.of_rank(rank.astype("int64")) == evidence.job).nonzero()[0]
    idle = values[mine, names.index("idle")] / evidence.job_time if len(mine) > 2 and evidence.job_time else []
    if len(idle) == 0 or sorted(idle)[len(idle) // 2] < 1 - LONG_WAITS or idle.min() > LONG_WAITS:
        return None
    row = mine[idle.argmin()]
    sums = {}
    for name, value in zip(names, values[row]):
        sums[category(name)] = sums.get(category(name), 0.0) + float(value)
    most = max(sums, key=lambda name: sums[name])
    return int(rank[row]), most, sums[most] / sum(sums.values())


class Idle(Kind):
    name = "idle"
    helps_under_congestion = True
    help = "More micro-batches or another schedule may fill the idle time"

    def bound(self, evidence, single):
        text, found = super().bound(evidence, single), last_rank(evidence)
        if found is None:
            return text
        rank, most, share = found
        return f"{text} Most ranks have ended long before rank {rank}, which spends {percent(share)} on {TITLES[most]}."

    def what_helps(self, evidence):
        found = last_rank(evidence)
        if found is not None and found[1] in CONGESTION:
            return f"For that rank: {registry.by_name(found[1]).remedy(evidence)}"
        return self.help if evidence.parts.share("compute") else None
