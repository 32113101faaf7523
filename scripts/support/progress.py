# SPDX-License-Identifier: GPL-2.0-only
"""Progress of long work on standard error, with an estimate of what remains, as src/support/system/progress.cpp shows it."""

import sys
import time

SILENT = 1.0  # seconds: shorter work shows nothing
TERMINAL, PLAIN = 0.2, 5.0  # seconds from one line to the next


class Progress:
    """A status line on a terminal, a line every few seconds elsewhere. `now` tells the time; tests bring their own."""

    def __init__(self, who, enabled=True, now=time.monotonic, stream=None):
        self.who, self.enabled, self.now = who, enabled, now
        self.stream = stream or sys.stderr
        self.terminal, self.shown = self.stream.isatty(), False
        self.begin("", 0)

    def begin(self, what, total):
        """`total` units of work follow. Their estimate is of their own: other work has had another speed."""
        self.what, self.total, self.done = what, total, 0
        self.start = self.last = self.now()

    def advance(self, units):
        self.done += units
        now = self.now()
        elapsed = now - self.start
        if not self.enabled or elapsed < SILENT or now - self.last < (TERMINAL if self.terminal else PLAIN):
            return
        self.last, self.shown = now, True
        share = min(self.done / self.total, 1) if self.total else 0
        left = f", about {elapsed * (1 - share) / share:.0f} s left" if share else ""
        text = f"{self.who}: {self.what}: {100 * share:.0f} %{left}"
        print(f"\r{text:<78}" if self.terminal else text, end="" if self.terminal else "\n", file=self.stream, flush=True)

    def end(self):
        """Ends the status line."""
        if self.shown and self.terminal:
            print(file=self.stream, flush=True)
        self.shown = False
