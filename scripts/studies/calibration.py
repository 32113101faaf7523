# SPDX-License-Identifier: GPL-2.0-only
"""The measurement for a plan: the beginning of the run itself, for some seconds on one process."""

import json
import os
import re
import signal
import subprocess
import tempfile

import h5py

from support.errors import EnvironmentFailure, Interrupted, StudyError

from .identity import environment

LIBRARIES = 40e6  # B, which `weft describe` counts for MPI, HDF5 and ns-3; measured here instead
# A run with almost nothing but rows of messages, which take memory until they are written.
TINY = """{topology: {kind: line, links: 1, link_rate: 100 Gb/s, link_delay: 1 us},
workload: {kind: traffic, pattern: pairs, pairs: [[0, 1]], size: 1 B,
  start: {process: periodic, interval: 1 us, count: 100000}}}
"""
ROWS_IN_MEMORY = 1 << 18  # the default of output.rows_in_memory
SIZES = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40, "PiB": 2**50}
LONGEST = 60  # s: a run that has simulated nothing yet gets more time, up to this or four times the requested time
END_OF_RUN = 60  # s from SIGTERM until results are written; usually far less


class Counted:
    """Counts of `weft describe`, without a run."""

    def __init__(self, program, words):
        # Without rows of messages: their memory is measured.
        done = call(program, ["describe", *words, "--set", "output.messages=none"])
        self.by_message = bool(re.search(r"^ *fidelity +(ideal|loggp)$", done, re.MULTILINE))
        self.packet_hops = self.number(done, "packet-hops") or 0
        self.messages = self.number(done, "messages")
        memory = re.search(r"memory of a process +([\d.e+]+) (\w+), and ([\d.e+]+) (\w+) shared", done)
        if self.messages is None or not memory:
            raise EnvironmentFailure("`weft describe` prints neither messages nor memory; is it of another version?")
        self.each = float(memory[1]) * SIZES[memory[2]] - LIBRARIES
        self.shared = float(memory[3]) * SIZES[memory[4]]

    def rows(self, output):
        """Rows of messages that are kept, and the number that a process keeps in memory."""
        kept = output.get("messages") or "all"
        sample = int(output.get("message_sample") or 1000) if kept == "sampled" else 1
        rows = 0 if kept == "none" else self.messages / sample
        return rows, int(output.get("rows_in_memory") or ROWS_IN_MEMORY)

    @staticmethod
    def number(text, name):
        found = re.search(rf"^ *{re.escape(name)} +([0-9,]+)", text, re.MULTILINE)
        return int(found[1].replace(",", "")) if found else None

    @property
    def work(self):
        """The quantity to which time is proportional: packet-hops, or messages on networks without packets."""
        return self.messages if self.by_message else self.packet_hops


# A process starts with the peak memory of its parent, which is less in a shell than in Python. The shell also waits for
# the end of its children when it receives a signal to end.
SHELL = ["/bin/sh", "-c", 'trap : TERM INT; "$@"; exit $?', "sh"]


def run(words, seconds=None):
    """(exit code, standard output, standard error). After `seconds` the program gets a signal to end."""
    try:
        process = subprocess.Popen([*SHELL, *words], text=True, errors="surrogateescape", stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(),
                                   start_new_session=True)
    except OSError as error:
        raise EnvironmentFailure(f"cannot start '{SHELL[0]}': {error.strerror}") from None
    try:
        try:
            out, err = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGTERM)
            out, err = process.communicate(timeout=END_OF_RUN)
    except subprocess.TimeoutExpired:
        end(process, signal.SIGKILL)
        raise EnvironmentFailure(f"the run did not end within {END_OF_RUN} s of SIGTERM") from None
    except Interrupted:
        end(process, signal.SIGTERM)
        raise
    return process.returncode, out, err


def end(process, number):
    """The program and its shell."""
    os.killpg(process.pid, number)
    process.communicate()


def refuse(code, err):
    failure = StudyError if code == 2 else EnvironmentFailure
    raise failure(err.strip().removeprefix("weft: ") or f"weft ended with exit code {code}")


def call(program, words):
    """The output of a command that must succeed."""
    code, out, err = run([program.path, *words])
    if code:
        refuse(code, err)
    return out


class Calibration:
    """Figures of a run that was ended after some seconds, or has ended by itself earlier (`complete`)."""

    def __init__(self, program, words, seconds, tell):
        with tempfile.TemporaryDirectory(prefix="weft-plan-") as folder:
            self.measure_libraries(program, folder)
            most = max(4 * seconds, LONGEST)
            while seconds <= most:
                tell(f"running the experiment for {seconds:g} s on one process")
                if self.measure(program, words, seconds, folder):
                    return
                seconds *= 2
        raise EnvironmentFailure(f"the experiment simulated nothing within {seconds / 2:g} s; expected more --seconds")

    def measure_libraries(self, program, folder):
        """Memory of an almost empty run, and of a row of messages."""
        path, results = os.path.join(folder, "tiny.yaml"), os.path.join(folder, "tiny.h5")
        with open(path, "w", encoding="utf-8") as file:
            file.write(TINY)
        summary = json.loads(call(program, ["run", path, "-o", results, "--summary", "json", "--quiet", "--set",
                                            "output.messages=none"]))
        self.libraries = peak_memory(results)
        call(program, ["run", path, "-o", results, "--quiet"])
        self.row = max(0, peak_memory(results) - self.libraries) / summary["messages"]

    def measure(self, program, words, seconds, folder):
        """True if packets (or messages) were in flight."""
        results = os.path.join(folder, "run.h5")
        code, out, err = run([program.path, "run", *words, "-o", results, "--summary", "json", "--quiet"], seconds)
        if code not in (0, 130):
            refuse(code, err)
        if not out.strip():
            return False  # it was ended before it began
        summary = json.loads(out)
        self.complete = code == 0  # by itself, also where the experiment cuts it short
        self.packet_hops, self.messages = summary["packet_hops"], summary["messages"]
        self.wall_seconds, build_seconds = summary["wall_seconds"], summary["build_seconds"]
        self.simulated_ps = summary["simulated_time_ps"]
        self.parallelism = summary["parallel"]["parallelism"]
        # Processor time: on a shared machine, building and running take longer than alone.
        self.share = min(1.0, summary["processor_seconds"] / (self.wall_seconds + build_seconds)) or 1.0
        self.build_seconds = build_seconds * self.share
        self.memory = peak_memory(results)
        return (self.packet_hops or self.messages) > 0

    def seconds_per(self, work):
        """Processor time."""
        return self.wall_seconds * self.share / work


def peak_memory(results):
    with h5py.File(results, "r") as file:
        return int(file["manifest/parallel/peak_memory"][:].max())
