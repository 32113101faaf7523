# SPDX-License-Identifier: GPL-2.0-only
"""Logs of NCCL and RCCL (NCCL_DEBUG=INFO, NCCL_DEBUG_SUBSYS=INIT,COLL): a line for each call and for each communicator.
Lines are those of ncclEnqueueCheck (src/enqueue.cc), ncclCommInitRankFunc (src/init.cc) and ncclDebugLog (src/debug.cc) of
github.com/NVIDIA/nccl, 2.4 to 2.29. They say when the host made a call, and not what its accelerator computed or waited for.

Log.read() goes through the lines: each call becomes a row of the Timeline of its Gpu. number_ranks() says which ranks the
GPUs and the members of communicators are, cut() leaves out what other ranks do not have, and imported_job() writes."""

import datetime
import pathlib
import re

from frameworks.communications import MAX_RANKS, Communication
from frameworks.gpu_import import add_gpu_arguments, imported_job
from frameworks.nccl_groups import number_ranks
from frameworks.timeline import FARTHEST, Notes, Timeline
from importing.errors import InputError, expect_input, unzipped, unzipped_bytes

SUMMARY = "logs of NCCL (NCCL_DEBUG=INFO, NCCL_DEBUG_SUBSYS=INIT,COLL), one file or several"
START = 1 << 20  # bytes in which a log has a line of NCCL
FEW = 16  # files of a folder that are looked at to recognise it
LONGEST = 1 << 20  # bytes of a line that are looked at together
# host:pid:tid [device]; some builds have the rank in the communicator before the message. Programs that start a job and
# collect its output write something of their own in front (mpirun --tag-output, srun --label).
PREFIX = rb"([\w.-]+):(\d{1,18}):\d+ \[(-?\d{1,9})\] NCCL INFO (?:\[(?:Rank )?\d+\] )?"
LINE = re.compile(PREFIX)
CALL = re.compile(PREFIX + rb"(\w+): opCount ([0-9a-f]{1,16}) sendbuff \S+ recvbuff \S+ (?:acc \S+ )?count (\d{1,20}) datatype "
                  rb"(\d{1,9}) op -?\d+ root (-?\d{1,9}) comm (0x[0-9a-f]+) \[nranks=(\d{1,9})\] stream (0x[0-9a-f]+|\(nil\))")
CREATION = re.compile(PREFIX + rb"(?:\w+ )?comm (0x[0-9a-f]+) rank (\d{1,9}) nranks (\d{1,9}) cudaDev (-?\d{1,9})"
                      rb"((?:(?!NCCL INFO).)*?)- ?Init (START|COMPLETE)")
IDENTITY = re.compile(rb"commId (0x[0-9a-f]+)")
SPLIT = re.compile(rb"parent (0x[0-9a-f]+)(?: (?:splitCount|childCount) (\d+))? color (-?\d+)")
BUS, NVML = re.compile(rb"busId ([0-9a-f]+)"), re.compile(rb"nvmlDev (\d{1,9})")
# NCCL_DEBUG_TIMESTAMP_FORMAT, by default [%F %T]; kubectl and others write the same with a T.
STAMP = re.compile(rb"(\d{4})-(\d\d)-(\d\d)[ T](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,12}))?")
MARK = b" recvbuff "  # once in each call
# ncclDataType_t of src/nccl.h.in, in its order: int8 to uint64, float16, 32 and 64, bfloat16, float8e4m3 and float8e5m2.
ELEMENT = (1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1)
# Names of calls: kind, and whether `count` is that of one of as many parts as there are ranks (src/nccl.h.in).
KINDS = {b"AllReduce": ("all_reduce", False), b"AllGather": ("all_gather", False), b"ReduceScatter": ("reduce_scatter", True),
         b"Broadcast": ("broadcast", False), b"Reduce": ("reduce", False), b"AlltoAll": ("all_to_all", True),
         b"AllToAll": ("all_to_all", True), b"Gather": ("gather", False), b"Scatter": ("scatter", True),
         b"Send": ("send", False), b"Recv": ("recv", False)}
MESSAGES = ("send", "recv")
SECOND = 10**12  # picoseconds
APART = SECOND // 1000  # calls of a group follow each other in less
ALONE = "calls of one rank alone, and messages of a rank to itself, which need no network"
VARIABLES = "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,COLL"
A_FILE_EACH = "NCCL_DEBUG_FILE=nccl.%h.%p gives each process a file of its own"


def add_arguments(parser):
    parser.add_argument("input", metavar="LOG", nargs="+", help="the output of a job, files of its processes, or a folder "
                        "with them")
    add_gpu_arguments(parser, kernels=False)


def natural(text):
    """A key with which host10 is behind host2."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", str(text)) if part]


def is_log(path):
    try:
        start = unzipped_bytes(path, START) if path.is_file() else b""
        return b" NCCL INFO " in start and LINE.search(start) is not None
    except InputError:
        return False


def files_of(path):
    expect_input(path)
    path = pathlib.Path(path)
    return sorted(path.iterdir(), key=lambda one: natural(one.name)) if path.is_dir() else [path]


def matches(path):
    try:
        return any(map(is_log, files_of(path)[:FEW]))
    except (InputError, OSError):
        return False


class Communicator:
    """Of one GPU."""

    def __init__(self, gpu, name, size):
        self.gpu, self.name, self.size = gpu, name, size
        self.creation = None  # (rank, nranks) of a creation that has begun
        self.first = self.op = self.last = None  # opCount of the first call and the last one, and the time of that
        self.kernel = self.begin = None  # of the messages that are in one kernel
        self.advances = self.merged = False  # opCount has another value in later kernels; messages are in one kernel
        self.lanes = set()  # (kind, other end) of these messages
        self.collectives, self.messages = 0, {}  # numbers of calls; {(kind, other end): number}

    def kernel_of(self, op, lane, now):
        """(number of the kernel that executes a call, its time). A group of calls has one opCount, and so one kernel;
        collectives there run one after another. NCCL advances opCount when it gives work to the proxy (ncclProxyStart of
        src/proxy.cc, hostStreamPlanTask of src/enqueue.cc), which it has not inside a server since 2.27
        (github.com/NVIDIA/nccl/pull/2021): there a kernel has each message once."""
        if op != self.op:
            self.advances |= self.op is not None
            self.first = op if self.first is None else self.first
            self.op, self.kernel = op, None
        elif now - self.last >= APART:
            self.kernel = None
        self.last = now
        if lane is None:
            self.kernel = None
            return self.gpu.next_kernel(), now
        if self.kernel is None or (lane in self.lanes and not self.advances):
            self.kernel, self.begin, self.lanes = self.gpu.next_kernel(), now, set()
        self.merged |= bool(self.lanes)
        self.lanes.add(lane)
        return self.kernel, self.begin


class Gpu:
    """A device of a process: one rank."""

    def __init__(self, path, host, process, device):
        self.host, self.process, self.device = host, process, device
        self.timeline = Timeline(path)
        self.timeline.enqueues = self.timeline.has_times = True
        self.positions, self.sizes, self.communicators, self.splits = {}, {}, {}, {}  # as frameworks/nccl_groups.py has them
        self.number, self.bus = device, None  # on the server, as far as it is known
        self.kernels, self.now = 0, None

    def place(self):
        return natural(self.host), self.number, self.process

    def next_kernel(self):
        self.kernels += 1
        return self.kernels

    def communicator(self, name, size):
        """A new one. Several of one name are told apart by their order, which is the same on all ranks."""
        count, found = 1, name
        while found in self.sizes:
            count += 1
            found = f"{name} #{count}"
        self.sizes[found] = size
        return Communicator(self, found, size)


class Process:
    """Pointers of communicators are of a process."""

    def __init__(self, path):
        self.path, self.gpus, self.communicators = str(path), {}, {}


class Log:
    """What all files have."""

    def __init__(self):
        self.processes = {}
        self.timed = None  # whether calls have times, and where the first one is
        self.ignored, self.refused = Notes(), Notes()

    def gpus(self):
        return sorted((gpu for process in self.processes.values() for gpu in process.gpus.values()), key=Gpu.place)

    def read(self, path):
        number = 0
        with unzipped(path) as file:
            while line := file.readline(LONGEST):
                number += 1
                if MARK in line:
                    self.read_calls(path, number, line)
                elif b"Init START" in line or b"Init COMPLETE" in line:
                    self.read_creation(path, number, line)

    def gpu(self, path, number, host, process, device):
        key = host, process
        found = self.processes.setdefault(key, Process(path))
        if found.path != str(path):
            raise InputError(path, number, f"process {process} of {host} is also in {found.path}; expected all lines of a process "
                             "in one file, and one run of the job")
        if device not in found.gpus:
            found.gpus[device] = Gpu(path, host, process, device)
        return found, found.gpus[device]

    def read_creation(self, path, number, line):
        matched = CREATION.search(line)
        if not matched:
            return self.ignored.add("lines about communicators that other output has torn", f"{path}:{number}")
        host, process, _, pointer, rank, size, device, rest, when = matched.groups()
        rank, size = int(rank), int(size)
        if not rank < size <= MAX_RANKS:
            raise InputError(path, number, f"rank {rank} of {size}; expected a rank below the number of ranks, and up to {MAX_RANKS}")
        process, gpu = self.gpu(path, number, host.decode(), int(process), int(device))
        known = process.communicators.get(pointer)
        if when == b"COMPLETE" and known is not None and known.creation == (rank, size):
            known.creation = None
            return None
        made = process.communicators[pointer] = gpu.communicator(self.name(process, rest, size), size)
        made.creation = (rank, size) if when == b"START" else None
        gpu.positions[made.name] = rank
        if found := NVML.search(rest):
            gpu.number = int(found[1])
        if found := BUS.search(rest):
            gpu.bus = found[1].decode()
        return None

    @staticmethod
    def name(process, rest, size):
        """The same on all ranks of a communicator."""
        if found := IDENTITY.search(rest):
            return found[1].decode()
        if found := SPLIT.search(rest):
            parent = process.communicators.get(found[1])
            return f"{parent.name if parent else size}, split {int(found[2] or 0)}, color {int(found[3])}"
        return f"{size} ranks"

    def read_calls(self, path, number, line):
        at, count = 0, 0
        for matched in CALL.finditer(line):
            self.read_call(path, number, matched, line[at:matched.start()])
            at, count = matched.end(), count + 1
        if count == line.count(MARK):
            return
        if not line.endswith(b"\n"):
            return self.refused.add("a call at the end of a file, in the middle of which it ends, is left out", f"{path}:{number}")
        shown = line.strip().decode("utf-8", "replace")[:60]
        raise InputError(path, number, f"found '{shown}', a call of which other output has torn a part; expected 'host:pid:tid [device] "
                         f"NCCL INFO AllReduce: opCount ... stream ...': {A_FILE_EACH}")

    def read_call(self, path, number, matched, before):
        host, process, device, name, op, count, element, root, pointer, size, stream = matched.groups()
        time = self.time(path, number, before)
        comm = self.communicator(path, number, (host.decode(), int(process), int(device)), pointer, int(size))
        place = f"{path}:{number}"
        if name not in KINDS:
            return self.refused.add(f"calls of '{name.decode()[:40]}', which is no communication that is known, are left out", place)
        (kind, parts), count, element, root = KINDS[name], int(count), int(element), int(root)
        if element >= len(ELEMENT):
            raise InputError(path, number, f"datatype {element}; expected 0 to {len(ELEMENT) - 1} of NCCL's ncclDataType_t")
        if not 0 <= root < comm.size:
            raise InputError(path, number, f"root {root} in a communicator of {comm.size} ranks; expected 0 to {comm.size - 1}")
        gpu, sends = comm.gpu, kind in MESSAGES
        begin = self.since_first(path, number, gpu, time)
        kernel, begin = comm.kernel_of(op, (kind, root) if sends else None, begin)
        own = gpu.positions.get(comm.name)
        if comm.size == 1 or (sends and root == own):
            return self.ignored.add(ALONE, place)
        if not count and not sends:
            return self.ignored.add("collectives of no bytes, which NCCL does not execute", place)
        call = Communication(kind, count * ELEMENT[element] * (comm.size if parts else 1), comm.name,
                             stream=gpu.timeline.stream(0, stream))
        if sends:
            call.peer_position = root
            comm.messages[kind, root] = comm.messages.get((kind, root), 0) + 1
        else:
            call.root = root
            comm.collectives += 1
        gpu.communicators[comm.name] = comm
        gpu.timeline.add("hosts", begin, begin, kernel, gpu.timeline.name("SendRecv" if sends else name.decode()),
                         call.text(), number)
        return None

    def communicator(self, path, number, place, pointer, size):
        known = self.processes.get(place[:2])
        comm = known.communicators.get(pointer) if known else None
        if comm is not None:
            self.gpu(path, number, *place[:2], comm.gpu.device)
            if comm.size != size:
                raise InputError(path, number, f"comm {pointer.decode()} has [nranks={size}], and was created with nranks {comm.size}")
            return comm
        if not 0 < size <= MAX_RANKS:
            raise InputError(path, number, f"[nranks={size}]; expected 1 to {MAX_RANKS}")
        process, gpu = self.gpu(path, number, *place)
        process.communicators[pointer] = gpu.communicator(f"{size} ranks", size)
        self.refused.add("communicators whose creation is not in the log (NCCL_DEBUG_SUBSYS without INIT): their ranks are taken to be in "
                         "the order of servers and devices", f"{path}:{number}")
        return process.communicators[pointer]

    def time(self, path, number, before):
        """Picoseconds since the year 1; None without one."""
        found = None
        for found in STAMP.finditer(before):
            pass
        timed = found is not None
        if self.timed is None:
            self.timed = timed, f"{path}:{number}"
        if timed != self.timed[0]:
            raise InputError(path, number, f"this call has {'a' if timed else 'no'} date and time in front of it, and the first one, "
                             f"{self.timed[1]}, has {'none' if timed else 'one'}; expected all or none")
        if not timed:
            return None
        try:
            year, month, day, hour, minute, second = map(int, found.groups()[:6])
            at = datetime.datetime(year, month, day, hour, minute, min(second, 59))  # a second may be a leap second
        except ValueError:
            raise InputError(path, number, f"found '{found[0].decode()}'; expected a date and a time") from None
        seconds = (at.toordinal() * 24 + hour) * 3600 + minute * 60 + second
        return seconds * SECOND + int((found[7] or b"").ljust(12, b"0"))

    def since_first(self, path, number, gpu, time):
        """Since the first call of the GPU. A clock that was set back stands still until then."""
        if time is None:
            return 0
        if gpu.now is None:
            gpu.timeline.origin = gpu.now = time
        if time < gpu.now:
            self.refused.add("times before that of the call before are taken to be the same", f"{path}:{number}")
        gpu.now = max(gpu.now, time)
        if gpu.now - gpu.timeline.origin >= FARTHEST:
            raise InputError(path, number, "its time is 53 days or more after that of the first call of the process; expected less")
        return gpu.now - gpu.timeline.origin


def members_of(gpus, name):
    """The GPUs in the log that are in a communicator."""
    return [gpu for gpu in gpus if name in gpu.positions or name in gpu.communicators]


def check(gpus, world):
    """One run of a job, and communicators whose members are told apart."""
    devices = {}
    for gpu in gpus:
        other = devices.setdefault((gpu.host, gpu.bus), gpu) if gpu.bus else gpu
        if other is not gpu:
            raise InputError(gpu.timeline.path, None, f"processes {other.process} and {gpu.process} both use the device of {gpu.host} on "
                             f"bus {gpu.bus}; expected the log of one run of the job")
    for name, size in {name: gpu.sizes[name] for gpu in gpus for name in gpu.communicators}.items():
        members = members_of(gpus, name)
        places = [gpu.positions[name] for gpu in members if name in gpu.positions]
        path = members[0].timeline.path
        if len(members) > size or len(set(places)) < len(places) or any(gpu.sizes[name] != size for gpu in members):
            raise InputError(path, None, f"{len(members)} GPUs call communicators of {size} ranks, and nothing tells these apart; expected "
                             f"lines with commId, which newer versions of NCCL write with {VARIABLES}")
        firsts = sorted({gpu.communicators[name].first.decode() for gpu in members if name in gpu.communicators})
        if len(places) < len(members) and len(firsts) > 1:
            raise InputError(path, None, f"the log does not have the creation of a communicator of {size} ranks, and begins with "
                             f"different calls on its ranks (opCount {firsts[0]} and {firsts[1]}); expected the lines of all processes "
                             f"from their beginning, with {VARIABLES}")
        if len(members) < size and len(gpus) >= world:
            raise InputError(path, None, f"a communicator has {size} ranks, and of these {len(members)} are in the log; expected the "
                             f"lines of all processes, from their beginning, with {VARIABLES}")


COLLECTIVES = "json_extract(call, '$.kind') NOT IN ('send', 'recv')"
OF_LANE = "json_extract(call, '$.kind') = ? AND json_extract(call, '$.peer_position') = ?"


def remove_after(gpu, condition, *values, keep):
    """Removes calls that satisfy a condition, but for the first ones."""
    database = gpu.timeline.database
    database.execute(f"DELETE FROM hosts WHERE id IN (SELECT id FROM hosts WHERE json_extract(call, '$.group') = ? AND {condition} "
                     "ORDER BY id LIMIT -1 OFFSET ?)", (*values, keep))


def cut(gpus, notes, ignored):
    """The logs of a job that was stopped end with different calls: those that all members in the log have. Nor are there
    messages to oneself, which show only now where the creation of a communicator is not in the log."""
    what = "calls at the end that other ranks of the communicator do not have are left out"
    for name in {name: None for gpu in gpus for name in gpu.communicators}:
        members = members_of(gpus, name)
        counts = {gpu: gpu.communicators[name].collectives if name in gpu.communicators else 0 for gpu in members}
        least = min(counts.values())
        for gpu in (one for one in members if counts[one] > least):
            notes.add(what, gpu.timeline.path)
            remove_after(gpu, COLLECTIVES, name, keep=least)
        ranks = members[0].timeline.groups[name] or range(gpus[0].timeline.world)
        at = {ranks.index(gpu.timeline.rank): gpu for gpu in members if gpu.timeline.rank in ranks}
        for place, gpu in at.items():
            for (kind, end), count in (gpu.communicators[name].messages if name in gpu.communicators else {}).items():
                if end not in at:
                    continue
                if end == place:
                    ignored.add(ALONE, gpu.timeline.path)
                    remove_after(gpu, OF_LANE, name, kind, end, keep=0)
                    continue
                other = at[end].communicators.get(name)
                back = other.messages.get((MESSAGES[kind == "send"], place), 0) if other else 0
                if count > back:
                    notes.add(what, gpu.timeline.path)
                    remove_after(gpu, OF_LANE, name, kind, end, keep=back)


def read(options):
    log = Log()
    for path in options.input:
        files = files_of(path)
        for one in files if files == [pathlib.Path(path)] else filter(is_log, files):
            log.read(one)
    gpus = log.gpus()
    if not any(gpu.communicators for gpu in gpus):
        raise InputError(options.input[0], None, "no line is a call between GPUs ('host:pid:tid [device] NCCL INFO AllReduce: opCount "
                                                 f"...'); expected the output of a job with {VARIABLES}")
    least = max(len(gpus), *(size for gpu in gpus for size in gpu.sizes.values()))
    if options.ranks and options.ranks < least:
        raise InputError(gpus[0].timeline.path, None, f"the job has {least} ranks or more, by its communicators and GPUs; expected "
                                                      f"--ranks {least} or more, or no --ranks")
    world = options.ranks or least
    check(gpus, world)
    number_ranks(gpus, world, log.refused, "log")
    if not any(size == world and all(name in gpu.sizes for gpu in gpus) for name, size in gpus[0].sizes.items()):
        log.refused.add("no communicator has all ranks: these are taken to be in the order of servers and devices",
                        gpus[0].timeline.path)
    for gpu in gpus:
        gpu.timeline.put_all()
        for comm in gpu.communicators.values():
            if comm.merged and not comm.advances:
                log.refused.add("communicators whose opCount stands still, as inside a server since NCCL 2.27: sends and receives that "
                                "follow each other are taken to be one group, until one of them repeats", gpu.timeline.path)
    cut(gpus, log.refused, log.ignored)
    for gpu in gpus:
        gpu.timeline.finish()
    options.overlap = options.overlap or "network"
    imported = imported_job(options, [gpu.timeline for gpu in gpus], log.ignored, "logs of NCCL")
    imported.title.append("The host makes calls at the times of the log." if log.timed[0] else
                          "The log has no times: calls of a stream follow each other at once.")
    for place, text in log.refused.lines():
        imported.refuse(place, text)
    return imported
