# SPDX-License-Identifier: GPL-2.0-only
"""The timeline of a device from its plane: of a GPU in the order of its launches, of a TPU in that of the line "XLA Ops".
The compiled module says what an instruction communicates, and behind which instructions its end is waited for."""

import collections
import json

from frameworks.communications import is_nccl
from frameworks.timeline import AS_COMPUTE, FARTHEST, Timeline
from importing.errors import InputError

from . import programs as modules

RAW = """
CREATE TABLE raw (id INTEGER PRIMARY KEY, start INTEGER, end INTEGER, stream INTEGER, corr INTEGER, name INTEGER, op INTEGER,
                  place TEXT);
CREATE TABLE host_launches (corr INTEGER PRIMARY KEY, begin INTEGER, thread INTEGER);
"""
STREAM = "Stream #"  # lines of GPUs; others have been derived from them
OPS, ASYNC = "XLA Ops", "Async XLA Ops"  # lines of TPUs
COMPUTE, COMMUNICATION = 0, 1  # streams of a TPU
OF_MEMORY = {"memalloc_details", "MemFree_details", "MemoryResidency_details"}
OF_EVENT = {"hlo_op", "hlo_module", "program_id", "correlation_id"}
PEER_COPIES = {"MemcpyP2P": "memcpy PtoP"}  # GetTraceEventTypeName of XLA; as other profilers name it
GRAPH = "CudaGraphExec:"
# Between the numbers of two operations there are places for waits.
STEP = 4
FEW = 64


class Device:
    """A device of a file: one rank. `number` is XLA's."""

    def __init__(self, space, plane_name, number, devices, origin):
        self.path, self.plane_name, self.number, self.devices = space.path, plane_name, number, devices
        self.timeline = Timeline(space.path)
        self.timeline.rank, self.timeline.world = devices.ranks[number], devices.world
        self.timeline.origin = origin
        self.timeline.has_times = True
        self.timeline.database.execute("COMMIT")
        self.timeline.database.executescript(RAW)
        self.timeline.database.execute("BEGIN")
        self.ops, self.known = {}, False  # (Program, name of an instruction): number; whether any has a Program
        self.pending = {}  # starts whose end has not been waited for: {(Program, name): Pending}
        # (stream, number, end) of the last operations that others wait for: those of a CUDA graph have no order of launches.
        self.recent = collections.deque(maxlen=FEW)
        self.index = 0
        self.communicating = {}  # streams that communicate: their place in the order of first use
        self.window = (None, None)  # begin and end of the step that is read

    def select(self, begin, end):
        """To be called before read(): only work from `begin` to before `end`, which is None for all that follows."""
        self.window = begin - self.timeline.origin, None if end is None else end - self.timeline.origin

    def is_outside(self, time):
        begin, end = self.window
        return begin is not None and not (begin <= time and (end is None or time < end))

    def error(self, place, what):
        return InputError(self.path, place, what)

    def time(self, picoseconds, at):
        found = picoseconds - self.timeline.origin
        if abs(found) >= FARTHEST:
            raise self.error(f"byte {at}", f"a time of {picoseconds} ps; expected less than 53 days from the "
                                           f"{self.timeline.origin} ps of the first event")
        return found

    def span(self, start, took, at):
        if not 0 <= took < FARTHEST:
            raise self.error(f"byte {at}", f"an event of {took} ps; expected 0 or more, less than 53 days")
        begin = self.time(start, at)
        return begin, begin + took

    def add_raw(self, span, stream, corr, name, op, at):
        number = None if op is None else self.ops.setdefault(op, len(self.ops))
        self.timeline.add("raw", None, *span, stream, corr, self.timeline.name(name), number, f"byte {at}")

    def rows(self, query):
        for table in list(self.timeline.rows):
            self.timeline.put(table)
        return self.timeline.all(query)

    def end(self):
        for table in list(self.timeline.rows):
            self.timeline.put(table)
        if not self.known:
            self.timeline.database.execute("DELETE FROM waits")
        self.timeline.database.execute("DROP TABLE raw")
        self.timeline.database.execute("DROP TABLE host_launches")
        self.timeline.finish()
        self.timeline.has_waits = self.known

    def calls_text(self, calls, stream):
        """Collectives of another stream have a communicator of their own, as in XLA (AsyncStreamKind)."""
        place = self.communicating.setdefault(stream, len(self.communicating))
        texts = []
        for call, ranks in calls:
            if place and call.kind not in ("send", "recv"):
                call.group += f" stream {place}"
            self.timeline.groups[call.group] = ranks
            texts.append(call.text())
        return texts[0] if len(texts) == 1 else json.dumps([json.loads(text) for text in texts])

    def wait(self, number, stream, moment):
        self.timeline.add("waits", number, stream, moment[0], moment[1] + 1)

    def last_before(self, start):
        """The last operation that had ended when another one began."""
        return next((one for one in reversed(self.recent) if one[2] <= start), None)

    def communicate(self, one, name):
        """Adds the communication of a start of which only the beginning has been found."""
        if one.call is not None:
            self.timeline.add("ops", one.start, one.end, one.stream, one.number, self.timeline.name(name), None, one.call,
                              one.place)

    def wait_for_ended(self, program, name, number, stream, keep, start):
        """An instruction waits for the starts that have ended before it in the program; those of another program, and of none
        that is known, have ended."""
        path = program.path_of(program.start_of(name)) if program else {}
        for key, one in list(self.pending.items()):
            over = one.program is not program or program.is_over(key[1], path)
            if program and not program.scheduled and one.program is program:
                # A text does not say the order of instructions: its `done` ends a start, or else its end in the trace.
                over = one.call is None and start >= one.end
            if over:
                self.wait(number, stream, (one.stream, one.number))
                if not keep:
                    self.communicate(self.pending.pop(key), key[1])


class Pending:
    """A start: its program, its stream, its number, and its end in the trace."""

    def __init__(self, program, stream, number, end, call=None, start=None, place=None):
        self.program, self.stream, self.number, self.end = program, stream, number, end
        self.call, self.start, self.place = call, start, place


# GPUs -----------------------------------------------------------------------------------------------------------------


class Gpu(Device):
    count_unknown = False

    def read(self, plane, programs, notes):
        for line in plane.all_lines():
            if not line.name.startswith(STREAM):
                continue
            stream = self.timeline.stream(0, line.number)
            for at, name, start, took, contents in line.events():
                stats = plane.stats(contents, at, OF_EVENT | OF_MEMORY)
                if start is None or OF_MEMORY & stats.keys():
                    continue
                name, op = plane.names.get(name, "?"), None
                if "hlo_op" in stats:
                    program = programs.find(whole_or_none(stats.get("program_id")), stats.get("hlo_module"))
                    self.known = self.known or program is not None
                    op = program, str(stats["hlo_op"]).rpartition("::")[2]
                if name.startswith(GRAPH):
                    notes.add("CUDA graphs that were recorded as a whole count as compute, with the collectives in them: "
                              "profile with XLA_FLAGS=--xla_gpu_enable_command_buffer= (none)", f"{self.path}:byte {at}", took)
                self.add_raw(self.span(start, took, at), stream, whole_or_none(stats.get("correlation_id")),
                             PEER_COPIES.get(name, name), op, at)

    def write(self, _):
        ops = list(self.ops)
        # Without the numbers of launches, or with some of them, operations are in the order in which they began.
        without, = next(self.rows("SELECT EXISTS(SELECT 1 FROM raw WHERE corr IS NULL)"))
        for start, end, stream, name, op, place, begin, thread in self.rows(
                "SELECT start, end, raw.stream, names.name, op, place, begin, thread FROM raw JOIN names ON names.id "
                "= raw.name LEFT JOIN host_launches ON host_launches.corr = raw.corr "
                f"ORDER BY {'' if without else 'raw.corr, '}start, raw.id"):
            if self.is_outside(start if begin is None else begin):
                continue
            self.index += STEP
            number = self.index
            program, instruction = (None, None) if op is None else ops[op]
            call = self.calls_of_kernel(program, instruction, name, stream, place) if is_nccl(name) else None
            if begin is not None:
                self.timeline.add("launches", number, begin, thread)
            if op is not None:
                self.order(program, instruction, number, stream, (start, end), call is not None)
            label = name if call is None else instruction
            self.timeline.add("ops", start, end, stream, number, self.timeline.name(label), None, call, place)
        self.end()

    def order(self, program, instruction, number, stream, span, communicates):
        """Streams wait for each other as the module says: a start for what has been launched before, and what comes
        behind its `done` for the start."""
        starts = program is not None and program.starts(program.start_of(instruction))
        self.wait_for_ended(program, instruction, number - 1, stream, communicates or starts, span[0])
        last = self.last_before(span[0])
        if last and (last[0] != stream or communicates):
            self.wait(number - 1, stream, last)
        if starts:
            self.pending[program, program.start_of(instruction)] = Pending(program, stream, number, span[1])
        else:
            self.recent.append((stream, number, span[1]))

    def calls_of_kernel(self, program, instruction, name, stream, place):
        """None for calls that nothing names and that count as compute."""
        if self.count_unknown and (instruction is None or program is None):
            return None
        if instruction is None:
            raise self.error(place, f"the kernel '{name[:80]}' communicates, and no instruction of XLA is with it ('hlo_op'), as "
                                    f"with kernels of CUDA graphs: profile with XLA_FLAGS=--xla_gpu_enable_command_buffer=, {AS_COMPUTE}")
        if program is None:
            raise self.error(place, f"the kernel '{name[:80]}' communicates for the instruction '{instruction}', whose module "
                                    f"is not in the file, so that nothing says how many bytes: profile with HLO protos "
                                    f"(enable_hlo_proto), give its text with --hlo, {AS_COMPUTE}")
        calls = program.calls(instruction, self.number, self.devices, place)
        if not calls:
            raise self.error(place, f"the kernel '{name[:80]}' communicates for the instruction '{instruction}', which does not "
                                    f"communicate on device {self.number} in the module '{program.name}'; other numbers of "
                                    f"devices are given with --device-ids")
        return self.calls_text(calls, stream)


def whole_or_none(value):
    if isinstance(value, str):
        return int(value) if value.isdecimal() and len(value) < 20 else None
    return value


def read_launches(plane, gpus, by_ordinal):
    """Calls of the runtime: when the host launched an operation."""
    for line in plane.all_lines():
        for at, _, start, _, contents in line.events(with_stats=True):
            stats = plane.stats(contents, at, {"correlation_id", "device_id"}) if contents else {}
            corr = whole_or_none(stats.get("correlation_id"))
            if corr is None or start is None:
                continue
            ordinal = whole_or_none(stats.get("device_id"))
            for gpu in [by_ordinal[ordinal]] if ordinal in by_ordinal else gpus if ordinal is None else ():
                gpu.timeline.add("host_launches", corr, gpu.time(start, at), line.number % (1 << 62))


# TPUs -----------------------------------------------------------------------------------------------------------------


class Tpu(Device):
    of_texts = None  # the Program of the texts of instructions

    def read(self, plane, programs, notes):
        """Instructions of XLA; where there is no module, the text of the instruction itself is read."""
        found = {}
        for line in plane.all_lines():
            if line.name not in (OPS, ASYNC):
                continue
            stream = COMPUTE if line.name == OPS else COMMUNICATION
            for at, name, start, took, contents in line.events():
                if start is None or self.is_outside(self.time(start, at)):
                    continue
                if name not in found:
                    stats = plane.stats(plane.metadata_stats.get(name, ()), at, OF_EVENT)
                    found[name] = self.program(plane, programs, name, stats)
                program = found[name]
                if program is None:
                    program = self.program(plane, programs, name, plane.stats(contents, at, OF_EVENT))
                label = plane.names.get(name, "?")
                self.known = self.known or program is not None
                self.add_raw(self.span(start, took, at), stream, None, label, (program, label), at)

    def program(self, plane, programs, name, stats):
        number = whole_or_none(stats.get("program_id"))
        found = programs.find(number, stats.get("hlo_module")) if stats else None
        if found is None and name in plane.texts:
            self.of_texts = self.of_texts or modules.of_plane(plane, self.path, programs.ragged)
            found = self.of_texts
        return found

    def write(self, notes):
        ops = list(self.ops)
        on_main = {op for op, in self.rows(f"SELECT DISTINCT op FROM raw WHERE stream = {COMPUTE}")}
        for start, end, stream, op, place, following in self.rows(
                "SELECT start, end, stream, op, place, LEAD(start) OVER (PARTITION BY stream ORDER BY start, end DESC, id) "
                "FROM raw ORDER BY start, stream, end DESC, id"):
            self.index += STEP
            program, name = ops[op]
            if stream == COMMUNICATION:
                if op not in on_main and program is not None:
                    self.background(program, name, start, end, place)
            elif following is None or following >= end or not is_caller(program, name):
                self.instruction(program, name, start, end, place, notes)
        for (_, name), one in self.pending.items():
            self.communicate(one, name)
        self.end()

    def background(self, program, name, start, end, place):
        """A communication that only the line of asynchronous operations has."""
        calls = program.calls(name, self.number, self.devices, place)
        if calls:
            if last := self.last_before(start):
                self.wait(self.index - 1, COMMUNICATION, last)
            one = Pending(program, COMMUNICATION, self.index, end, self.calls_text(calls, COMMUNICATION), start, place)
            self.communicate(one, name)
            one.call = None
            self.pending[program, name] = one

    def instruction(self, program, name, start, end, place, notes):
        number, call = self.index, None
        if program is not None:
            started = self.pending.get((program, program.dones.get(name)))
            if started is not None and started.call is not None:
                self.finish_of(program, program.dones[name], end)
                return
            self.wait_for_ended(program, name, number - 1, COMPUTE, False, start)
            calls = program.calls(name, self.number, self.devices, place)
            self.remark(program, name, bool(calls), end - start, place, notes)
            if calls and (program.starts(name) or "-start" in name):
                text = self.calls_text(calls, COMMUNICATION)
                self.pending[program, name] = Pending(program, COMMUNICATION, number + 1, end, text, end, place)
            elif calls:
                call = self.calls_text(calls, COMPUTE)
        elif modules.may_communicate(name):
            raise self.error(place, f"'{name}' communicates, and neither its module nor its text is in the file, so that nothing "
                                    f"says how many bytes: profile with HLO protos (enable_hlo_proto), or give its text with "
                                    f"--hlo")
        self.timeline.add("ops", start, end, COMPUTE, number, self.timeline.name(name), None, call, place)
        self.recent.append((COMPUTE, number, end))

    def remark(self, program, name, communicates, took, place, notes):
        """What the times of an instruction are taken for, where this is not certain."""
        if program.to_host(name):
            what = "sends to and receives from the host, as of collectives between slices, count as compute"
        elif communicates and program.multiplies(name):
            what = "fusions of a collective with matrix products count as the collective alone, and not"
        elif modules.may_communicate(name) and not program.communicating(name) and name not in program.dones:
            what = "instructions of which the module does not say what they send count as compute"
        else:
            return
        notes.add(f"{what} with their traced times", f"{self.path}:{place}", took)

    def finish_of(self, program, started, end):
        """The `done` of a start: later instructions wait for it."""
        one = self.pending.pop((program, started))
        one.end = max(one.start, end)
        self.communicate(one, started)
        self.wait(self.index, COMPUTE, (COMMUNICATION, one.number))


def is_caller(program, name):
    """Whether events within that of an instruction are those of its computations."""
    one = program.instructions.get(name) if program is not None else None
    return one is None or one.op in modules.CALLERS
