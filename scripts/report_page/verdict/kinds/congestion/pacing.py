# SPDX-License-Identifier: GPL-2.0-only
import numpy as np

from report_page.verdict.congestion import HeldBack


class Pacing(HeldBack):
    name = "pacing"
    help = "other thresholds, increases or presets of congestion control (`network.congestion_control`) may help"
    beside = HeldBack.beside + "or "

    def culprit(self, evidence):
        """The row of the busiest link behind hosts and servers at which the job waited: senders that are held to their rates leave short queues."""
        links, delays = evidence.facts.links, evidence.facts.delays
        used = np.where(links.queues_own(), 0, links.values["utilization"])
        # Of several jobs others may have busier links. Last packets of paced messages may have waited nowhere: then those of its hosts count.
        mine = delays.waiting[:, evidence.job] > 0
        mine = mine if mine.any() else self.to_hosts(evidence)
        used = np.where(mine, used, 0) if mine.any() else used
        return int(used.argmax()) if used.any() else None

    def to_hosts(self, evidence):
        """Which links end at hosts of the job, if it is one of several."""
        run, links, jobs = evidence.facts.run, evidence.facts.links, evidence.facts.jobs
        if not evidence.several_jobs or not run.has("ranks", "rank", "node"):
            return np.zeros(links.count, dtype=bool)
        rank, node = (column.astype(np.int64) for column in run.columns("ranks", "rank", "node"))
        return np.isin(links.target, node[jobs.of_rank(rank) == evidence.job])

    def what_it_did(self, evidence, row):
        return " was the busiest link; "
