# SPDX-License-Identifier: GPL-2.0-only
"""The time of a run as if nothing else ran on its machine: limits of time are measured in it."""

import os
import pathlib
import time

PROCESSORS = os.cpu_count() or 1


def spent(pid):
    """Seconds for which a process ran, and waited for a processor (Linux, Documentation/scheduler/sched-stats.rst)."""
    try:
        ran, waited, _ = pathlib.Path(f"/proc/{pid}/schedstat").read_text().split()
    except (OSError, ValueError):
        return None
    return int(ran) / 1e9, int(waited) / 1e9


class FairTime:
    """Processes of one run. Time for which they ran is shared among the processors that they could have had; time for
    which all of them slept counts as it is; time for which they waited because others ran does not count."""

    def __init__(self, spent=spent, clock=time.monotonic, processors=PROCESSORS):
        self.spent, self.clock, self.processors = spent, clock, processors
        # Of each process: when it was looked at last, what it had had, and what has counted as sleep too much: Linux
        # counts a wait when it is over, and until then it looks like sleep.
        self.before = {}
        self.seconds = 0.0

    def look(self, pids):
        """Their time since the last look. Processes that are new, or have ended, do not count."""
        now, present, ran, slept = self.clock(), {}, [], []
        for pid in pids:
            if figures := self.spent(pid):
                too_much = 0.0
                if pid in self.before:
                    moment, ran_before, waited_before, too_much = self.before[pid]
                    ran.append(figures[0] - ran_before)
                    sleep = now - moment - ran[-1] - (figures[1] - waited_before) - too_much
                    too_much = max(0.0, -sleep)
                    slept.append(max(0.0, sleep))
                present[pid] = (now, *figures, too_much)
        self.before = present
        if ran:
            self.seconds += sum(ran) / min(self.processors, len(ran)) + min(slept)
