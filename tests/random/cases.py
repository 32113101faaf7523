# SPDX-License-Identifier: GPL-2.0-only
"""One case: an experiment, the way to run it, and the faults of its results."""

import json
import os
import pathlib
import re
import resource
import signal
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field

import h5py

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import checks  # noqa: E402
from draw import TIME_UNITS  # noqa: E402
from fair_time import FairTime  # noqa: E402
from weft_testing import (EXIT_BUG, EXIT_ENVIRONMENT, EXIT_INPUT, EXIT_INTERRUPTED, WEFT,  # noqa: E402
                          environment, same_results)

PROCESSES = [1, 2, 3, 4, 8]
SECONDS = 60  # of fair time (fair_time.py) that a run may take; what is drawn takes about one
SECONDS_TO_STOP = 3  # of fair time from SIGTERM to the end
PATIENCE = 30  # times as long at most by the clock; a machine that gives so little time tells nothing
MEMORY = 6 << 30  # bytes of address space of a process
HARMS = {"signal": 0.05, "kill": 0.02, "full disk": 0.03}


@dataclass
class Run:
    """One start of the program. `harm`: nothing, or the disturbance; `after`: s of fair time until then."""

    processes: int = 1
    partition: str = ""
    rows_in_memory: int = 0
    verify: bool = False
    harm: str = ""
    after: float = 0.0
    room: int = 0  # bytes of a full disk

    def words(self, output):
        words = ["run", "experiment.yaml", "-o", output, "--summary", "json", "--quiet"]
        if self.partition:
            words += ["--set", f"simulation.partition={self.partition}"]
        if self.rows_in_memory:
            words += ["--set", f"output.rows_in_memory={self.rows_in_memory}"]
        return words + (["--verify"] if self.verify else [])

    def line(self, output="out.h5"):
        launcher = [] if self.processes == 1 else ["mpirun", "-n", str(self.processes)]
        return " ".join([*launcher, "weft", *self.words(output)])


@dataclass
class Fault:
    """`kind` and `what` together are its class: two cases that fail for the same reason have the same class."""

    kind: str
    what: str
    run: dict = field(default_factory=dict)
    text: str = ""

    @property
    def name(self):
        return f"{self.kind}: {self.what}"


def plan(d, partitions, absurd):
    """At least two runs with different numbers of processes, and other settings that must not change a result."""
    runs = []
    numbers = [1] + d.random.sample(PROCESSES[1:], 2 if d.chance(0.3) else 1)
    for processes in numbers:
        run = Run(processes)
        if d.chance(0.6):
            run.partition = d.pick(partitions)
        if d.chance(0.4):
            # All processes stop for each portion: few rows are slow on many.
            run.rows_in_memory = d.pick([1, 7, 100, 1000, 10**6]) if d.chance(1 / processes) else 100
        runs.append(run)
    runs[0].partition = ""
    if d.chance(0.12):
        d.pick(runs[:2]).verify = True
    for harm, probability in HARMS.items():
        if d.chance(probability):
            # Under mpirun a limit for files would hit the files that its processes share, too.
            number = d.pick([1, 1, 2, 3]) if harm == "signal" else 2 if harm == "kill" else 1
            after = d.random.random() ** 2 * (1.5 if number > 1 else 0.6)
            runs.append(Run(number, harm=harm, after=round(after, 3), room=d.between(1000, 200_000)))
    return runs


def leave_given(runs, parts):
    """No run replaces values of the experiment itself."""
    for place, key in [("simulation", "partition"), ("output", "rows_in_memory")]:
        if isinstance(parts.get(place), dict) and key in parts[place]:
            for run in runs:
                setattr(run, key, Run.__dataclass_fields__[key].default)


@dataclass
class Ended:
    code: int
    out: str
    err: str
    stopped: float = -1  # s of fair time from the signal to the end; -1: no signal was sent
    timed_out: bool = False
    starved: bool = False  # it has timed out by the clock, but has not had the time

    @property
    def signal(self):
        """The signal that has ended it, 0 if none; mpirun reports it as shells do."""
        if self.code < 0:
            return -self.code
        return self.code - 128 if self.code > 128 and self.code != EXIT_INTERRUPTED else 0


def too_late(ended):
    return ended.stopped > SECONDS_TO_STOP


def limits(run):
    def apply():
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if run.harm == "full disk":
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (run.room, run.room))
    return apply


def programs_of(process, run):
    """Process ids of the program: the one that was started, or mpirun's children."""
    if run.processes == 1:
        return [process.pid]
    path = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children")
    try:
        children = [int(word) for word in path.read_text().split()]
    except OSError:
        return []
    return [child for child in children if is_weft(child)]


def is_weft(pid):
    try:
        return os.path.samefile(f"/proc/{pid}/exe", WEFT)
    except OSError:
        return False


class Started:
    """A run that has been started, and the time that it has had since."""

    def __init__(self, run, folder, output, streams):
        self.run, self.time = run, FairTime()
        launcher = [] if run.processes == 1 else ["mpirun", "-n", str(run.processes)]
        scratch = pathlib.Path(folder) / "mpi"
        scratch.mkdir(exist_ok=True)
        self.process = subprocess.Popen(
            [*launcher, str(WEFT), *run.words(output)], cwd=folder, stdin=subprocess.DEVNULL, stdout=streams[0],
            stderr=streams[1], env=environment({"OMPI_MCA_orte_tmpdir_base": str(scratch)}), preexec_fn=limits(run),
            restore_signals=run.harm != "full disk", start_new_session=True)

    def programs(self):
        """Process ids of the program: the one that was started, or mpirun's children."""
        return programs_of(self.process, self.run)

    @property
    def ended(self):
        return self.process.poll() is not None

    def wait(self, until, most=float("inf")):
        """Waits until it has ended, has had `until` s in all, or the clock reaches `most`. True if it has ended."""
        pause = 0.002
        while not self.ended:
            self.time.look(self.programs() or [self.process.pid])
            if self.time.seconds >= until or time.monotonic() >= most:
                return False
            pause = min(1.5 * pause, 0.2, max(0.002, until - self.time.seconds))
            try:
                self.process.wait(pause)
            except subprocess.TimeoutExpired:
                pass
        return True

    def harm(self):
        """Waits for the moment, and sends the signal to one of the processes. Gives the time of that, or -1."""
        if self.wait(self.run.after):
            return -1  # it was quicker
        # mpirun has perhaps not started the program yet.
        found = self.programs()
        while (len(found) < self.run.processes or not is_weft(found[-1])) and not self.ended:
            time.sleep(0.01)
            found = self.programs()
        if self.ended:
            return -1
        self.time.look(found)
        if not send(found[len(found) // 2], signal.SIGTERM if self.run.harm == "signal" else signal.SIGKILL):
            return -1
        return self.time.seconds

    def end(self):
        """SIGTERM to each process, later SIGKILL. Gives the time that it took."""
        began = self.time.seconds
        for pid in self.programs() or [self.process.pid]:
            send(pid, signal.SIGTERM)
        if not self.wait(began + 4 * SECONDS_TO_STOP):
            for pid in [*self.programs(), self.process.pid]:
                send(pid, signal.SIGKILL)
            self.process.wait()
        return self.time.seconds - began


def execute(run, folder, output, seconds=SECONDS):
    """Starts it, harms it, and waits for its end, or ends it."""
    (pathlib.Path(folder) / output).unlink(missing_ok=True)
    streams = [open(pathlib.Path(folder) / name, "w+b") for name in ("stdout", "stderr")]
    started = Started(run, folder, output, streams)
    stopped, timed_out = -1, False
    most = time.monotonic() + PATIENCE * seconds
    try:
        harmed = started.harm() if run.harm in ("signal", "kill") else -1
        timed_out = not started.wait(seconds, most)
        if timed_out:
            starved = started.time.seconds < seconds
            stopped = started.end()
        elif harmed >= 0:
            stopped = started.time.seconds - harmed
    finally:
        if not started.ended:
            started.end()
    texts = []
    for stream in streams:
        stream.seek(0)
        texts.append(stream.read(1 << 20).decode(errors="replace"))
        stream.close()
    return Ended(started.process.returncode, *texts, stopped, timed_out, timed_out and starved)


def send(pid, number):
    """Whether there was such a process."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


def plain(text):
    """A message without its numbers and names of files: the same for all cases with the same failure."""
    text = re.sub(r"(/[^\s:]*/)?experiment\.yaml(:\d+)?", "FILE", text)
    text = re.sub(r"'[^']*'|`[^`]*`", "'..'", text)
    text = re.sub(r"\b(host|switch|rank|lane|port|link)s?\s*[0-9:]+", r"\1 N", text)
    text = re.sub(r"-?\b[0-9][0-9.e+]*\b", "N", text)
    return re.sub(r"\s+", " ", text).strip()[:110]


def message_of(ended):
    """The program's message; for a broken contract only its name."""
    lines = [line[6:] for line in ended.err.splitlines() if line.startswith("weft: ") and "warning" not in line]
    text = lines[0] if lines else next((line for line in ended.err.splitlines() if line.strip()), "no message")
    return plain(text)


# Ends of runs that would have no other one (docs/concepts/reliability.md).
NO_FURTHER = ("the run gets no further", "simulated time ends after 106 days")


def goes_no_further(ended):
    return ended.code == EXIT_ENVIRONMENT and any(text in ended.err for text in NO_FURTHER)


def standstill(message):
    """The simulated time in ps at which a run reports that it makes no progress, or 0."""
    found = re.search(r"to ([0-9.]+) (\w+) of simulated time .* the run gets no further", message)
    return float(found[1]) * TIME_UNITS[found[2]] if found else 0


class Judge:
    """Runs a case and collects its faults."""

    def __init__(self, experiment_absurd=False, seconds=SECONDS, say=lambda text: None):
        self.absurd, self.seconds, self.say = experiment_absurd, seconds, say
        self.faults, self.notes, self.runs = [], [], 0

    def fault(self, kind, what, run, ended, text=""):
        tail = text or (ended.err[-4000:] if ended else "")
        self.faults.append(Fault(kind, what, asdict(run), tail))

    def judge(self, folder, runs):
        folder = pathlib.Path(folder)
        reference = None
        for number, run in enumerate(runs):
            output = f"{number}.h5"
            ended = execute(run, folder, output, self.seconds)
            self.runs += 1
            path = folder / output
            if run.harm:
                self.harmed(run, ended, path, reference)
                continue
            if not self.ended_well(run, ended, path, reference):
                continue
            if reference is None:
                reference = (run, ended, path)
                if ended.code == 0:
                    self.check(run, ended, path)
            else:
                self.compare(reference, run, ended, path)
        return self.faults

    def ended_well(self, run, ended, path, reference=None):
        """Exit code 0 or 2, or 3 as promised, in time."""
        if ended.timed_out:
            if too_late(ended):
                self.fault("deaf to SIGTERM", "after the time limit", run, ended, f"{ended.stopped:.1f} s\n{ended.err[-2000:]}")
            self.hang(run, ended, path, reference)
            return False
        if ended.signal:
            self.fault("signal", f"{signal_name(ended.signal)}{'' if run.processes == 1 else ' under MPI'}", run, ended)
        elif goes_no_further(ended):
            return True
        elif ended.code == EXIT_BUG or ended.code == EXIT_ENVIRONMENT:
            if ended.code == EXIT_ENVIRONMENT and self.absurd and "out of memory" in ended.err:
                self.notes.append("out of memory")
                return False
            self.fault(f"exit {ended.code}", message_of(ended), run, ended)
        elif ended.code not in (0, EXIT_INPUT):
            self.fault(f"exit {ended.code}", message_of(ended), run, ended)
        elif ended.code == EXIT_INPUT and not any(line.startswith("weft: ") for line in ended.err.splitlines()):
            self.fault("exit 2", "without a message", run, ended)
        elif ended.code == EXIT_INPUT and len(re.findall(r"weft: (?!warning)", ended.err)) > 1:
            self.fault("exit 2", "several messages", run, ended)
        elif "runtime error" in ended.err or "terminate called" in ended.err:
            self.fault("output", message_of(ended), run, ended)
        return ended.code in (0, EXIT_INPUT)

    def hang(self, run, ended, path, reference=None):
        """The run took too long. It is slow if it approaches the end of another run, and endless otherwise."""
        if ended.starved:
            self.notes.append("the machine gave it too little time")
            return
        try:
            with h5py.File(path, "r") as file:
                time_reached, packets = int(file.attrs["simulated_time"]), int(file["links/packets"][:].sum())
        except (OSError, KeyError):
            time_reached, packets = -1, -1
        # Open MPI's daemon lost a process that a signal met before it had joined: none of weft has run.
        if run.processes > 1 and time_reached < 0 and "PMIX ERROR: UNREACHABLE" in ended.err:
            self.notes.append("a signal met Open MPI before its processes had joined")
            return
        if self.absurd:
            self.notes.append("took too long with values that make no sense")
            return
        if reference and reference[1].code == 0 and run.processes > 1 and 0 < run.rows_in_memory < 100:
            self.notes.append("slow with few rows in memory")  # the program warns of it
            return
        if reference and reference[1].code == 0 and 0 < time_reached:
            with h5py.File(reference[2], "r") as file:
                if time_reached < int(file.attrs["simulated_time"]):
                    self.notes.append("slow on several processes")
                    return
        if reference and 0 < time_reached < standstill(reference[1].err):
            self.notes.append("slow on several processes")
            return
        self.fault("hang", "alone" if run.processes == 1 else "under MPI", run, ended,
                   f"simulated {time_reached} ps, {packets} packets sent\n{ended.err[-2000:]}")

    def check(self, run, ended, path):
        try:
            results = checks.Results(path)
        except Exception as error:  # noqa: BLE001: whatever a damaged file makes h5py do
            self.fault("file", f"cannot be read: {type(error).__name__}", run, ended, str(error))
            return
        for name, text in checks.violations(results):
            self.fault("law", f"{name}: {plain(re.sub(r' in [0-9]+ of.*', '', text))}", run, ended, text)
        try:
            summary = json.loads(ended.out)
        except ValueError:
            self.fault("output", "the summary is no JSON", run, ended, ended.out[:2000])
            return
        if int(summary["fingerprint"], 16) != int(results.fingerprint, 16):
            self.fault("output", "the summary has another fingerprint than the file", run, ended)

    def undisturbed(self, path, reference):
        """Whether this is the file of a run that nothing has disturbed. `complete` does not say it: simulation.until
        leaves it at 0."""
        if reference is None or reference[1].code != 0:
            return False
        with h5py.File(reference[2], "r") as a, h5py.File(path, "r") as b:
            return not list(same_results.differences(a, b, same_results.LEFT_OUT))

    def compare(self, reference, run, ended, path):
        first, before, first_path = reference
        if ended.code != before.code:
            self.fault("differs", f"exit codes {before.code} and {ended.code}", run, ended,
                       f"{first.line()}\n{before.err}\n{run.line()}\n{ended.err}")
            return
        if ended.code != 0:
            if message_of(ended) != message_of(before):
                self.fault("differs", "messages", run, ended, f"{before.err}\n{ended.err}")
            return
        with h5py.File(first_path, "r") as a, h5py.File(path, "r") as b:
            found = list(same_results.differences(a, b, same_results.LEFT_OUT))
        tables = sorted({re.match(r"/?[^/:@]*", line.lstrip("/"))[0] or "/" for line in found})
        if found:
            self.fault("differs", ", ".join(tables), run, ended, "\n".join([f"{first.line()}", f"{run.line()}", *found[:20]]))

    def harmed(self, run, ended, path, reference):
        """After any disturbance it ends soon, with the matching code, and leaves no file that only looks finished."""
        if ended.timed_out:
            self.hang(run, ended, path, reference)
            return
        if run.harm == "signal" and too_late(ended):
            self.fault("deaf to SIGTERM", "at some moment", run, ended, f"{ended.stopped:.1f} s after the signal")
        if ended.stopped < 0 and run.harm != "full disk":
            self.notes.append("ended before it was harmed")
        early = "before MPI" if ended.signal == signal.SIGTERM and not path.exists() else ""
        allowed = {0, EXIT_INPUT}
        if ended.stopped >= 0:
            allowed |= {EXIT_INTERRUPTED} if run.harm == "signal" else {-signal.SIGKILL, 128 + signal.SIGKILL}
        if run.harm == "full disk" or goes_no_further(ended):
            allowed.add(EXIT_ENVIRONMENT)
        if reference is None:
            allowed |= {EXIT_BUG, EXIT_ENVIRONMENT}  # it fails without harm as well
        if ended.code not in allowed and not early:
            self.fault(f"after {run.harm}", f"exit {ended.code}: {message_of(ended)}", run, ended)
        if early:
            self.notes.append("SIGTERM before the program could catch it")
        if path.exists():
            self.left(run, ended, path, reference)

    def left(self, run, ended, path, reference):
        try:
            with h5py.File(path, "r") as file:
                complete = bool(file.attrs["complete"])
            results = checks.Results(path)
        except Exception as error:  # noqa: BLE001
            self.fault(f"after {run.harm}", f"the file cannot be read: {type(error).__name__}", run, ended, str(error))
            return
        lost = run.harm == "kill" and ended.code not in (0, EXIT_INPUT)
        if (lost or complete and ended.code == EXIT_INTERRUPTED) and self.undisturbed(path, reference):
            self.notes.append(f"{'SIGKILL' if lost else 'SIGTERM'} after the file was finished")
        elif complete and ended.code == EXIT_INTERRUPTED:
            self.fault(f"after {run.harm}", "interrupted, but the file is complete", run, ended)
        elif ended.code not in (0, EXIT_INTERRUPTED):
            self.fault(f"after {run.harm}", f"a file is there though the exit code is {ended.code}", run, ended)
        for name, text in checks.violations(results):
            self.fault(f"law after {run.harm}", f"{name}: {plain(re.sub(r' in [0-9]+ of.*', '', text))}", run, ended, text)


def signal_name(number):
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
