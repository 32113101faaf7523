# SPDX-License-Identifier: GPL-2.0-only
from report_page.values import time_text
from report_page.verdict.kind import Kind


class Straggler(Kind):
    name = "straggler"
    # Others wait for the rank, whatever their time is called.
    precedence = 2
    helps_under_congestion = True
    # Parts of the job's time that a rank which computes for longer makes longer, or that hide it.
    WAITS = ("compute", "credits", "exposed", "idle", "peers")

    def claims(self, evidence, largest):
        # In the bubble of a pipeline ranks wait for longer than three times what one of them computes longer.
        return largest in self.WAITS and evidence.others_wait() and evidence.straggler.late > evidence.waiting() / 3

    def bound(self, evidence, single):
        rank, late = evidence.straggler
        return (f"One rank bounds {evidence.whole()}: rank {rank} computes {time_text(late)} longer than the median, because it is "
                "slower or has more work.")

    def what_helps(self, evidence):
        return ("Less work for that rank, such as fewer blocks in its stage of a pipeline, or a faster one, would help "
                f"all that wait for it, by at most {time_text(evidence.straggler.late)}")

    def also_helps(self, evidence):
        return ""
