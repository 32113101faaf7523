# SPDX-License-Identifier: GPL-2.0-only
"""Programs that run side by side, and end at the latest with this one."""

import os
import pathlib
import re
import select
import shutil
import signal
import subprocess
import tempfile
import time

from support.errors import EnvironmentFailure, Interrupted

from .identity import environment

PATIENCE = 8  # s from SIGTERM to SIGKILL; weft ends within 3
TAIL = 4096  # bytes of standard error that are searched for the last line of progress
SHARE = re.compile(r"^(\d+) %, .* elapsed", re.MULTILINE)  # src/support/system/progress.cpp


class Ended:
    """The result of a task: exit code (negative: a signal), standard output and error, and seconds."""

    def __init__(self, code, out, err, seconds):
        self.code, self.out, self.err, self.seconds = code, out, err, seconds


class Processes:
    """At most `limit` at a time. Inside `with`, SIGINT and SIGTERM end all of them, and wait() raises Interrupted."""

    def __init__(self, limit):
        self.limit, self.running, self.interrupted, self.started = limit, {}, False, 0

    def __enter__(self):
        self.scratch = pathlib.Path(tempfile.mkdtemp(prefix="weft-sweep-"))
        self.reader, self.writer = os.pipe()
        for end in (self.reader, self.writer):
            os.set_blocking(end, False)
        self.old_wakeup = signal.set_wakeup_fd(self.writer, warn_on_full_buffer=False)
        self.old = {number: signal.signal(number, self.note) for number in (signal.SIGINT, signal.SIGTERM,
                                                                             signal.SIGCHLD)}
        return self

    def __exit__(self, failure, *_):
        self.end_all()
        signal.set_wakeup_fd(self.old_wakeup)
        for number, action in self.old.items():
            signal.signal(number, action)
        os.close(self.reader)
        os.close(self.writer)
        shutil.rmtree(self.scratch, ignore_errors=True)
        if self.interrupted and failure is None:
            raise Interrupted

    def note(self, number, _):
        if number != signal.SIGCHLD:
            self.interrupted = True

    def has_room(self):
        return len(self.running) < self.limit and not self.interrupted

    def start(self, task, words, mpi_processes=0, keep=()):
        """Runs `words`, under mpirun if a number of processes is given. The child inherits the file descriptors
        `keep`."""
        folder = self.scratch / str(self.started)
        folder.mkdir()
        self.started += 1
        launcher = ["mpirun", "-n", str(mpi_processes)] if mpi_processes else []
        with open(folder / "out", "wb") as out, open(folder / "err", "wb") as err:
            try:
                process = subprocess.Popen([*launcher, *words], stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                           env=environment(folder), start_new_session=True,
                                           pass_fds=keep)
            except OSError as error:
                raise EnvironmentFailure(f"cannot start '{[*launcher, *words][0]}': {error.strerror}") from None
        self.running[process.pid] = (process, task, folder, time.monotonic())

    def wait(self, seconds):
        """[(task, Ended)] as soon as a task has ended, or an empty list after `seconds`."""
        ended = self.collect()
        if not ended and not self.interrupted:
            select.select([self.reader], [], [], seconds)
            try:
                os.read(self.reader, 4096)
            except BlockingIOError:
                pass
            ended = self.collect()
        if self.interrupted:
            self.end_all()
            raise Interrupted
        return ended

    def collect(self):
        ended = []
        for pid in list(self.running):
            process, task, folder, start = self.running[pid]
            if process.poll() is None:
                continue
            del self.running[pid]
            texts = [(folder / name).read_text(errors="replace") for name in ("out", "err")]
            shutil.rmtree(folder, ignore_errors=True)
            ended.append((task, Ended(process.returncode, *texts, time.monotonic() - start)))
        return ended

    def shares(self):
        """How much of its work each running program says it has done, from 0 to 1."""
        return [share_in(tail(folder / "err")) for _, _, folder, _ in self.running.values()]

    def end_all(self):
        """Sends SIGTERM to all, and SIGKILL to those that do not end."""
        for process, *_ in self.running.values():
            os.kill(process.pid, signal.SIGTERM)
        deadline = time.monotonic() + PATIENCE
        while self.running and time.monotonic() < deadline:
            self.collect()
            time.sleep(0.02)
        for process, *_ in self.running.values():
            os.killpg(process.pid, signal.SIGKILL)
        while self.running:
            self.collect()
            time.sleep(0.02)


def tail(path):
    with open(path, "rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL))
        return file.read().decode(errors="replace")


def share_in(text):
    """The share of the last line of progress; 0 if there is none yet."""
    found = SHARE.findall(text)
    return int(found[-1]) / 100 if found else 0.0
