# SPDX-License-Identifier: GPL-2.0-only
"""Traces of torch.profiler: Chrome's events with Kineto's additions (libkineto/src/output_json.cpp and
CuptiActivity.cpp of github.com/pytorch/kineto; torch/csrc/profiler/util.cpp, saveNcclMeta, of PyTorch)."""

import decimal
import json
import re

from frameworks.communications import (MAX_RANKS, PARAMETERS_NODE, Communication, bytes_of, communication, is_nccl,
                                       kind_of, kind_of_kernel, numbers, unnamed_group)
from frameworks.json_stream import JsonStream, shown
from frameworks.timeline import FARTHEST, Timeline
from importing.errors import InputError

# Of libkineto/src/ActivityType.cpp; accelerators other than NVIDIA's and AMD's have names of their own, as xpu_runtime.
ACCELERATOR = {"kernel", "gpu_memcpy", "gpu_memset", "mlu_memcpy", "mlu_memset"}
RUNTIME = re.compile(r"(\w+_)?(runtime|driver)")
SYNCS = ("cudaDeviceSynchronize", "cudaStreamSynchronize", "cudaEventSynchronize", "hipDeviceSynchronize",
         "hipStreamSynchronize", "hipEventSynchronize")
# Microseconds, also of a clock that began in 1970. The digits of a Decimal suffice for them in picoseconds.
LATEST = 1 << 63
STEP = re.compile(r"ProfilerStep#(\d{1,18})")  # torch/profiler/profiler.py, profile.step
OF_XLA = 200  # characters before the events of a trace of XLA
CUT = re.compile(r"\[((?:\d{1,9}, )*\d{1,9}), \.\.\., (\d{1,9})\]")
OF_RUNTIME, OF_COPY, OF_ASYNC_COPY = -2, -3, -4  # instead of a stream


def is_of_xla(start):
    """XLA's profiler writes such files, too, for viewers (trace_events_to_json.cc), and *.xplane.pb beside them."""
    return '"highres-ticks"' in start[:OF_XLA]


def is_without_kineto(start):
    """Of a PyTorch that was built without Kineto, as Debian's: a list of events of `CPU functions`, without categories."""
    return '"CPU functions"' in start and '"cat"' not in start


def looks_like(start):
    """Recognises a file by its first characters."""
    return not is_of_xla(start) and not is_without_kineto(start) and ('"traceEvents"' in start or '"schemaVersion"' in start or
                                     ('"ph"' in start and '"ts"' in start))


def ranks_of_cut(text, size):
    """Of a list that has been cut short, [0, 8, ..., 504]: the first ones and the last one (format_list in saveNcclMeta), if
    all of them are at one distance."""
    found = CUT.fullmatch(text) if isinstance(text, str) else None
    if not found or size > MAX_RANKS:
        return None
    first, last = [int(one) for one in found[1].split(",")], int(found[2])
    stride = first[1] - first[0] if len(first) > 1 else 0
    ranks = [first[0] + stride * at for at in range(size)]
    return ranks if stride > 0 and ranks[:len(first)] == first and ranks[-1] == last else None


class Kineto:
    def __init__(self, path, notes, step=None, progress=None):
        self.timeline, self.notes = Timeline(path), notes
        self.stream = JsonStream(path, progress)
        self.step, self.steps = step, {}  # the one to read, or None for all; of the trace: {number: (begin, end)}
        self.sync_events = False
        self.counted = {}
        self.began = False
        self.unnumbered = False  # calls of the runtime have no "correlation", but its number as "External id"
        # Launches that name a kernel of RCCL, as ROCm's do.
        self.timeline.database.execute("CREATE TABLE of_rccl (corr INTEGER, begin INTEGER)")

    def error(self, line, what):
        return InputError(self.timeline.path, line, what)

    def read(self):
        for key, value, line in self.stream.members({"traceEvents"}):
            if key in ("", "traceEvents"):
                self.event(value, line)
            elif key == "distributedInfo" and isinstance(value, dict):
                self.job(value, line)
        self.timeline.has_times = True
        self.find_launches()
        if self.step is not None:
            self.select_step()
        self.timeline.finish()
        # Calls of the runtime show when the host waited, cuda_sync also for what.
        self.timeline.database.execute(f"DELETE FROM syncs WHERE stream = {OF_RUNTIME}" if self.sync_events else
                                       f"UPDATE syncs SET stream = NULL WHERE stream = {OF_RUNTIME}")
        self.find_waits_for_copies()
        return self.timeline

    def find_waits_for_copies(self):
        """The host waits for copies without Async in their name, such as hipMemcpyWithStream, with which PyTorch reads a number
        on AMD's accelerators, and for those to pageable memory (API synchronization behavior, CUDA Runtime API): for the copy
        alone. It has waited if the copy ended before the call returned."""
        run = self.timeline.database.execute
        run("CREATE TEMP TABLE copies (corr INTEGER PRIMARY KEY, stream INTEGER, end INTEGER, pageable INTEGER)")
        run("INSERT OR IGNORE INTO copies SELECT corr, stream, end, names.name LIKE '%-> pageable%' FROM ops JOIN names ON names.id = "
            "ops.name WHERE corr IS NOT NULL AND (names.name LIKE '%memcpy%' OR names.name LIKE 'copy%')")
        run(f"DELETE FROM syncs WHERE stream IN ({OF_COPY}, {OF_ASYNC_COPY}) AND NOT EXISTS (SELECT 1 FROM copies WHERE corr = "
            f"syncs.record - 1 AND copies.end <= syncs.end AND (pageable OR syncs.stream = {OF_COPY}))")
        run("UPDATE syncs SET producer = (SELECT stream FROM copies WHERE corr = syncs.record - 1), stream = NULL "
            f"WHERE stream IN ({OF_COPY}, {OF_ASYNC_COPY})")
        run("DROP TABLE copies")

    def find_launches(self):
        """Kernels of RCCL without the number of their launch belong to the launches that name such a kernel, in their order."""
        timeline = self.timeline
        timeline.put_all()
        if self.unnumbered:  # as in older traces of ROCm: so it is with the kernels that they launch
            timeline.database.execute("UPDATE ops SET corr = external, external = NULL WHERE corr IS NULL AND external IN "
                                      "(SELECT corr FROM launches)")
        names = json.dumps([number for name, number in timeline.names.items() if is_nccl(name)])
        run = timeline.database.execute
        run("CREATE TEMP TABLE loose (place INTEGER PRIMARY KEY, op INTEGER UNIQUE)")
        run("INSERT INTO loose (op) SELECT id FROM ops WHERE corr IS NULL AND name IN (SELECT value FROM json_each(?)) "
            "ORDER BY start, id", (names,))
        run("CREATE TEMP TABLE unused (place INTEGER PRIMARY KEY, corr INTEGER)")
        run("INSERT INTO unused (corr) SELECT corr FROM of_rccl WHERE corr NOT IN (SELECT corr FROM ops WHERE corr IS NOT NULL) "
            "ORDER BY begin")
        kernels, launches = (timeline.one(f"SELECT COUNT(*) FROM {table}") for table in ("loose", "unused"))
        if kernels and kernels == launches:
            run("UPDATE ops SET corr = (SELECT corr FROM unused JOIN loose USING (place) WHERE op = ops.id) "
                "WHERE id IN (SELECT op FROM loose)")
            self.notes.add("kernels of RCCL without the number of their launch are taken to be in the order of launches",
                           timeline.path)
        for table in ("loose", "unused", "of_rccl"):
            run(f"DROP TABLE {table}")

    def select_step(self):
        """Keeps what the host launched, called or ran during the step. The accelerator runs it later, so that times of
        kernels do not say which step they are of."""
        if self.step not in self.steps:
            known = ", ".join(map(str, sorted(self.steps))) or "none"
            raise self.error(None, f"there is no ProfilerStep#{self.step}; steps of the trace: {known}")
        self.timeline.keep(*self.steps[self.step])

    def job(self, info, line):
        timeline = self.timeline
        for key, name in (("rank", "rank"), ("world_size", "world")):
            try:
                if info.get(key) is not None:
                    setattr(timeline, name, int(info[key]))
            except (TypeError, ValueError):
                raise self.error(line, f"distributedInfo: '{key}' is {shown(info[key])}; expected a whole "
                                 "number") from None
        if timeline.world is not None and not 1 <= timeline.world <= MAX_RANKS:
            raise self.error(line, f"distributedInfo: 'world_size' is {timeline.world}; expected 1 to {MAX_RANKS}")
        groups = info.get("pg_config") or []
        if not isinstance(groups, list) or not all(isinstance(group, dict) for group in groups):
            raise self.error(line, f"distributedInfo: 'pg_config' is {shown(groups)[:40]}; expected a list of process groups")
        for group in groups:
            size = group.get("pg_size")
            # Traces on demand have them as saveNcclMeta writes them (addOnDemandDistMetadata of output_json.cpp).
            ranks = self.ranks(group.get("ranks"), line)
            if ranks is None and type(size) is int:
                ranks = ranks_of_cut(group["ranks"], size)
            if ranks or (ranks == [] and size in (None, timeline.world)):
                timeline.groups[str(group.get("pg_name", "0"))] = ranks

    def ranks(self, value, line):
        try:
            return numbers(value)
        except ValueError as wrong:
            raise self.error(line, f"ranks of a process group: {wrong}") from None

    def event(self, event, line):
        if not isinstance(event, dict):
            raise self.error(line, "an event that is no map")
        kind = str(event.get("cat", "")).lower()
        if event.get("ph") != "X":
            if kind in ACCELERATOR and event.get("ph") in ("B", "E"):
                raise self.error(line, f"'ph' is '{event['ph']}', of an event that begins or ends; expected 'X', with 'ts' and 'dur'")
            return
        if kind in ACCELERATOR:
            self.operation(event, line, kind)
        elif RUNTIME.fullmatch(kind):
            self.call_of_runtime(event, line)
        elif kind == "cuda_sync":
            self.sync(event, line)
        elif kind == "cpu_op" or event.get("name") == PARAMETERS_NODE:
            self.host(event, line)
        else:
            found = STEP.fullmatch(str(event.get("name", ""))) if kind == "user_annotation" else None
            if found:
                self.steps[int(found[1])] = self.times(event, line)
            self.counted[kind] = self.counted.get(kind, 0) + 1

    def picoseconds(self, event, key, line):
        value = event.get(key, 0)
        if isinstance(value, str):
            try:
                value = decimal.Decimal(value)
            except decimal.InvalidOperation:
                value = None
        known = isinstance(value, decimal.Decimal) and value.is_finite() or type(value) is int
        if not known or not abs(value) < LATEST:
            raise self.error(line, f"'{key}' is {shown(event.get(key))}; expected microseconds")
        return int(value * 1000000)

    def times(self, event, line):
        """From the first event: the difference of whole numbers is exact."""
        if event.get("ts") is None:
            raise self.error(line, "an event without 'ts'; expected microseconds")
        start, took = self.picoseconds(event, "ts", line), self.picoseconds(event, "dur", line)
        if not self.began:
            self.began, self.timeline.origin = True, start
        start -= self.timeline.origin
        if abs(start) >= FARTHEST:
            raise self.error(line, f"'ts' is {shown(event.get('ts'))}; expected microseconds, less than 53 days from "
                             f"the {shown(decimal.Decimal(self.timeline.origin) / 1000000)} of the first event")
        if not 0 <= took < FARTHEST:
            raise self.error(line, f"'dur' is {shown(event['dur'])}; expected 0 or more microseconds, less than 53 "
                             "days")
        return start, start + took

    def arguments(self, event, line):
        found = event.get("args") or {}
        if not isinstance(found, dict):
            raise self.error(line, f"'args' is {shown(found)[:40]}; expected a map")
        return found

    def number(self, arguments, key, line):
        value = arguments.get(key)
        if value is None:
            return None
        try:
            found = int(value)
            if abs(found) < 1 << 63 and (isinstance(value, str) or found == value):
                return found
            raise ValueError
        except (TypeError, ValueError, OverflowError):
            raise self.error(line, f"'{key}' is {shown(value)}; expected a whole number") from None

    def elements(self, arguments, key, line):
        found = self.number(arguments, key, line)
        if found is not None and found < 0:
            raise self.error(line, f"'{key}' is {found}; expected 0 or more")
        return found

    def operation(self, event, line, kind):
        start, end = self.times(event, line)
        arguments = self.arguments(event, line)
        name = str(event.get("name", kind))
        stream = self.timeline.stream(*self.stream_of(event, arguments, line))
        call = None
        if kind == "kernel" and is_nccl(name):
            found = self.call(arguments, line, kind_of_kernel(name)) if "Collective name" in arguments else None
            call = found.text() if found else None
        correlation, external = self.link(arguments, line)
        self.timeline.add("ops", start, end, stream, correlation, self.timeline.name(name), external, call, line)

    def stream_of(self, event, arguments, line):
        """(device, stream): numbers, or texts, as Kineto has them of some accelerators."""
        found = arguments.get("device", event.get("pid")), arguments.get("stream", event.get("tid"))
        for key, value in zip(("device", "stream"), found):
            if isinstance(value, (dict, list)):
                raise self.error(line, f"'{key}' is {shown(value)[:40]}; expected a number")
        return found

    def link(self, arguments, line):
        """(correlation, number of the operator) of an event of the accelerator or the runtime. Where Kineto knows no operator,
        "External id" is the correlation once more (handleActivity of output_json.cpp). ROCm's correlation is 0 where it is
        not known, as of RCCL's kernels (github.com/ROCm/roctracer/issues/100)."""
        correlation, external = (self.number(arguments, key, line) for key in ("correlation", "External id"))
        return correlation or None, None if external == correlation else external

    def call_of_runtime(self, event, line):
        begin, end = self.times(event, line)
        arguments = self.arguments(event, line)
        name = str(event.get("name", ""))
        correlation, external = self.link(arguments, line)
        if "correlation" not in arguments and external:
            correlation, self.unnumbered = external, True
        if correlation is not None:
            self.timeline.add("launches", correlation, begin, self.number(event, "tid", line))
            if is_nccl(str(arguments.get("kernel", arguments.get("Kernel", "")))):
                self.timeline.add("of_rccl", correlation, begin)
        if name in SYNCS and end > begin:
            self.timeline.add("syncs", begin, end, OF_RUNTIME, None, None)
        elif "emcpy" in name and correlation is not None:
            self.timeline.add("syncs", begin, end, OF_ASYNC_COPY if "Async" in name else OF_COPY, None, correlation + 1)

    def sync(self, event, line):
        """Events of enable_cuda_sync_events."""
        arguments = self.arguments(event, line)
        if arguments.get("cuda_sync_kind", event.get("name")) != "Stream Wait Event":
            return self.sync_of_host(event, arguments, line)
        producer = self.number(arguments, "wait_on_stream", line)
        record = self.number(arguments, "wait_on_cuda_event_record_corr_id", line)
        correlation = self.number(arguments, "correlation", line)
        if producer is None or record is None or correlation is None or producer < 0 or record < 0:
            self.notes.add("waits of a stream for an event that was recorded before the trace are left out",
                           f"{self.timeline.path}:{line}")
            return None
        device, stream = self.stream_of(event, arguments, line)
        self.timeline.add("waits", correlation, self.timeline.stream(device, stream), self.timeline.stream(device, producer),
                          record)
        return None

    def sync_of_host(self, event, arguments, line):
        begin, end = self.times(event, line)
        stream, producer, record = (self.number(arguments, key, line) for key in (
            "stream", "wait_on_stream", "wait_on_cuda_event_record_corr_id"))
        device, _ = self.stream_of(event, arguments, line)
        self.sync_events = True
        if end > begin:
            known = producer is not None and record is not None and producer >= 0 and record >= 0
            self.timeline.add("syncs", begin, end,
                              self.timeline.stream(device, stream) if (-1 if stream is None else stream) >= 0 else None,
                              self.timeline.stream(device, producer) if known else None, record if known else None)

    def host(self, event, line):
        begin, end = self.times(event, line)
        arguments = self.arguments(event, line)
        name, thread = str(event.get("name", "")), self.number(event, "tid", line)
        call = None
        if name == PARAMETERS_NODE:
            found = self.call(arguments, line) if "Collective name" in arguments else None
            call = found.text() if found else None
            if found or "Collective name" not in arguments:
                self.timeline.add("calls", self.number(arguments, "External id", line),
                                  self.number(arguments, "Record function id", line), begin, end, thread,
                                  call or Communication("unknown").text())
        self.timeline.add("hosts", begin, end, thread, self.timeline.name(name), call, line)

    def call(self, arguments, line, of_kernel=None):
        """The communication, from the members that saveNcclMeta writes."""
        name, dtype = arguments["Collective name"], arguments.get("dtype", "")
        if kind_of(name) is None:
            return None
        into, out = (self.elements(arguments, key, line) for key in ("In msg nelems", "Out msg nelems"))
        size = self.number(arguments, "Group size", line) or 1
        group = self.group(arguments, str(arguments.get("Process Group Name") or ""), size, line)
        if (into or out) and bytes_of(1, dtype) is None:
            raise self.error(line, f"'dtype' is '{dtype}', whose size is not known")
        root = self.number(arguments, "Rank", line) or 0
        kind = kind_of(name)
        try:
            found = communication(name, bytes_of(into, dtype), bytes_of(out, dtype), size, group,
                                  root if kind in ("broadcast", "reduce", "gather", "scatter", "send", "recv") else 0,
                                  arguments.get("In split size") or (), arguments.get("Out split size") or ())
        except ValueError as wrong:
            raise self.error(line, f"{name}: {wrong}") from None
        if found.root >= size:  # a rank of the job instead of a position
            ranks = self.timeline.groups.get(group) or []
            found.root = ranks.index(found.root) if found.root in ranks else 0
        if kind in ("send", "recv"):
            found.peer = self.number(arguments, "Dst Rank" if kind == "send" else "Src Rank", line)
            if found.peer is None and (of_kernel or "Rank" not in arguments):
                found.peer_position = None
        return found

    def group(self, arguments, name, size, line):
        """The name of the process group of a call. Before version 2.3 PyTorch writes none (saveNcclMeta): those of the same
        ranks are then one group, and those of which only the size is known are one, too."""
        listed = arguments.get("Process Group Ranks")
        ranks = self.ranks(listed, line) or ranks_of_cut(listed, size)
        start, stride = (self.number(arguments, key, line) for key in ("Global rank start", "Global rank stride"))
        if not ranks and start is not None and start >= 0 and (stride or 0) > 0 and size <= MAX_RANKS:
            ranks = [start + stride * i for i in range(size)]
        if ranks and len(ranks) != size:
            raise self.error(line, f"'Process Group Ranks' has {len(ranks)} ranks, and 'Group size' is {size}; expected the same "
                             "number")
        name = name or unnamed_group(ranks, size, self.timeline.groups)
        self.timeline.sizes[name] = size
        self.timeline.least = max(self.timeline.least, size)
        if ranks and not self.timeline.groups.get(name):
            self.timeline.groups[name] = ranks
        return name
