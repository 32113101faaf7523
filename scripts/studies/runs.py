# SPDX-License-Identifier: GPL-2.0-only
"""Runs of cases, side by side: each case without a record, once."""

import json
import sys
import time

from support.errors import EnvironmentFailure

from .processes import Processes

REFUSED = " (exit code 2)"  # the end of errors of wrong inputs
LOOK = 0.5  # s between checks of runs in other programs
WATCH = 5.0  # s between looks at how far runs are, which say that every 5 s


def name_of(case):
    return ", ".join(f"{key} {choice.label}" for key, choice in case.choices.items()) or "the only one"


def first_line(text):
    lines = [line for line in text.splitlines() if line.startswith("weft: ") and not line.startswith("weft: warning: ")]
    lines = lines or text.splitlines()
    return lines[0].removeprefix("weft: ") if lines else ""


def summary_of(ended):
    """The printed summary of a run; None if it has failed. mpirun may print its own lines before it."""
    if ended.code != 0:
        return None
    try:
        return json.loads(ended.out[max(0, ended.out.find("{")):])
    except ValueError:
        return None


class Progress:
    """Lines on standard error: the number of finished cases, and the remaining time. `now` tells the time; tests bring
    their own."""

    def __init__(self, quiet, total, command, now=time.monotonic):
        self.quiet, self.total, self.done, self.now, self.start = quiet, total, 0, now, now()
        self.command = command  # whose lines these are
        self.terminal, self.last = sys.stderr.isatty(), None

    def tell(self, text):
        if not self.quiet:
            self.print(f"{self.command}: {text}")

    def complain(self, text):
        """Also with --quiet: the error of a run, in the form of all errors."""
        self.print(f"weft: {text}")

    def print(self, text):
        print(f"{chr(13) if self.terminal and self.last else ''}{text}", file=sys.stderr, flush=True)

    def step(self, shares):
        """One run has ended. `shares` are those of the others that they have done."""
        self.done += 1
        self.show(shares)

    def show(self, shares):
        """What remains is expected to take as long as what is done, for the same share of a run."""
        now = self.now()
        left, done = self.total - self.done, self.done + sum(shares)
        due = self.last is None or now - self.last >= (0.2 if self.terminal else 10) or left == 0
        if self.quiet or not due or not done:
            return
        self.last = now
        far = f" ({100 * sum(shares) / len(shares):.0f} %)" if any(shares) else ""
        seconds = (now - self.start) * (self.total - done) / done
        text = f"{self.command}: {self.done} of {self.total} runs, {len(shares)} under way{far}, about {seconds:.0f} s left"
        end = "\n" if not self.terminal or left == 0 else ""
        print(f"{chr(13)}{text:<78}" if self.terminal else text, end=end, file=sys.stderr, flush=True)


class Runs:
    """The runs of cases with their identities. `words_of(case)` is the command line of a run, without the results file;
    `excluded` are numbers of cases that are not run; `what` names them in the progress."""

    def __init__(self, cases, identities, words_of, records, settings):
        self.cases, self.identities, self.words_of, self.records = cases, identities, words_of, records
        self.mpi_processes, self.quiet, self.excluded, self.what = settings
        self.errors = {}  # {identity: error}
        self.tells_errors = True  # at once; error() has them afterwards
        self.command = "weft sweep"  # what the user has started, at the beginning of lines
        self.elsewhere = set()  # identities that other programs were found to run
        self.reused = 0

    def to_run(self, numbers=None):
        """Numbers of the cases that run, each identity once."""
        chosen = {}
        for case in self.cases:
            if case.number not in self.excluded and (numbers is None or case.number in numbers):
                chosen.setdefault(self.identities[case.number], case.number)
        return list(chosen.values())

    def run(self, jobs, numbers=None, fresh=False):
        """Runs the cases without a record, `jobs` at a time."""
        waiting = self.to_run(numbers)
        if fresh:
            for number in waiting:
                self.records.forget(self.identities[number])
        to_run = [number for number in waiting if self.records.find(self.identities[number]) is None]
        self.reused = len(waiting) - len(to_run)
        progress = Progress(self.quiet, len(to_run), self.command)
        progress.tell(f"{len(self.cases)} {self.what}: {len(to_run)} to run, {self.reused} have been run before, "
                      f"{len(self.excluded)} break a constraint")
        with Processes(jobs) as processes:
            elsewhere, looked = [], 0
            while to_run or elsewhere or processes.running:
                if not to_run and elsewhere and time.monotonic() - looked > LOOK:
                    to_run, elsewhere, looked = elsewhere, [], time.monotonic()
                while to_run and processes.has_room():
                    number = to_run.pop(0)
                    if not self.begin(number, processes, progress):
                        elsewhere.append(number)
                if not (processes.running or elsewhere):
                    continue  # another program has run it in the meantime
                ended = processes.wait(LOOK if elsewhere else WATCH)
                for (number, lock), result in ended:
                    self.end(number, lock, result, progress)
                    progress.step(processes.shares())
                if not ended:
                    progress.show(processes.shares())

    def begin(self, number, processes, progress):
        """Starts a run, or finds that another program has done it. False if another program is running it."""
        identity = self.identities[number]
        lock = self.records.lock(identity)
        try:
            taken = lock.take()
        except OSError as error:
            raise EnvironmentFailure(f"cannot lock '{lock.path}': {error.strerror}") from None
        if not taken:
            if identity not in self.elsewhere:
                progress.tell(f"case {number} is being run by another process; waiting for it")
            self.elsewhere.add(identity)
            return False
        if self.records.find(identity) is not None:
            lock.give_back()
            progress.step(processes.shares())
            return True
        words = [*self.words_of(self.cases[number]), "-o", str(self.records.results(identity)), "--summary", "json"]
        if self.quiet:
            words.append("--quiet")
        processes.start((number, lock), words, self.mpi_processes, (lock.descriptor,))
        return True

    def end(self, number, lock, ended, progress):
        identity = self.identities[number]
        summary = summary_of(ended)
        if summary:
            self.records.keep(identity, summary, ended.seconds, self.mpi_processes)
        else:
            how = f"exit code {ended.code}" if ended.code >= 0 else f"signal {-ended.code}"
            self.errors[identity] = f"{first_line(ended.err)} ({how})".strip()
            self.records.keep_error(identity, self.errors[identity])
            if self.tells_errors:
                progress.complain(f"case {number} ({name_of(self.cases[number])}) failed: {self.errors[identity]}")
        lock.give_back()

    def error(self, number):
        """The error of the case, or nothing."""
        identity = self.identities[number]
        return self.errors.get(identity) or self.records.error(identity)
