# SPDX-License-Identifier: GPL-2.0-only
"""Traces of the ranks of one PyTorch job: Kineto's (torch.profiler) and execution traces."""

import pathlib
import re

from frameworks.devices import Device
from frameworks.gpu_import import add_gpu_arguments, imported_job
from frameworks.job import MissingRanks
from frameworks.json_stream import DAMAGES, beginning, open_text
from frameworks.timeline import Notes
from importing.errors import InputError, StudyError, expect_input
from support.console import whole
from support.progress import Progress

from . import execution, kineto

SUMMARY = "traces of PyTorch's profiler (Kineto) and execution traces, a file for each rank"
NAMES = ("*.json", "*.json.gz", "*.json.xz", "*.pt.trace", "*.json.gzip")
START = 1 << 16
FEW = 8  # names of files in a message
# Traces that are not read: how to recognise them, what they are, and what would be right.
OF_XLA = (kineto.is_of_xla, "XLA's profiler has written this trace for viewers, without what communicates; expected traces of "
                            "torch.profiler. `weft import xplane` reads the *.xplane.pb beside it")
OF_OTHER_PYTORCH = (
    (kineto.is_without_kineto, "a PyTorch without Kineto has written this trace, without kernels and without the sizes of collectives; "
                               "expected one of a PyTorch for which torch.profiler.kineto_available() is true"),
    (execution.is_too_old, "an execution trace of schema 1.0.1, whose process groups have no names; expected one whose nodes have "
                           "'ctrl_deps' (schema 1.0.2-chakra.0.0.4 and later), or traces of torch.profiler"),
)
NUMBER = re.compile(r"(?:rank|host|worker|gpu|et|kineto|trace)[-_.]?(\d+)", re.IGNORECASE)


def add_arguments(parser):
    parser.add_argument("input", metavar="DIR", help="a folder with the traces of all ranks, or one file")
    add_gpu_arguments(parser)
    parser.add_argument("--device", metavar="NAME", help="of execution traces, which have no times: device whose times "
                        "operators take, such as h100 (workloads/devices)")
    parser.add_argument("--step", metavar="N", type=whole, help="of traces of torch.profiler with several steps: only "
                        "what the host launched during ProfilerStep#N")


def kind_of_file(path):
    start = beginning(path, START)
    return "kineto" if kineto.looks_like(start) else "execution" if execution.looks_like(start) else None


def candidates(path):
    path = pathlib.Path(path)
    return sorted({one for name in NAMES for one in path.glob(name)}) if path.is_dir() else [path]


def files_of(path):
    """{kind: files} of a folder or a file."""
    expect_input(path)
    path = pathlib.Path(path)
    found = {"kineto": [], "execution": []}
    for one in candidates(path):
        kind = kind_of_file(one)
        if kind:
            found[kind].append(one)
    return found


def check_others(path, known, notes):
    """Files of a folder that are no trace: an empty or damaged one would be a rank that is missing."""
    others = []
    for one in sorted({one for name in NAMES for one in path.glob(name)} - set(known)) if path.is_dir() else []:
        try:
            with open_text(one) as file:
                start = file.read(START)
        except DAMAGES as error:
            raise InputError(one, None, f"it is damaged: {error}") from None
        if not start.strip():
            raise InputError(one, None, "it is empty; expected a trace of a rank")
        notes.add("files that are no trace of torch.profiler and no execution trace are left out", str(one))
        others.append(one.name)
    return others


def unreadable(path, known):
    """(file, what it is) of the traces of a file or folder that one of `known` recognises."""
    for one in candidates(path):
        start = beginning(one, START)
        yield from ((one, text) for recognises, text in known if recognises(start))


def matches(path):
    """Also of traces of PyTorch that are not read: read() says why."""
    try:
        return any(files_of(path).values()) or any(unreadable(path, OF_OTHER_PYTORCH))
    except InputError:
        return False


def rank_of_name(path):
    """rank0.json, host_1.json.xz, trace.3.pt.trace.json: the number after such a word, otherwise the last number."""
    stem = re.sub(r"(\.pt)?\.trace\.json.*|\.json.*", "", pathlib.Path(path).name)
    found = NUMBER.findall(stem) or re.findall(r"\d+", stem)
    if not found or len(found[-1]) > 9:
        raise InputError(path, None, "neither its distributedInfo nor its name says which rank it is of; rename it to "
                         "rank0.json, rank1.json, ...")
    return int(found[-1])


def read(options):
    files, notes = files_of(options.input), Notes()
    if not any(files.values()):
        for one, text in unreadable(options.input, (*OF_OTHER_PYTORCH, OF_XLA)):
            raise InputError(one, None, text)
        raise InputError(options.input, None, "there is no trace of torch.profiler ('traceEvents') and no execution "
                                              "trace ('schema' and 'nodes') here")
    others = check_others(pathlib.Path(options.input), [*files["execution"], *files["kineto"]], notes)
    if options.step is not None and files["execution"]:
        raise InputError(files["execution"][0], None, "an execution trace, which has no times; --step selects a step of "
                                                      "traces of torch.profiler alone")
    device = Device(options.device) if options.device else None
    progress = Progress("weft import", not options.quiet)
    every = files["execution"] + files["kineto"]
    progress.begin(f"reading {len(every)} traces", sum(path.stat().st_size for path in every))
    traces = [execution.Execution(path, notes, device, progress).read() for path in files["execution"]]
    for trace in traces:
        trace.rank = rank_of_name(trace.path)
    if not files["kineto"]:
        progress.end()
        return imported_job(options, traces, notes, "PyTorch's execution traces")
    timelines = []
    for path in files["kineto"]:
        timeline = kineto.Kineto(path, notes, options.step, progress).read()
        if timeline.rank is None:
            timeline.rank = 0 if len(files["kineto"]) == 1 and timeline.world in (None, 1) else rank_of_name(path)
        timelines.append(timeline)
    progress.end()
    check_worlds(timelines)
    for trace in traces:
        join(trace, timelines)
    try:
        return imported_job(options, timelines, notes, "traces of PyTorch's profiler")
    except MissingRanks as error:
        if not others:
            raise
        listed = ", ".join(others[:FEW]) + (", ..." if len(others) > FEW else "")
        raise MissingRanks(f"{error} (neither a trace of torch.profiler nor an execution trace: {listed})") from None


def check_worlds(timelines):
    """All traces are of one job."""
    known = [timeline for timeline in timelines if timeline.world is not None]
    other = next((timeline for timeline in known if timeline.world != known[0].world), None)
    if other:
        raise InputError(other.path, None, f"it is of a job of {other.world} ranks, and {known[0].path} of one of "
                                           f"{known[0].world}; expected the traces of one job")


def join(trace, timelines):
    """Communications of a rank from its execution trace, for a Kineto trace without them."""
    found = [timeline for timeline in timelines if timeline.rank == trace.rank]
    if not found:
        raise StudyError(f"{trace.path}: an execution trace of rank {trace.rank}, of which there is no trace of the "
                         f"profiler")
    for name, ranks in trace.groups.items():
        found[0].groups.setdefault(name, ranks)
    found[0].database.executemany("INSERT OR IGNORE INTO recorded VALUES (?, ?)",
                                  trace.all("SELECT record, call FROM recorded"))
    found[0].world = found[0].world or trace.world
    trace.close()
