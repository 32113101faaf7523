# SPDX-License-Identifier: GPL-2.0-only
"""The folder of a study's runs: a results file and a record for each successful run, and locks: if several programs
need the same run, one executes it and the others wait."""

import fcntl
import json
import os
import pathlib

import h5py

from accounting.usage import usage_of
from support.errors import EnvironmentFailure

from .outputs import reductions_of


def remove(path):
    """Removes a file if it exists; if the folder does not exist, there is nothing to remove."""
    try:
        path.unlink(missing_ok=True)
    except OSError:
        pass


def write_whole(path, text):
    """Writes the whole file or nothing."""
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        partial.write_text(text, encoding="utf-8")
        os.replace(partial, path)
    except OSError as error:
        raise EnvironmentFailure(f"cannot write '{path}': {error.strerror}") from None
    finally:
        remove(partial)


class Lock:
    """A lock file that exists as long as a process holds it. A child that inherits `descriptor` also holds it."""

    def __init__(self, path):
        self.path, self.descriptor = path, None

    def take(self):
        """True if the lock was free."""
        while True:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o666)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(descriptor)
                return False
            try:
                here = os.stat(self.path)
            except FileNotFoundError:
                here = None
            # The previous holder may have removed the file that was opened here.
            if here and (here.st_dev, here.st_ino) == (os.fstat(descriptor).st_dev, os.fstat(descriptor).st_ino):
                self.descriptor = descriptor
                return True
            os.close(descriptor)

    def give_back(self):
        if self.descriptor is not None:
            self.path.unlink(missing_ok=True)
            os.close(self.descriptor)
            self.descriptor = None


def peak_memory(results):
    """Memory of the process that needed most."""
    try:
        with h5py.File(results, "r") as file:
            return int(file["manifest/parallel/peak_memory"][:].max())
    except OSError as error:
        raise EnvironmentFailure(f"cannot read '{results}': {error}") from None


class Records:
    """The folder."""

    def __init__(self, folder, outputs, keep_runs):
        self.folder, self.outputs, self.keep_runs = pathlib.Path(folder), outputs, keep_runs

    def make_folder(self):
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise EnvironmentFailure(f"cannot make the folder '{self.folder}': {error.strerror}") from None

    def results(self, identity):
        return self.folder / f"{identity}.h5"

    def lock(self, identity):
        return Lock(self.folder / f"{identity}.lock")

    def find(self, identity):
        """The record of a successful run with all requested outputs, or None."""
        results = self.results(identity)
        try:
            record = json.loads((self.folder / f"{identity}.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        if self.keep_runs and not results.exists():
            return None
        wanted = {output.text for output in self.outputs.values() if output.reduction}
        if not wanted <= set(record["reductions"]) or (self.needs_usage() and "usage" not in record):
            if not results.exists():
                return None
            record["reductions"].update(reductions_of(results, self.outputs))
            record.update(self.usage(results))
            self.write(identity, record)
        return record

    def needs_usage(self):
        return any(output.needs_usage for output in self.outputs.values())

    def usage(self, results):
        """The inputs of costs, energy and emissions, if these are requested."""
        return {"usage": usage_of(results)} if self.needs_usage() else {}

    def forget(self, identity):
        (self.folder / f"{identity}.json").unlink(missing_ok=True)

    def keep(self, identity, summary, seconds, processes):
        """Writes the record of a run that has just succeeded."""
        results = self.results(identity)
        timing = {"wall_seconds": seconds, "simulation_seconds": summary["wall_seconds"],
                  "build_seconds": summary["build_seconds"], "peak_memory": peak_memory(results),
                  "processes": max(1, processes)}
        record = {"summary": summary, "reductions": reductions_of(results, self.outputs), "timing": timing,
                  **self.usage(results)}
        self.write(identity, record)
        self.forget_error(identity)
        if not self.keep_runs:
            results.unlink(missing_ok=True)
        return record

    def write(self, identity, record):
        write_whole(self.folder / f"{identity}.json", json.dumps(record))

    def keep_error(self, identity, error):
        """Writes the error for --collect; the next process that needs this run tries again."""
        write_whole(self.folder / f"{identity}.error", error + "\n")

    def forget_error(self, identity):
        (self.folder / f"{identity}.error").unlink(missing_ok=True)

    def error(self, identity):
        """The error of the last attempt, or nothing."""
        try:
            return (self.folder / f"{identity}.error").read_text(encoding="utf-8").rstrip("\n")
        except OSError:
            return ""

    def find_machine(self, identity):
        try:
            return json.loads((self.folder / f"machine-{identity}.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None

    def keep_machine(self, identity, text):
        write_whole(self.folder / f"machine-{identity}.json", text)
