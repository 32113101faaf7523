# SPDX-License-Identifier: GPL-2.0-only
"""Nsight Systems' export to SQLite (`nsys export --type sqlite`): kernels, calls of the runtime and NCCL's NVTX ranges
of all GPUs in the file. Tables and columns are those of NVIDIA's "Exporter SQLite schema"; empty tables are not
created, and rows have no order."""

import json
import sqlite3
import struct

from frameworks.communications import MAX_RANKS, Communication, kind_of
from frameworks.gpu_import import add_gpu_arguments, imported_job
from frameworks.nccl_groups import number_ranks
from frameworks.nccl_splits import Split, Splits
from frameworks.timeline import FARTHEST, Notes, Timeline
from importing.errors import InputError, StudyError, read_bytes

SUMMARY = "Nsight Systems reports as SQLite (nsys export --type sqlite), one or one for each node"
MAGIC = b"SQLite format 3\x00"
KERNELS, RUNTIME, NVTX = "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS"
SYNCS, EVENTS = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", "CUPTI_ACTIVITY_KIND_CUDA_EVENT"
GRAPHS = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
MEMCPY, KINDS_OF_MEMORY = "CUPTI_ACTIVITY_KIND_MEMCPY", "ENUM_CUDA_MEM_KIND"
COPIES = {MEMCPY: "memcpy", "CUPTI_ACTIVITY_KIND_MEMSET": "memset"}
PTOP, PEER_COPY = 10, "memcpy PtoP"  # CUpti_ActivityMemcpyKind of CUPTI, and as Kineto names it
# CUpti_ActivitySynchronizationType of CUPTI.
EVENT_SYNC, STREAM_WAIT = 1, 2
THREAD_BITS = 24  # of a globalTid
NS = 1000  # picoseconds
DAMAGES = (sqlite3.Error, UnicodeError)  # SQLite's error messages may not be text
# A payload in binaryData: a header of 32 bytes whose third number is the schema.
HEADER = struct.Struct("<IIIIQQ")
# NVTX_PAYLOAD_ENTRY_TYPE_* of nvToolsExtPayload.h that NCCL uses, as formats of struct.
TYPES = {3: "<h", 4: "<H", 5: "<i", 6: "<I", 7: "<q", 8: "<Q", 9: "<q", 10: "<Q", 11: "<b", 12: "<B", 13: "<h",
         14: "<H", 15: "<i", 16: "<I", 17: "<q", 18: "<Q", 22: "<Q"}


def add_arguments(parser):
    parser.add_argument("input", metavar="FILE.sqlite", nargs="+", help="one report of all GPUs, or one of each "
                        "process or node in the order of ranks")
    add_gpu_arguments(parser)


def matches(path):
    try:
        if read_bytes(path, len(MAGIC)) != MAGIC:
            return False
        with Report(path) as report:
            return report.has(KERNELS) or report.has("StringIds")
    except (InputError, StudyError):
        return False


class Report:
    """One file, read only."""

    def __init__(self, path):
        self.path = str(path)
        if read_bytes(path, len(MAGIC)) != MAGIC:
            raise InputError(path, None, "it is no SQLite file; `nsys export --type sqlite REPORT.nsys-rep` makes one")
        try:
            name = self.path.replace("?", "%3f").replace("#", "%23")
            self.database = sqlite3.connect(f"file:{name}?mode=ro&immutable=1", uri=True)
            self.database.text_factory = lambda content: content.decode("utf-8", "replace")
            self.tables = {name for name, in self.database.execute("SELECT name FROM sqlite_master WHERE type = "
                                                                   "'table'")}
        except DAMAGES as wrong:
            raise InputError(path, None, f"it is damaged: {wrong}") from None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.database.close()

    def has(self, table):
        return table in self.tables

    def columns(self, table):
        return {row[1] for row in self.rows(f"PRAGMA table_info({table})")} if self.has(table) else set()

    def rows(self, query, *values):
        try:
            yield from self.database.cursor().execute(query, values)
        except DAMAGES as wrong:
            raise InputError(self.path, None, f"{wrong}; expected a file as of `nsys export --type sqlite`") from None


class Gpu:
    """A GPU of a process: one rank."""

    def __init__(self, report, process, device):
        self.report, self.process, self.device = report, process, device
        self.timeline = Timeline(report.path)
        self.timeline.grouped = True
        # `nsys export --ts-normalize` has times since 1970.
        self.first = next(report.rows(f"SELECT MIN(start) FROM {KERNELS} WHERE typeof(start) = 'integer'"))[0] or 0
        self.timeline.origin = self.first * NS
        # Communicator: this GPU's position in it, and how many ranks it has, if its creation was recorded.
        self.positions, self.sizes = {}, {}
        self.splits = {}  # communicator: the ncclCommSplit from which it comes
        self.communicators = {}  # those that it calls, in the order of their first calls: None


def gpus_of(report):
    graphs = next(report.rows(f"SELECT COUNT(*) FROM {GRAPHS}"))[0] if report.has(GRAPHS) else 0
    if graphs:
        raise InputError(report.path, None, f"{GRAPHS} has {graphs} launches of CUDA graphs without the kernels in them; "
                                            "expected a profile with `nsys profile --cuda-graph-trace=node`")
    if not report.has(KERNELS):
        raise InputError(report.path, None, f"it has no table {KERNELS}: no kernels were recorded (nsys profile "
                                            f"--trace=cuda,nvtx)")
    process = "globalPid" if "globalPid" in report.columns(KERNELS) else "0"
    found = list(report.rows(f"SELECT DISTINCT {process}, deviceId FROM {KERNELS} ORDER BY 1, 2"))
    if not found or not all(isinstance(number, int) for row in found for number in row):
        raise InputError(report.path, None,
                         f"{KERNELS} has {'rows without a process or device' if found else 'no rows'}")
    return [Gpu(report, *row) for row in found]


def time_of(gpu, table, row, time):
    """In picoseconds, from the first kernel of the report."""
    check(gpu.report, row, table, time)
    if time is None or abs(time - gpu.first) * NS >= FARTHEST:
        raise InputError(gpu.report.path, None, f"row {row} of {table}: a time of {time}; expected nanoseconds, less "
                                                f"than 53 days from the {gpu.first} of the first kernel")
    return (time - gpu.first) * NS


def of_process(report, table, process):
    return f" WHERE globalPid = {int(process)}" if "globalPid" in report.columns(table) else " WHERE 1"


def check(report, row, what, *numbers):
    for number in numbers:
        if number is not None and not isinstance(number, int):
            raise InputError(report.path, None, f"row {row} of {what}: found {number!r}; expected a whole number")


def read_kernels(gpu):
    report, timeline = gpu.report, gpu.timeline
    columns = report.columns(KERNELS)
    name = "demangledName" if "demangledName" in columns else "shortName"
    joined = f"LEFT JOIN StringIds ON StringIds.id = {KERNELS}.{name}" if report.has("StringIds") else ""
    text = f"COALESCE(StringIds.value, {KERNELS}.{name})" if joined else name
    for row, start, end, stream, corr, label in report.rows(
            f"SELECT {KERNELS}.rowid, start, end, streamId, correlationId, {text} FROM {KERNELS} {joined}"
            f"{of_process(report, KERNELS, gpu.process)} AND deviceId = {int(gpu.device)}"):
        add_operation(gpu, KERNELS, row, start, end, stream, corr, str(label))
    for table, label in COPIES.items():
        if report.has(table):
            kind = "copyKind" if "copyKind" in report.columns(table) else "NULL"
            for row, start, end, stream, corr, copy in report.rows(
                    f"SELECT rowid, start, end, streamId, correlationId, {kind} FROM {table}"
                    f"{of_process(report, table, gpu.process)} AND deviceId = {int(gpu.device)}"):
                add_operation(gpu, table, row, start, end, stream, corr, PEER_COPY if copy == PTOP else label)
    timeline.has_times = True


def add_operation(gpu, table, row, start, end, stream, corr, label):
    check(gpu.report, row, table, start, end, stream, corr)
    if start is None or end is None or not 0 <= start <= end:
        raise InputError(gpu.report.path, None, f"row {row} of {table}: it is from {start} to {end}; expected "
                                                "nanoseconds")
    start, end = (time_of(gpu, table, row, time) for time in (start, end))
    gpu.timeline.add("ops", start, end, gpu.timeline.stream(0, stream), corr, gpu.timeline.name(label), None,
                     None, None)


def threads_of(report, process, column="globalTid"):
    """A condition: the high bits of a thread's number are those of its process."""
    return f"({column} >> {THREAD_BITS}) = {int(process) >> THREAD_BITS}" if process else "1"


def read_runtime(gpu):
    report = gpu.report
    if not report.has(RUNTIME):
        return
    joined = f"LEFT JOIN StringIds ON StringIds.id = {RUNTIME}.nameId" if report.has("StringIds") else ""
    name = "StringIds.value" if joined else "''"
    for row, begin, end, thread, corr, label in report.rows(
            f"SELECT {RUNTIME}.rowid, start, end, globalTid, correlationId, {name} FROM {RUNTIME} {joined} WHERE "
            f"{threads_of(report, gpu.process)}"):
        check(report, row, RUNTIME, begin, end, thread, corr)
        if corr is not None:
            gpu.timeline.add("launches", corr, time_of(gpu, RUNTIME, row, begin), thread)
        if not report.has(SYNCS) and "Synchronize" in str(label) and end > begin:
            gpu.timeline.add("syncs", time_of(gpu, RUNTIME, row, begin), time_of(gpu, RUNTIME, row, end), None, None,
                             None)


def read_syncs(gpu):
    """Waits of streams for events, and of the host."""
    report, timeline = gpu.report, gpu.timeline
    if not report.has(SYNCS):
        return
    where = of_process(report, SYNCS, gpu.process)
    for row, begin, end, stream, corr, kind, event in report.rows(
            f"SELECT rowid, start, end, streamId, correlationId, syncType, eventId FROM {SYNCS}{where} AND "
            f"(deviceId IS NULL OR deviceId = {int(gpu.device)})"):
        check(report, row, SYNCS, begin, end, stream, corr, kind, event)
        recorded = last_record(gpu, event, corr) if kind in (EVENT_SYNC, STREAM_WAIT) else None
        producer, record = recorded or (None, None)
        if kind == STREAM_WAIT:
            if recorded:
                timeline.add("waits", corr, timeline.stream(0, stream), producer, record)
        elif end > begin:
            known = stream is not None and 0 <= stream < 1 << 31 and (0, stream) in timeline.streams
            timeline.add("syncs", time_of(gpu, SYNCS, row, begin), time_of(gpu, SYNCS, row, end),
                         timeline.streams[0, stream] if known else None, producer, record)


def read_copies(gpu):
    """The host waits for copies to pageable memory, and for those without Async in their name, if the copy ended before the call
    returned (API synchronization behavior, CUDA Runtime API)."""
    report = gpu.report
    if not (report.has(MEMCPY) and report.has(RUNTIME)):
        return
    pageable = name = "0"
    if "dstKind" in report.columns(MEMCPY) and "label" in report.columns(KINDS_OF_MEMORY):
        pageable = f"{MEMCPY}.dstKind IN (SELECT id FROM {KINDS_OF_MEMORY} WHERE label LIKE '%pageable%')"
    if report.has("StringIds"):
        name = f"(SELECT value FROM StringIds WHERE id = {RUNTIME}.nameId)"
        name = f"({name} LIKE '%memcpy%' AND {name} NOT LIKE '%async%')"
    for row, begin, end, stream, corr in report.rows(
            f"SELECT {RUNTIME}.rowid, {RUNTIME}.start, {RUNTIME}.end, {MEMCPY}.streamId, {MEMCPY}.correlationId FROM {MEMCPY} JOIN "
            f"{RUNTIME} ON {RUNTIME}.correlationId = {MEMCPY}.correlationId AND {threads_of(report, gpu.process)}"
            f"{of_process(report, MEMCPY, gpu.process)} AND deviceId = {int(gpu.device)} AND {MEMCPY}.end <= {RUNTIME}.end AND "
            f"({pageable} OR {name})"):
        check(report, row, RUNTIME, begin, end, stream, corr)
        gpu.timeline.add("syncs", time_of(gpu, RUNTIME, row, begin), time_of(gpu, RUNTIME, row, end), None,
                         gpu.timeline.stream(0, stream), corr + 1)


def last_record(gpu, event, corr):
    """(stream, correlation id) of the last record of an event before a call."""
    report = gpu.report
    if event is None or corr is None or not report.has(EVENTS):
        return None
    where = of_process(report, EVENTS, gpu.process)
    for stream, record in report.rows(f"SELECT streamId, correlationId FROM {EVENTS}{where} AND eventId = ? AND "
                                      "correlationId < ? ORDER BY correlationId DESC LIMIT 1", event, corr):
        return gpu.timeline.stream(0, stream), record
    return None


class Payloads:
    """The payloads of NCCL's ranges, as JSON or in binary form."""

    def __init__(self, report):
        self.report, self.schemas = report, {}
        if report.has("NVTX_PAYLOAD_SCHEMA_ENTRIES"):
            for schema, name, kind, offset in report.rows(
                    "SELECT schemaId, name, type, offset FROM NVTX_PAYLOAD_SCHEMA_ENTRIES ORDER BY schemaId, idx"):
                if name and kind in TYPES:
                    self.schemas.setdefault(schema, []).append((name, TYPES[kind], offset or 0))

    def read(self, row, text, binary):
        if text:
            try:
                found = json.loads(text)
            except (json.JSONDecodeError, RecursionError):
                raise InputError(self.report.path, None, f"row {row} of {NVTX}: its payload is no JSON") from None
            return flat(found)
        if isinstance(binary, bytes) and len(binary) >= HEADER.size:
            fields = self.schemas.get(HEADER.unpack_from(binary)[2], [])
            return {name: struct.unpack_from(code, binary, HEADER.size + offset)[0] for name, code, offset in fields
                    if HEADER.size + offset + struct.calcsize(code) <= len(binary)}
        return {}


def flat(value):
    """Members of maps in maps and lists, by their last name."""
    found = {}
    for key, one in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        if isinstance(one, (dict, list)):
            found.update(flat(one))
        else:
            found[str(key)] = one
    return found


def number_in(payload, word, report, row):
    """The member whose name has `word`; numbers may have commas between their digits."""
    for name, value in payload.items():
        if word in name.lower():
            try:
                return int(str(value).replace(",", ""), 0)
            except ValueError:
                raise InputError(report.path, None, f"row {row} of {NVTX}: '{name}' is {value!r}; expected a whole "
                                 "number") from None
    return None


def read_ranges(gpu, notes):
    """NCCL's calls."""
    report, timeline = gpu.report, gpu.timeline
    columns = report.columns(NVTX)
    if not columns:
        return
    payloads, splits = Payloads(report), Splits()
    parts = {name: (name if name in columns else "NULL") for name in ("text", "textId", "jsonText", "jsonTextId",
                                                                      "binaryData")}
    if report.has("StringIds"):
        value = "(SELECT value FROM StringIds WHERE StringIds.id = {})"
        text = f"COALESCE({parts['text']}, {value.format(parts['textId'])})"
        json_text = f"COALESCE({parts['jsonText']}, {value.format(parts['jsonTextId'])})"
    else:
        text, json_text = parts["text"], parts["jsonText"]
    for row, begin, end, thread, label, coded, binary in report.rows(
            f"SELECT * FROM (SELECT {NVTX}.rowid AS number, start, end, globalTid, {text} AS label, {json_text}, "
            f"{parts['binaryData']} FROM {NVTX} WHERE {threads_of(report, gpu.process)}) WHERE label LIKE 'nccl%' ORDER BY start"):
        check(report, row, NVTX, begin, end, thread)
        payload = payloads.read(row, coded, binary)
        communicator = number_in(payload, "communicator id", report, row)
        position = number_in({name: value for name, value in payload.items() if name == "Rank"}, "rank", report, row)
        device = number_in(payload, "cuda device", report, row)
        if "CommSplit" in label:
            if device in (None, gpu.device):
                read_split(gpu, splits, payload, position, row)
            continue
        if "Init" in label:
            if communicator is not None and position is not None and device in (None, gpu.device):
                add_creation(gpu, communicator, position, number_in(payload, "no. of ranks", report, row))
            continue
        kind = kind_of(label)
        if kind is None or begin is None:
            continue
        call = Communication(kind, number_in(payload, "message size", report, row), str(communicator or 0))
        if kind in ("send", "recv"):
            call.peer_position = number_in(payload, "peer", report, row)
        elif kind in ("broadcast", "reduce"):
            call.root = number_in(payload, "root", report, row) or 0
        gpu.communicators[call.group] = None
        begin, end = (time_of(gpu, NVTX, row, time) for time in (begin, end or begin))
        timeline.add("calls", None, None, begin, end, thread, call.text())
    gpu.splits = splits.of_communicators(gpu.communicators)


def add_creation(gpu, communicator, position, size):
    """Between ncclGroupStart and ncclGroupEnd, and of communicators that do not block, NCCL writes the range before they
    have an id (0): the first one of a size is another one than the second."""
    name, place = str(communicator), 0
    while communicator == 0 and (name == "0" or name in gpu.positions):
        name, place = f"without an id, of {size} ranks, {place}", place + 1
    gpu.positions[name], gpu.sizes[name] = position, size


def read_split(gpu, splits, payload, position, row):
    """NcclNvtxParamsCommSplit: the new communicator; and of the parent its id, its number of ranks, and the position."""
    parent, color, key = (number_in(payload, word, gpu.report, row) for word in ("parent", "color", "key"))
    if None in (parent, color, key, position):
        return
    own = number_in({name: value for name, value in payload.items() if "parent" not in name.lower()}, "communicator id",
                    gpu.report, row)
    splits.add(own, Split(str(parent), position, color, key))
    gpu.positions.setdefault(str(parent), position)
    gpu.sizes.setdefault(str(parent), number_in(payload, "no. of ranks", gpu.report, row))


def read(options):
    notes, gpus = Notes(), []
    for path in options.input:
        gpus += gpus_of(Report(path))
    for gpu in gpus:
        read_kernels(gpu)
        read_runtime(gpu)
        read_syncs(gpu)
        read_copies(gpu)
        read_ranges(gpu, notes)
        gpu.timeline.finish()
    recorded = [size for gpu in gpus for size in gpu.sizes.values() if size is not None and size < MAX_RANKS]
    least = max(len(gpus), *recorded, 1)
    if options.ranks and options.ranks < least:
        raise InputError(gpus[0].report.path, None, f"the job has {least} ranks or more, by its communicators and GPUs; "
                                                    f"expected --ranks {least} or more, or no --ranks")
    assumed = Notes()
    for name, (members, size) in number_ranks(gpus, options.ranks or least, assumed, "report").items():
        scale(members, name, size)
    imported = imported_job(options, [gpu.timeline for gpu in gpus], notes, "Nsight Systems reports")
    for place, text in assumed.lines():
        imported.refuse(place, text)
    return imported


def scale(members, name, size):
    """NCCL's ranges have the bytes of a message: of a reduce-scatter and an all-to-all, one of `size` parts."""
    def whole(text):
        call = Communication.of_text(text)
        if call.group == name and call.size is not None and call.kind in ("reduce_scatter", "all_to_all", "scatter"):
            call.size *= size
        return call.text()

    for gpu in members:
        gpu.timeline.database.create_function("whole", 1, whole)
        gpu.timeline.database.execute("UPDATE calls SET call = whole(call)")

