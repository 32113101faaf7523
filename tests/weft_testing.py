# SPDX-License-Identifier: GPL-2.0-only
"""Common code of the tests that run the program as users do: start it, alone or under mpirun, and read its files."""

import atexit
import functools
import importlib.machinery
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from concurrent.futures import ThreadPoolExecutor

import h5py
import numpy

SOURCE = pathlib.Path(os.environ.get("WEFT_SOURCE", pathlib.Path(__file__).resolve().parents[1]))
WEFT = pathlib.Path(os.environ.get("WEFT", SOURCE / "build" / "weft"))

sys.dont_write_bytecode = True
sys.path.insert(0, str(SOURCE / "scripts"))
from support import open_mpi  # noqa: E402
from support.server import Server  # noqa: E402

same_results = importlib.machinery.SourceFileLoader("same_results", str(SOURCE / "scripts" / "same_results")).load_module()

EXIT_INPUT, EXIT_ENVIRONMENT, EXIT_BUG, EXIT_INTERRUPTED = 2, 3, 70, 130

# A machine on which nothing queues up long, and a network as in workloads/*.yaml.
STAR = {"kind": "star", "hosts": 4, "link_rate": "400 Gb/s", "link_delay": "500 ns"}
FAT_TREE = {"kind": "fat_tree", "k": 4, "link_rate": "400 Gb/s", "link_delay": "500 ns"}
NETWORK = {
    "mtu": "4096 B",
    "header": "62 B",
    "wire_overhead": "20 B",
    "ack": "66 B",
    "switch_latency": "0 ns",
    "window": "256 KiB",
}


@functools.cache
def scratch_of_mpirun():
    """The folder for temporary files of this test's runs of mpirun, until the test ends. With the default one a run that ends
    removes what the run of another test has just made."""
    folder = tempfile.TemporaryDirectory(prefix="weft-mpi-")
    atexit.register(folder.cleanup)
    return folder.name


def environment(extra=None):
    return {**open_mpi.environment(scratch_of_mpirun(), OMPI_MCA_orte_execute_quiet="1"), **(extra or {})}


def command(words, ranks=None):
    """The command line of `weft WORDS...`, under `mpirun -n ranks` unless `ranks` is None."""
    launcher = [] if ranks is None else ["mpirun", "-n", str(ranks)]
    return [*launcher, str(WEFT), *map(str, words)]


running = set()


def start(words, ranks=None, folder=None, extra=None, **streams):
    """Starts the program. It cannot outlive the test, also if that fails; see stop()."""
    scratch = tempfile.mkdtemp(prefix="weft-mpi-")
    # Runs of mpirun at the same time would share a folder for temporary files, which a run that ends removes while
    # another one begins.
    process = subprocess.Popen(
        command(words, ranks), cwd=folder, env=environment({"OMPI_MCA_orte_tmpdir_base": scratch, **(extra or {})}), text=True,
        start_new_session=True,
        **{"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams},
    )
    process.scratch = scratch
    running.add(process)
    return process


def stop(process):
    """Ends running programs. mpirun gets the time to end its ranks, which are in separate groups."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.communicate(timeout=5)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    shutil.rmtree(process.scratch, ignore_errors=True)
    running.discard(process)


@atexit.register
def stop_all():
    for process in list(running):
        stop(process)


class Done:
    """A run that has ended: exit code, standard output and error, and the command line for messages."""

    def __init__(self, line, code, out, err):
        self.line, self.code, self.out, self.err = line, code, out, err

    def __str__(self):
        return f"$ {' '.join(self.line)}\nexit code {self.code}\n{self.out}{self.err}"

    def messages(self):
        """Lines of standard error that the program wrote as its messages."""
        return [line for line in self.err.splitlines() if line.startswith("weft: ")]

    def summary(self):
        return json.loads(self.out)


def weft(*words, ranks=None, folder=None, extra=None, seconds=120, preexec_fn=None):
    """Runs the program to its end. A run that takes longer than `seconds` hangs: AssertionError."""
    process = start(words, ranks, folder, extra, preexec_fn=preexec_fn)
    line = command(words, ranks)
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        raise AssertionError(f"$ {' '.join(line)}\nstill runs after {seconds} s") from None
    finally:
        stop(process)
    return Done(line, process.returncode, out, err)


SERVED = {"run", "describe", "workload", "collective", "perf", "goodput", "list"}  # that tests run many times


class Servers:
    """Programs that run one command line after another (docs/reference/serve.md), by their number of ranks."""

    def __init__(self):
        self.idle, self.lock = {}, threading.Lock()
        atexit.register(self.end)

    def take(self, ranks):
        """One without work, or a new one."""
        with self.lock:
            idle = self.idle.setdefault(ranks, [])
            if idle:
                return idle.pop()
        return Server(lambda words: start(words, ranks, stderr=None), ranks or 1)

    def give_back(self, server, ranks):
        if server.process.poll() is None:
            with self.lock:
                self.idle[ranks].append(server)
        else:
            server.close()
            stop(server.process)

    def end(self):
        """All at once: each takes a moment."""
        servers = [server for idle in self.idle.values() for server in idle]
        for server in servers:
            server.close()
        for server in servers:
            try:
                server.process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                pass  # stop() has more to say
            stop(server.process)


servers = Servers()


def served(*words, ranks=None, folder=None, seconds=120):
    """Like weft(), for commands that are no scripts, without a start of its own: other command lines may have run in the
    same process before. So it is for tests of what is computed, and not of how the program starts, ends or uses memory."""
    line = command(words, ranks)
    server = servers.take(ranks)
    try:
        return Done(line, *server.run(words, folder or SOURCE, seconds))
    except TimeoutError:
        stop(server.process)
        raise AssertionError(f"$ {' '.join(line)}\nstill runs after {seconds} s") from None
    finally:
        servers.give_back(server, ranks)


def registered(what):
    """The names that `weft list WHAT` gives below its first title: all plug-ins of a registry. Tests that go by a list of
    their own compare it with this, so that none is left out."""
    names = set()
    for line in weft("list", what).out.splitlines()[1:]:
        if not line.startswith("  "):
            break
        names.add(line.split()[0])
    return names


def two_at_a_time(calls):
    """The results of the functions `calls`, in their order. Launches mostly wait: two take little longer than one."""
    with ThreadPoolExecutor(2) as pool:
        return [future.result() for future in [pool.submit(call) for call in calls]]


def wait_until(condition, what, process=None, seconds=60):
    """Polls until `condition()` is true; gives its value. AssertionError if it takes too long, or `process` ends."""
    deadline = time.monotonic() + seconds
    while True:
        ended = process is not None and process.poll() is not None
        if value := condition():
            return value
        if ended:
            raise AssertionError(f"it ended with exit code {process.returncode} before {what}\n{process.communicate()}")
        if time.monotonic() > deadline:
            raise AssertionError(f"after {seconds} s there is still no sign of {what}")
        time.sleep(0.02)


def processes_in(folder):
    """Process ids of the programs that run in `folder`."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            if os.path.samefile(entry / "cwd", folder) and os.path.samefile(entry / "exe", WEFT):
                found.append(int(entry.name))
        except OSError:  # it has ended, or is not ours to look at
            continue
    return sorted(found)


def experiment(**parts):
    """An experiment as text. JSON is YAML; one part per line keeps it readable."""
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(value)}" for name, value in parts.items())
    return "{\n" + lines + "\n}\n"


class ProgramTest(unittest.TestCase):
    """A test case with its own folder, `self.folder`, which is removed with it."""

    def setUp(self):
        if not WEFT.exists():
            self.fail(f"there is no program '{WEFT}'; build it, or name it in the environment variable WEFT")
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="weft-test-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def write(self, text, name="experiment.yaml"):
        """Writes a file (an experiment if `text` is a dictionary) into the folder and gives its path."""
        path = self.folder / name
        # In one step: runs at the same time may have the same experiment, and one must not find the other's half.
        handle, draft = tempfile.mkstemp(dir=self.folder)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(experiment(**text) if isinstance(text, dict) else text)
        os.chmod(draft, 0o644)
        os.replace(draft, path)
        return path

    def run_weft(self, *words, ranks=None, extra=None, seconds=120):
        """Runs in the folder; expects success."""
        if extra is None and words[0] in SERVED and "--help" not in words:
            done = served(*words, ranks=ranks, folder=self.folder, seconds=seconds)
        else:
            done = weft(*words, ranks=ranks, folder=self.folder, extra=extra, seconds=seconds)
        self.assertEqual(done.code, 0, done)
        return done

    def assert_kept(self, kept, word, *words):
        """`weft WORDS...` is refused with `word`, and the file `kept` stays as it is."""
        def state():
            return kept.stat().st_mode, kept.read_bytes() if kept.is_file() else b"", kept.is_symlink()

        before = state()
        done = weft(*words, folder=self.folder)
        self.assertEqual(done.code, EXIT_INPUT, done)
        self.assertIn(word, done.err)
        self.assertEqual(len(done.err.splitlines()), 1, done)
        self.assertEqual(state(), before, done)

    def pipe(self):
        """A pipe with a name, which nobody reads."""
        os.mkfifo(self.folder / "pipe")
        return self.folder / "pipe"

    def simulate(self, text, *words, output="out.h5", ranks=None, seconds=120, start=served):
        """`weft run` of an experiment (path, text or dictionary); gives summary and path of the results. `start=weft`: as a
        program of its own."""
        path = text if isinstance(text, pathlib.Path) else self.write(text)
        done = start("run", path, "-o", output, "--summary", "json", "--quiet", *words, ranks=ranks, folder=self.folder,
                     seconds=seconds)
        self.assertEqual(done.code, 0, done)
        self.assertEqual(parts_that_do_not_add_up(self.folder / output), [])
        return done.summary(), self.folder / output

    def assert_same_results(self, first, second, ignore=(), context=""):
        """As scripts/same_results compares two results files, but in this process: many comparisons are quick."""
        with h5py.File(first, "r") as a, h5py.File(second, "r") as b:
            found = list(same_results.differences(a, b, [*same_results.LEFT_OUT, *ignore]))
        if found:
            self.fail("\n".join([f"{context}: results differ", *found[:10]]))


def table(path, name):
    """All columns of a table of a results file; messages in the order of their ids."""
    with h5py.File(path, "r") as file:
        rows = file["messages/id"][:].argsort() if name == "messages" else slice(None)
        return {
            column: (data.asstr()[:] if data.dtype.kind == "S" else data[:])[rows]
            for column, data in file[name].items()
        }


def parts_that_do_not_add_up(path):
    """Rows whose columns part_... do not add up to their time, or are negative, as text. docs/reference/hdf5_schema.md."""
    found = []
    with h5py.File(path, "r") as file:
        for name in ("messages", "collectives", "ranks", "jobs"):
            parts = [column for column in file.get(name, ()) if column.startswith("part_")]
            if not parts:
                continue
            group = file[name]
            if name == "messages":
                whole = group["delivered"][:] - group["issued"][:]
            elif name == "collectives":
                whole = group["end"][:] - group["start"][:]
            elif name == "ranks":
                whole = numpy.full(group["rank"].shape, file.attrs["simulated_time"])
            else:
                whole = group["time"][:] * group["ranks"][:].astype(numpy.int64)
                whole[group["part_idle"][:] == -1] = -len(parts)  # too long for a sum
            columns = numpy.array([group[part][:] for part in parts])
            for row in numpy.flatnonzero(columns.sum(axis=0) != whole):
                found.append(f"/{name} row {row}: parts add up to {columns[:, row].sum()}, not {whole[row]}")
            for row in numpy.flatnonzero((columns < 0).any(axis=0) & (whole >= 0)):
                found.append(f"/{name} row {row}: a part is negative")
    return found


def attributes(path, name="/"):
    with h5py.File(path, "r") as file:
        return dict(file[name].attrs)


def picoseconds_to_send(size, rate):
    """Serialisation time of `size` bytes at `rate` bit/s, rounded up to whole picoseconds."""
    return -(-size * 8 * 10**12 // rate)


def quantities(text, name):
    """The number after a name in the lines of `weft describe`, without its thousands separators."""
    found = re.search(rf"^ *{re.escape(name)} +([0-9,]+)", text, re.MULTILINE)
    return int(found.group(1).replace(",", "")) if found else None
