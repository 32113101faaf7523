# SPDX-License-Identifier: GPL-2.0-only
"""Dumps of PyTorch's flight recorder (torch/csrc/distributed/c10d/FlightRecorder.hpp and FlightRecorderDetail.hpp): the
communications that each rank enqueued last, as pickle or JSON. They say when the host enqueued a call, and not what its
accelerator computed or waited for."""

import decimal
import io
import math
import pathlib
import pickle
import re

from frameworks.communications import bytes_of, communication, kind_of, numbers
from frameworks.gpu_import import add_gpu_arguments, imported_job
from frameworks.json_stream import JsonStream, shown
from frameworks.timeline import FARTHEST, Notes, Timeline
from importing.errors import InputError, StudyError, expect_input, unzipped_bytes

SUMMARY = "dumps of PyTorch's flight recorder (pickle or JSON), a file for each rank"
START = 1 << 16
NUMBER = re.compile(r"(\d{1,9})(?:\.\w+)*$")  # nccl_trace_rank_3, rank_3.json
END = re.compile(r"(send|recv) (\d{1,9})(?:->|<-)(\d{1,9})")  # positions in the group; the second is the other end
NS, MS = 1000, 10**9  # picoseconds
COALESCED = "coalesced"
PROTOCOLS = (b"\x02", b"\x03", b"\x04", b"\x05")  # of pickle


def add_arguments(parser):
    parser.add_argument("input", metavar="DIR", help="a folder with the dumps of all ranks, or one file")
    add_gpu_arguments(parser, kernels=False)


def kind_of_file(path):
    """pickle, json or None, by the first bytes: torch::jit's pickler writes protocol 2, Python's others, and nlohmann's
    JSON has its keys in alphabetical order."""
    try:
        start = unzipped_bytes(path, START)
    except InputError:
        return None
    if start[:1] == b"\x80" and start[1:2] in PROTOCOLS and b"pg_config" in start and b"version" in start:
        return "pickle"
    keys = (b'"collective_seq_id"', b'"pg_config"')
    return "json" if start.lstrip()[:1] == b"{" and any(key in start for key in keys) and b"traceEvents" not in start else None


def files_of(path):
    expect_input(path)
    path = pathlib.Path(path)
    names = sorted(one for one in path.iterdir() if one.is_file()) if path.is_dir() else [path]
    return [(one, kind) for one in names if (kind := kind_of_file(one))]


def matches(path):
    try:
        return bool(files_of(path))
    except (InputError, OSError):
        return False


class DataOnly(pickle.Unpickler):
    """Dumps are maps, lists, texts and numbers. Anything else could run a program. torch::jit's pickler may write a list
    of one type as a call with that list (torch/csrc/jit/serialization/pickler.cpp, pushSpecializedList)."""

    def find_class(self, module, name):
        if module == "torch.jit._pickle" and re.fullmatch("build_(int|double|bool)list", name):
            return list
        raise pickle.UnpicklingError(f"it names {module}.{name}; a dump has maps, lists, texts and numbers alone")


def content(path, kind):
    """(map without its entries, [(entry, line)])."""
    if kind == "pickle":
        try:
            found = DataOnly(io.BytesIO(unzipped_bytes(path))).load()
        except InputError:
            raise
        except Exception as wrong:  # the pickle module raises errors of many kinds for damaged content
            raise InputError(path, None, f"it is a damaged pickle: {wrong}") from None
        if not isinstance(found, dict):
            raise InputError(path, None, f"a {type(found).__name__}; expected a map with 'entries'")
        entries = found.pop("entries", [])
        if not isinstance(entries, list):
            raise InputError(path, None, f"'entries' is a {type(entries).__name__}; expected a list")
        return found, [(entry, None) for entry in entries]
    found, entries = {}, []
    for key, value, line in JsonStream(path).members({"entries"}):
        if key == "entries":
            entries.append((value, line))
        else:
            found[key] = value
    return found, entries


class Call:
    """An entry: a call of a rank, or one of several calls of a group that have one kernel."""

    def __init__(self, record, begin, group, found, sequence, messages, duration, line, done):
        self.record, self.begin, self.group, self.found = record, begin, group, found
        self.sequence, self.messages, self.duration, self.line = sequence, messages, duration, line
        self.done = done  # the accelerator had executed it when the buffer was written


class Dump:
    """The calls of one rank."""

    def __init__(self, path, kind, notes):
        self.path, self.notes = str(path), notes
        found = NUMBER.search(pathlib.Path(path).name)
        if not found:
            raise InputError(path, None, "its name does not end in the number of its rank; rename it to rank_0, rank_1, ...")
        self.rank, self.groups, self.calls = int(found[1]), {}, []
        rest, entries = content(path, kind)
        self.read_groups(rest.get("pg_config"))
        self.whole = True  # all calls since the process began
        kernels = {}
        for at, (entry, line) in enumerate(entries):
            if not isinstance(entry, dict):
                raise InputError(path, line, f"entry {at} is {shown(entry)[:40]}; expected a map")
            self.read_entry(entry, at, line, kernels)
        self.give_durations(kernels)
        # In the order of the records: entries of the ring buffer begin anywhere in it.
        self.calls.sort(key=lambda call: call.record)
        self.whole = not self.calls or min(self.calls[0].record, self.first) == 0

    def error(self, what, line=None):
        return InputError(self.path, line, what)

    def read_groups(self, config):
        if not isinstance(config, (dict, type(None))):
            raise self.error(f"'pg_config' is {shown(config)[:40]}; expected a map of process groups")
        for name, group in (config or {}).items():
            try:
                ranks = numbers(group.get("ranks"))
            except (AttributeError, ValueError) as wrong:
                raise self.error(f"the process group '{name}' is not understood: {wrong}") from None
            if ranks:
                self.groups[str(name)] = ranks

    def whole_number(self, entry, key, at, line, least=0):
        value = entry.get(key)
        if type(value) is not int or not least <= value < 1 << 63:
            raise self.error(f"entry {at}: '{key}' is {shown(value)}; expected a whole number", line)
        return value

    def read_entry(self, entry, at, line, kernels):
        record = self.whole_number(entry, "record_id", at, line)
        self.first = min(record, getattr(self, "first", record))
        begin = self.whole_number(entry, "time_created_ns", at, line) * NS
        pair = entry.get("process_group")
        group = str(pair[0] if isinstance(pair, (list, tuple)) and pair else pair or "0") or "0"
        name = str(entry.get("profiling_name", ""))
        plain = name.split(":", 1)[-1]
        messages = bool(entry.get("is_p2p"))
        sequence = self.whole_number(entry, "p2p_seq_id" if messages else "collective_seq_id", at, line)
        duration = self.duration(entry, at, line)
        if plain.startswith(COALESCED):
            kernels[group, messages, sequence] = (duration, record, line)
            return
        if kind_of(plain) is None:
            self.notes.add(f"calls of '{plain[:40]}', which is no communication that is known, are left out", self.path)
            return
        size = len(self.groups.get(group) or []) or 1
        into, out = (self.bytes(entry, side, at, line) for side in ("input", "output"))
        end = END.search(plain)
        splits = [into, out] if kind_of(plain) == "all_to_all" and len(into) == len(out) == size > 1 else [[], []]
        try:
            found = communication(plain.split(" ")[0], sum(into), sum(out), size, group)
        except ValueError as wrong:
            raise self.error(f"entry {at}: {name}: {wrong}", line) from None
        found.sends, found.receives = splits
        if found.kind in ("send", "recv"):
            if not end:
                raise self.error(f"entry {at}: '{name}' does not say its two ends; expected 'nccl:send 0->1'", line)
            found.peer_position = int(end[3])
        if found.kind in ("broadcast", "reduce", "gather", "scatter"):
            self.notes.add(f"the root of a {found.kind} is not recorded, and is taken to be the first rank of its group",
                           self.path)
        self.calls.append(Call(record, begin, group, found, sequence, messages, duration, line,
                               entry.get("state") == "completed"))

    def duration(self, entry, at, line):
        value = entry.get("duration_ms")
        if value is None:
            return None
        known = isinstance(value, (int, float, decimal.Decimal)) and not isinstance(value, bool)
        if not known or not 0 <= value < FARTHEST / MS:
            raise self.error(f"entry {at}: 'duration_ms' is {shown(value)}; expected milliseconds", line)
        return int(decimal.Decimal(value) * MS)

    def bytes(self, entry, side, at, line):
        """Of each tensor."""
        sizes, types = (entry.get(f"{side}_{what}") or [] for what in ("sizes", "dtypes"))
        if not isinstance(sizes, (list, tuple)) or not isinstance(types, (list, tuple)):
            raise self.error(f"entry {at}: '{side}_sizes' or '{side}_dtypes' is no list", line)
        found = []
        for index, shape in enumerate(sizes):
            dtype = types[index] if index < len(types) else None
            whole = isinstance(shape, (list, tuple)) and all(type(one) is int and 0 <= one < 1 << 63 for one in shape)
            size = bytes_of(math.prod(shape), dtype) if whole else None
            if size is None:
                raise self.error(f"entry {at}: a tensor of shape {shown(shape)[:60]} and type {shown(dtype)}; expected whole "
                                 f"numbers, and a type whose size is known", line)
            found.append(size)
        return found

    def give_durations(self, kernels):
        """`coalesced` is the kernel of the calls of a group, which have its number, and no duration of their own."""
        parts = {}
        for call in self.calls:
            parts.setdefault((call.group, call.messages, call.sequence), []).append(call)
        for key, (duration, _, _) in kernels.items():
            if key not in parts:
                self.notes.add("calls in a coalescing manager, whose tensors the recorder does not have, are left out",
                               self.path)
            for call in parts.get(key, ()):
                call.duration = duration

    def members(self, group, world):
        return self.groups.get(group) or (list(range(world)) if group in ("", "0") else None)


def cut_collectives(dumps, world, notes):
    """Buffers of ranks begin and end with different calls: of each group those that all its traced members have, by the
    number that a call has in its group."""
    spans = {}  # (group, ranks): {rank: (first, last)}
    for dump in dumps:
        for call in (one for one in dump.calls if not one.messages):
            key = call.group, tuple(dump.members(call.group, world) or ())
            first, last = spans.setdefault(key, {}).get(dump.rank, (call.sequence, call.sequence))
            spans[key][dump.rank] = min(first, call.sequence), max(last, call.sequence)
    traced = {dump.rank for dump in dumps}
    kept = {}
    for (group, ranks), found in spans.items():
        complete = all(rank in found for rank in ranks if rank in traced)
        kept[group, ranks] = (max(first for first, _ in found.values()),
                              min(last for _, last in found.values())) if complete else (1, 0)
    for dump in dumps:
        left = []
        for call in dump.calls:
            first, last = kept.get((call.group, tuple(dump.members(call.group, world) or ())), (0, 0))
            if call.messages or first <= call.sequence <= last:
                left.append(call)
            else:
                notes.add("calls at the beginning or the end of a buffer that other ranks of the group do not have are left "
                          "out", dump.path)
        dump.calls = left


def cut_messages(dumps, world, notes):
    """Sends without their receives. They have no number that both ends share: from the first ones on, if both buffers have
    all calls since the beginning. Otherwise the last ones belong together if the accelerators had executed all of them, as
    between two steps, and their sizes say the same."""
    by_rank = {dump.rank: dump for dump in dumps}
    lanes = {}  # (group, ranks, from, to): [sends, receives]
    for dump in dumps:
        for call in (one for one in dump.calls if one.messages and one.found.kind in ("send", "recv")):
            ranks = dump.members(call.group, world) or []
            if call.found.peer_position >= len(ranks):
                continue  # an error where it is written
            ends = [dump.rank, ranks[call.found.peer_position]]
            sends = call.found.kind == "send"
            lane = (call.group, tuple(ranks), *(ends if sends else reversed(ends)))
            lanes.setdefault(lane, [[], []])[0 if sends else 1].append((dump, call))
    for (group, _, source, target), sides in lanes.items():
        if len(sides[0]) == len(sides[1]) or source not in by_rank or target not in by_rank:
            continue
        count = min(map(len, sides))
        whole = by_rank[source].whole and by_rank[target].whole
        if not whole and not end_together(sides):
            raise InputError(by_rank[source].path, None, f"it has {len(sides[0])} sends to rank {target} in process group "
                             f"'{group}', and {by_rank[target].path} {len(sides[1])} receives of them; their buffers begin "
                             f"at different calls, and the last of them are not all completed or differ in size, so that "
                             f"nothing says which belong together: record with a larger TORCH_FR_BUFFER_SIZE, or dump all "
                             f"ranks between two steps")
        for dump, call in [one for side in sides for one in (side[count:] if whole else side[:len(side) - count])]:
            dump.calls.remove(call)
            notes.add(f"messages at the {'end' if whole else 'beginning'} of a buffer whose other end is in no buffer are left "
                      "out", dump.path)


def end_together(sides):
    """Whether the last send may be the last receive: the accelerators have executed all, and sizes agree from there back to
    the first one of the shorter buffer."""
    ends = zip(reversed(sides[0]), reversed(sides[1]))
    return (all(call.done for side in sides for _, call in side) and
            all(send.found.size == receive.found.size for (_, send), (_, receive) in ends))


def even_exchanges(dumps, world, notes):
    """An all-to-all of one tensor: its split sizes are not recorded. If ranks have different sizes, each is taken to send
    equal parts of its own, and so receives such a part of each."""
    calls = {}
    for dump in dumps:
        for call in dump.calls:
            if call.found.kind == "all_to_all" and not call.found.sends:
                ranks = tuple(dump.members(call.group, world) or ())
                calls.setdefault((call.group, ranks, call.sequence), {})[dump.rank] = call
    for (_, ranks, _), found in calls.items():
        sizes = {call.found.size for call in found.values()}
        if len(sizes) == 1 or any(rank not in found for rank in ranks):
            continue
        notes.add("all-to-alls whose ranks send different numbers of bytes send equal parts to all members: the recorder does "
                  "not have their split sizes", dumps[0].path)
        parts = [found[rank].found.size // len(ranks) for rank in ranks]
        for call in found.values():
            call.found.sends, call.found.receives = [call.found.size // len(ranks)] * len(ranks), parts


def timeline_of(dump, blocking):
    timeline = Timeline(dump.path)
    timeline.rank, timeline.groups, timeline.has_times, timeline.enqueues = dump.rank, dump.groups, True, True
    if dump.calls:
        timeline.origin = dump.calls[0].begin
    begins = {}  # of the calls of a kernel: when the first was enqueued
    for call in dump.calls:
        began = begins.setdefault((call.group, call.messages, call.sequence), call.begin) - timeline.origin
        if not 0 <= began < FARTHEST:
            raise dump.error(f"record {call.record}: 'time_created_ns' is {call.begin // NS}; expected less than 53 days after "
                             f"the {timeline.origin // NS} of the first one", call.line)
        name = f"{call.found.kind} (record {call.record})"
        timeline.add("hosts", began, began + (call.duration or 0 if blocking else 0), 0, timeline.name(name),
                     call.found.text(), call.line)
    timeline.finish()
    return timeline


def read(options):
    files, notes = files_of(options.input), Notes()
    if not files:
        raise InputError(options.input, None, "there is no dump of the flight recorder here, neither a pickle nor JSON with "
                                              "'pg_config' and 'entries'")
    dumps = sorted((Dump(path, kind, notes) for path, kind in files), key=lambda dump: dump.rank)
    if not any(dump.calls for dump in dumps):
        raise StudyError(f"{dumps[0].path}: no rank has a call in its buffer")
    in_groups = [max(ranks) + 1 for dump in dumps for ranks in dump.groups.values()]
    world = options.ranks or max([*in_groups, *(dump.rank + 1 for dump in dumps)])
    blocking = options.overlap == "traced"
    if blocking and not any(call.duration for dump in dumps for call in dump.calls):
        raise InputError(dumps[0].path, None, "no entry has a 'duration_ms', which --overlap traced takes away from the time "
                                              "between calls: record with TORCH_NCCL_ENABLE_TIMING=1")
    cut_collectives(dumps, world, notes)
    cut_messages(dumps, world, notes)
    even_exchanges(dumps, world, notes)
    options.overlap = options.overlap or "network"
    assumed = Notes()
    imported = imported_job(options, [timeline_of(dump, blocking) for dump in dumps], assumed,
                            "dumps of PyTorch's flight recorder")
    for place, text in notes.lines():
        imported.refuse(place, text)
    return imported
