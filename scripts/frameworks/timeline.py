# SPDX-License-Identifier: GPL-2.0-only
"""Activity of a GPU and its host, as recorded by profilers, and the program that follows from it.

Files of profilers have events in any order. A timeline keeps them in a database on disk, which sorts them: memory does
not grow with the trace. All times are whole picoseconds."""

import collections
import itertools
import json
import pathlib
import shutil
import sqlite3
import tempfile
import weakref

from importing.errors import InputError

from .communications import Communication, is_nccl, kind_of_kernel

SCHEMA = """
CREATE TABLE names (id INTEGER PRIMARY KEY, name TEXT UNIQUE);
CREATE TABLE ops (id INTEGER PRIMARY KEY, start INTEGER, end INTEGER, stream INTEGER, corr INTEGER, name INTEGER,
                  external INTEGER, call TEXT, place INTEGER);
CREATE TABLE launches (corr INTEGER PRIMARY KEY, begin INTEGER, thread INTEGER);
CREATE TABLE calls (id INTEGER PRIMARY KEY, external INTEGER, record INTEGER, begin INTEGER, end INTEGER,
                    thread INTEGER,                    call TEXT, used INTEGER DEFAULT 0, launched INTEGER DEFAULT 0);
CREATE TABLE recorded (record INTEGER PRIMARY KEY, call TEXT);
CREATE TABLE waits (corr INTEGER, stream INTEGER, producer INTEGER, record INTEGER);
CREATE TABLE syncs (begin INTEGER, end INTEGER, stream INTEGER, producer INTEGER, record INTEGER);
CREATE TABLE hosts (id INTEGER PRIMARY KEY, begin INTEGER, end INTEGER, thread INTEGER, name INTEGER, call TEXT,
                    place INTEGER);
"""
INDICES = """
CREATE INDEX ops_start ON ops (start, corr, id);
CREATE INDEX ops_stream ON ops (stream, corr);
CREATE INDEX ops_external ON ops (external);
UPDATE calls SET launched = 1
  WHERE external IS NOT NULL AND EXISTS (SELECT 1 FROM ops WHERE ops.external = calls.external);
CREATE INDEX calls_external ON calls (external);
CREATE INDEX calls_open ON calls (used, thread, begin);
CREATE INDEX calls_thread ON calls (thread, begin);
CREATE INDEX calls_begin ON calls (begin);
CREATE INDEX calls_of_groups ON calls (launched, used, begin);
CREATE INDEX waits_stream ON waits (stream, corr);
CREATE INDEX syncs_end ON syncs (end);
CREATE INDEX hosts_begin ON hosts (begin);
"""
US = 10**6
# A pause of the accelerator up to this length between an operation and the one that it waited for is its start-up time.
SHORT = 10 * US
HOST_THREAD = 0
# Calls that NCCL executes as sends and receives.
MESSAGES = ("send", "recv", "all_to_all", "gather", "scatter")
UNKNOWN = ("kernels of NCCL or RCCL whose calls are not in the trace, as of CUDA graphs, count as compute with their traced times, "
           "which no network changes")
AS_COMPUTE = "or give --unknown-calls compute, with which they are compute of their traced times"
# Of an event from the first one: half of simulated time.
FARTHEST = 53 * 24 * 3600 * 10**12


def remove(database, folder):
    database.close()
    shutil.rmtree(folder, ignore_errors=True)


class Timeline:
    """The timeline of one rank. `path` is the file that errors name."""

    def __init__(self, path):
        self.path, self.rank, self.world = str(path), None, None
        self.least = 1  # ranks that the job has at least, by the sizes of its groups
        self.groups = {}  # name: ranks, [] for all
        self.sizes = {}  # numbers of their ranks, also of groups whose ranks the trace does not list
        self.called = None
        self.origin = 0  # of times here, by the clock of the profiler: since 1970, times have more than 64 bits
        folder = tempfile.mkdtemp(prefix="weft-import-")
        self.database = sqlite3.connect(str(pathlib.Path(folder) / "timeline"), isolation_level=None)
        self.end = weakref.finalize(self, remove, self.database, folder)
        self.database.executescript("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA temp_store=FILE;"
                                    f"PRAGMA cache_size=-1024; {SCHEMA}")
        self.database.execute("BEGIN")
        self.names, self.rows = {}, collections.defaultdict(list)
        self.streams = {}  # (device, stream) of the profiler: number here
        self.enqueues = False  # of the host, only the times at which it enqueued communications are known
        self.grouped = False  # calls of a thread since its last kernel of NCCL belong to the next one
        self.has_ops = self.has_waits = self.has_hosts = self.has_times = False

    def name(self, text):
        found = self.names.get(text)
        if found is None:
            found = self.names[text] = len(self.names)
            self.add("names", found, text.encode("utf-8", "replace").decode())  # no halves of characters
        return found

    def stream(self, device, stream):
        return self.streams.setdefault((device, stream), len(self.streams))

    def add(self, table, *values):
        rows = self.rows[table]
        rows.append(values)
        if len(rows) >= 5000:
            self.put(table)

    def put(self, table):
        rows = self.rows[table]
        if rows:
            marks = ",".join("?" * len(rows[0]))
            columns = {"ops": "(start, end, stream, corr, name, external, call, place)",
                       "calls": "(external, record, begin, end, thread, call)",
                       "hosts": "(begin, end, thread, name, call, place)"}.get(table, "")
            self.database.executemany(f"INSERT OR IGNORE INTO {table} {columns} VALUES ({marks})", rows)
            rows.clear()

    def put_all(self):
        for table in list(self.rows):
            self.put(table)

    def keep(self, begin, end):
        """Before finish(): only what the host began from `begin` to before `end`. An operation of the accelerator without
        a launch counts by its own start; one that waits for an event from before does not wait."""
        self.put_all()
        run = self.database.execute
        outside = f"NOT (begin >= {begin} AND begin < {end})"
        run(f"DELETE FROM ops WHERE corr IS NOT NULL AND corr IN (SELECT corr FROM launches WHERE {outside})")
        run(f"DELETE FROM ops WHERE NOT (start >= {begin} AND start < {end}) AND "
            "(corr IS NULL OR corr NOT IN (SELECT corr FROM launches))")
        run(f"DELETE FROM waits WHERE corr IN (SELECT corr FROM launches WHERE {outside})")
        for table in ("launches", "calls", "syncs", "hosts"):
            run(f"DELETE FROM {table} WHERE {outside}")

    def finish(self):
        """To be called when everything has been added."""
        self.put_all()
        self.database.execute("COMMIT")
        self.database.executescript(INDICES)
        self.database.execute("BEGIN")
        self.has_ops, self.has_waits, self.has_hosts = (
            self.one(f"SELECT EXISTS(SELECT 1 FROM {table})") == 1 for table in ("ops", "waits", "hosts"))

    def one(self, query, *values):
        found = self.database.execute(query, values).fetchone()
        return None if found is None else found[0]

    def all(self, query, *values):
        return self.database.cursor().execute(query, values)

    def called_groups(self):
        """Names of the groups that the rank calls, after finish()."""
        if self.called is None:
            self.called = self.groups_of_calls("call IS NOT NULL")
        return self.called

    def message_groups(self):
        """Names of the groups in which the rank sends or receives, after finish()."""
        return sorted(self.groups_of_calls("COALESCE(json_extract(call, '$.kind'), json_extract(call, '$[0].kind')) IN "
                                           "('send', 'recv')"))

    def groups_of_calls(self, condition):
        tables = " UNION ".join(f"SELECT call FROM {table} WHERE {condition}" for table in ("ops", "calls", "hosts",
                                                                                             "recorded"))
        return {str(name) for name, in self.all("SELECT DISTINCT COALESCE(json_extract(call, '$.group'), json_extract(call, "
                                                f"'$[0].group')) FROM ({tables})")}

    def error(self, place, what):
        return InputError(self.path, place, what)

    def close(self):
        self.end()


class Notes:
    """Remarks for all ranks: omissions and assumptions, their number, and their first place."""

    def __init__(self):
        self.found = {}

    def add(self, what, place, picoseconds=0):
        count, total, first = self.found.get(what, (0, 0, place))
        self.found[what] = (count + 1, total + picoseconds, first)

    def lines(self):
        for what, (count, total, first) in self.found.items():
            yield first, f"{what} ({count} times{f', {total / US:.3f} us altogether' if total else ''})"


def start_text(begin, timeline):
    return "an unknown time" if begin is None else f"{(timeline.origin + begin) // 1000} ns"


class Moment:
    """A written operation: its node, and its end in the trace; of a graph of the driver the graph's launch."""

    __slots__ = ("node", "end", "communicates", "graph")

    def __init__(self, node, end, communicates, graph=None):
        self.node, self.end, self.communicates, self.graph = node, end, communicates, graph


class Graph:
    """A launch of a graph of the driver (CUDA graph, HIP graph), of which all operations have the number. What they wait for
    within the graph no trace says, so that they keep the traced order. The graph's first operations wait for what the first
    one waits for, and what follows on its streams waits for all of it."""

    def __init__(self, launch, before):
        self.launch, self.before, self.streams = launch, before, {}  # stream: its last Moment


class ProgramOfTimeline:
    """Writes the operations of a timeline, in the order in which they started. `out` is a RankFile, `job` knows groups
    and tags (frameworks/job.py), `traced` keeps the traced order of all streams; otherwise operations wait only for
    their stream, events and launches."""

    def __init__(self, timeline, out, job, notes, traced, host=True, progress=None, unknown=None):
        """`unknown`: Notes of kernels of NCCL whose calls the trace does not have, and which count as compute; without it
        they are an error."""
        self.progress, self.unknown, self.count_unknown = progress, unknown, unknown is not None
        self.last_external = {}  # stream: number of the operator of its last kernel of NCCL
        self.timeline, self.out, self.job, self.notes, self.traced, self.host = timeline, out, job, notes, traced, host
        self.last = {}  # stream: Moment
        self.last_corr = {}
        self.running = collections.defaultdict(collections.deque)  # stream: Moments that may not have ended yet
        self.ended = {}  # stream: the last Moment that had ended
        self.graph = None  # the last one that has begun
        self.after_graph = {}  # stream: the Graph for which its next operation waits
        self.known = collections.defaultdict(dict)  # stream: {other stream: node that it already comes after}
        self.nodes = timeline.database
        self.nodes.execute("CREATE TEMP TABLE IF NOT EXISTS done (stream INTEGER, corr INTEGER, node INTEGER, end "
                           "INTEGER, communicates INTEGER)")
        self.nodes.execute("DELETE FROM done")
        self.nodes.execute("CREATE INDEX IF NOT EXISTS temp.done_corr ON done (stream, corr)")
        self.nodes.execute("CREATE INDEX IF NOT EXISTS temp.done_all ON done (communicates, corr)")
        self.nodes.execute("CREATE TEMP TABLE IF NOT EXISTS nccl_launches (thread INTEGER, begin INTEGER)")
        self.nodes.execute("DELETE FROM temp.nccl_launches")
        names = json.dumps([number for name, number in timeline.names.items() if is_nccl(name)])
        self.nodes.execute("INSERT INTO temp.nccl_launches SELECT launches.thread, launches.begin FROM ops JOIN launches "
                           "ON launches.corr = ops.corr WHERE ops.name IN (SELECT value FROM json_each(?))", (names,))
        self.nodes.execute("CREATE INDEX IF NOT EXISTS temp.nccl_launches_begin ON nccl_launches (thread, begin)")
        self.pending = []
        self.host_node, self.host_time = None, None

    def write(self):
        if self.timeline.enqueues:
            self.write_enqueued()
        elif self.timeline.has_hosts and not self.timeline.has_ops:
            self.write_hosts()
        else:
            self.write_ops()
        self.out.flush()

    # The accelerator ----------------------------------------------------------------------------------------------

    def write_ops(self):
        timeline = self.timeline
        syncs = timeline.all("SELECT begin, end, stream, producer, record FROM syncs ORDER BY end, begin")
        sync = syncs.fetchone()
        self.host_time = timeline.one("SELECT MIN(start) FROM ops")
        for row in timeline.all(
                "SELECT ops.start, ops.end, ops.stream, ops.corr, names.name, ops.external, ops.call, ops.place, "
                "launches.begin, launches.thread, ops.corr IN (SELECT corr FROM ops WHERE corr IS NOT NULL GROUP BY corr HAVING "
                "COUNT(*) > 1) FROM ops JOIN names ON names.id = ops.name "
                "LEFT JOIN launches ON launches.corr = ops.corr ORDER BY ops.start, ops.corr, ops.id"):
            while sync is not None and sync[1] <= row[0]:
                self.write_sync(*sync)
                sync = syncs.fetchone()
            self.write_op(*row)
            if self.progress:
                self.progress.advance(1)

    def write_op(self, start, end, stream, corr, name, external, call, place, begin, thread, of_graph):
        communicates = call is not None or is_nccl(name)
        calls = self.calls_of(name, stream, external, call, begin, thread, place) if communicates else []
        if calls is None:
            self.unknown.add(UNKNOWN, f"{self.timeline.path}:{place}" if place else self.timeline.path, end - start)
        self.let_end(start)
        before = self.dependencies(start, stream, corr, communicates)
        if of_graph and self.graph is not None and self.graph.launch == corr:
            begin = None  # launched with the first operation of the graph
            before += self.within_graph(start, stream)
        elif of_graph:
            self.graph = Graph(corr, list(before))
        ready = max([moment.end for moment in before], default=None)
        if self.timeline.has_times:
            free = self.host_time if ready is None else ready
            late = begin is not None and (ready is None or begin > ready) and start > free
            if ready is not None and not late and not communicates:
                self.infer_wait(start, stream, ready, before)
                ready = max(moment.end for moment in before)
            after = {moment.node for moment in before}
            if late and self.host:
                after.add(self.write_host(f"launch {name}", start))
            elif ready is not None and start > ready and not communicates:
                pause = start - ready
                if pause <= SHORT:
                    start = ready
                else:
                    self.notes.add("pauses of the accelerator that nothing recorded explains are left out",
                                   f"{self.timeline.path}:{place}", pause)
        else:
            after = {moment.node for moment in before}
        if calls:
            node = self.job.write_calls(self.out, self.timeline, name, after, calls, stream, place)
        else:
            node = self.out.compute(name, after, 0 if communicates and calls is not None else end - start, stream)
        moment = Moment(node, end, communicates, corr if of_graph else None)
        if of_graph:
            self.graph.streams[stream] = moment
            self.after_graph[stream] = self.graph
        self.done(stream, corr, moment)

    def within_graph(self, start, stream):
        """What an operation of a graph waits for on the graph's other streams."""
        ended = [moment for other, moment in self.ended.items() if other != stream and moment.graph == self.graph.launch]
        return ended if ended or stream in self.graph.streams else self.graph.before

    def behind_graph(self, start, stream, corr):
        """What an operation behind a graph on one of the graph's streams waits for on its others."""
        graph = self.after_graph.get(stream)
        if graph is None or graph.launch == corr:
            return []
        del self.after_graph[stream]
        return [moment for other, moment in graph.streams.items() if other != stream and moment.end <= start]

    def let_end(self, start):
        """Operations that have ended before `start`."""
        for stream, moments in self.running.items():
            while moments and moments[0].end <= start:
                self.ended[stream] = moments.popleft()

    def done(self, stream, corr, moment):
        self.last[stream], self.last_corr[stream] = moment, corr
        self.running[stream].append(moment)
        self.pending.append((stream, corr, moment.node, moment.end, int(moment.communicates)))
        if len(self.pending) > 5000:
            self.put_done()

    def put_done(self):
        self.nodes.executemany("INSERT INTO temp.done VALUES (?, ?, ?, ?, ?)", self.pending)
        self.pending = []

    def look_up(self, condition, *values):
        """The last operation in the order of launches that satisfies a condition."""
        self.put_done()
        row = self.nodes.execute(f"SELECT node, end, communicates FROM temp.done WHERE {condition} "
                                 "ORDER BY corr DESC, rowid DESC LIMIT 1", values).fetchone()
        return Moment(*row) if row else None

    def dependencies(self, start, stream, corr, communicates):
        found = [self.last[stream]] if stream in self.last else []
        known = self.known[stream]
        waits = self.waits(stream, corr)
        found += waits + self.behind_graph(start, stream, corr)
        if communicates and not waits and corr is not None:
            # In torch.distributed its stream waits for the current one, for all earlier launches there.
            moment = self.look_up("communicates = 0 AND corr < ?", corr)
            found += [moment] if moment else []
        if self.traced:
            for other, moment in self.ended.items():
                if other != stream and known.get(other) != moment.node:
                    known[other] = moment.node
                    found.append(moment)
        return found

    def waits(self, stream, corr):
        if not self.timeline.has_waits or corr is None:
            return []
        found = []
        rows = self.timeline.all("SELECT producer, record FROM waits WHERE stream = ? AND corr > ? AND corr < ?",
                                 stream, self.last_corr.get(stream, -1), corr).fetchall()
        for producer, record in rows:
            moment = self.look_up("stream = ? AND corr < ?", producer, record)
            found += [moment] if moment else []
        return found

    def infer_wait(self, start, stream, ready, before):
        """Finds a wait that is not recorded: the stream was idle until a communication ended, and continued at once."""
        if self.traced or self.timeline.has_waits or start <= ready:
            return
        for other, moment in self.ended.items():
            if other != stream and moment.communicates and ready < moment.end and start - moment.end <= SHORT:
                before.append(moment)

    # The host -----------------------------------------------------------------------------------------------------

    def write_host(self, name, until):
        """Activity of the host up to `until`, on its thread."""
        passed = max(0, until - self.host_time)
        self.host_time = max(self.host_time, until)
        self.host_node = self.out.compute(name, [self.host_node] if self.host_node is not None else [], passed,
                                          thread=HOST_THREAD)
        return self.host_node

    def write_sync(self, begin, end, stream, producer, record):
        """The host waited for the accelerator."""
        if not self.host or self.host_time is None:
            return
        self.let_end(end)
        if record is not None and producer is not None and record >= 0 and producer >= 0:
            moment = self.look_up("stream = ? AND corr < ?", producer, record)
            moments = [moment] if moment else []
        elif stream is not None and stream >= 0:
            moments = [self.ended[stream]] if stream in self.ended else []
        else:
            moments = list(self.ended.values())
        if begin > self.host_time:
            self.write_host("host", begin)
        waited = max([begin, self.host_time, *(moment.end for moment in moments)])
        after = {moment.node for moment in moments} | ({self.host_node} if self.host_node is not None else set())
        self.host_node = self.out.compute("wait for the accelerator", after, max(0, end - waited), thread=HOST_THREAD)
        self.host_time = max(self.host_time, end)

    # Traces of operators of the host alone --------------------------------------------------------------------------

    def write_hosts(self):
        """Operators that are in no other one, and the time between them, thread by thread; a thread waits for its
        communication."""
        last, until = {}, {}
        origin = self.timeline.one("SELECT MIN(begin) FROM hosts")
        for begin, end, thread, name, call, place in self.timeline.all(
                "SELECT begin, end, thread, names.name, call, place FROM hosts JOIN names ON names.id = hosts.name "
                "ORDER BY begin, end DESC, hosts.id"):
            if call is None and self.timeline.has_times and end <= until.get(thread, origin) and thread in last:
                continue  # inside another one
            after = [last[thread]] if thread in last else []
            passed = max(0, begin - until.get(thread, origin))
            if passed and self.timeline.has_times:
                after = [self.out.compute("host", after, passed, thread=thread)]
            if call is None:
                took = max(0, end - max(begin, until.get(thread, origin)))
                last[thread] = self.out.compute(name, after, took, thread=thread)
            else:
                calls = [Communication.of_text(call)]
                node = self.job.write_calls(self.out, self.timeline, name, after, calls, None, place)
                last[thread] = self.out.compute("wait for " + calls[0].kind, [node], 0, thread=thread)
            until[thread] = max(end, until.get(thread, origin))

    def write_enqueued(self):
        """Communications at the times at which the host enqueued them; those of one time and `thread` are in one kernel.
        Calls of one stream, where it is known, run one after another. `traced`: the host waits for each."""
        last, until, on_streams = [], self.timeline.one("SELECT MIN(begin) FROM hosts"), {}
        rows = self.timeline.all("SELECT begin, end, names.name, call, place, thread FROM hosts JOIN names ON names.id = "
                                 "hosts.name ORDER BY begin, thread, hosts.id")
        for (begin, _), of_kernel in itertools.groupby(rows, key=lambda row: (row[0], row[5])):
            of_kernel = list(of_kernel)
            if begin > until:
                last = [self.out.compute("host", last, begin - until, thread=HOST_THREAD)]
            calls = [Communication.of_text(call) for _, _, _, call, _, _ in of_kernel]
            _, _, name, _, place, _ = of_kernel[0]
            streams = {call.stream for call in calls if call.stream is not None}
            before = {on_streams[stream] for stream in streams if stream in on_streams}
            node = self.job.write_calls(self.out, self.timeline, name, [*last, *before], calls, None, place)
            on_streams.update(dict.fromkeys(streams, node))
            until = max(begin, until)
            if self.traced:
                last = [self.out.compute("wait for " + calls[0].kind, [node], 0, thread=HOST_THREAD)]
                until = max(until, *(row[1] for row in of_kernel))

    # Communications ---------------------------------------------------------------------------------------------------

    def calls_of(self, name, stream, external, call, begin, thread, place):
        """The calls that a kernel of NCCL executes: none if kernels before it execute its call, too, None if the trace does
        not say them and the kernel counts as compute."""
        if self.timeline.grouped:
            found = self.calls_since(name, begin, thread)
            if not found and self.count_unknown:
                return None
            if not found:
                raise self.timeline.error(None, f"the kernel '{name[:80]}' at {start_text(begin, self.timeline)} "
                                                "communicates, and no NVTX range of NCCL that says what precedes its "
                                                "launch: profile with --trace=cuda,nvtx, and without CUDA graphs, "
                                                f"whose replayed kernels have no ranges; {AS_COMPUTE}")
            return found
        found = self.recorded_calls(external, begin, thread)
        continues = external is not None and self.last_external.get(stream) == external
        self.last_external[stream] = external
        if found is None or (continues and call is not None and not found):
            return []
        own = Communication.all_of_text(call)
        if not found:
            found = own
        if len(own) == len(found) == 1 and found[0].kind == own[0].kind and found[0].size is None:
            found = own
        if not found or (kind_of_kernel(name) == "messages" and found[0].kind not in MESSAGES):
            grouped = self.grouped_calls(name, begin, thread)
            found = grouped or found
        if found:
            return found
        if continues:
            return []
        if self.count_unknown:
            return None
        raise self.timeline.error(
            place, f"the kernel '{name[:80]}' communicates, and the trace does not say what: it has no 'Collective "
                   f"name' and no record_param_comms that belongs to it. Traces of PyTorch 2.2 and later have them, "
                   f"and so have execution traces beside these files; kernels that a CUDA graph replays have neither: "
                   f"profile without graphs; {AS_COMPUTE}")

    def calls_since(self, name, begin, thread):
        """Calls of NVTX ranges: several calls may be in a group, which is launched at its end."""
        kind = kind_of_kernel(name)
        return self.take("TRUE", begin, thread, MESSAGES if kind == "messages" else (kind,) if kind else None)

    def take(self, which, begin, thread, wanted):
        """Calls of these kinds (None: of all) that the thread made up to the launch of a kernel of NCCL, and after the
        launch before it: kernels of several streams do not start in the order of their launches. A kernel is of one
        communicator (ncclKernelPlan): a group of calls of several launches a kernel for each, one after another in the
        order of their first calls (ncclGroupCommJoin of NCCL's src/include/group.h)."""
        if begin is None:
            return []
        # Some profilers number the threads of launches and of calls differently.
        same = "thread IS :thread"
        known = self.nodes.execute(f"SELECT EXISTS(SELECT 1 FROM calls WHERE used IN (0, 1) AND {same})",
                                   {"thread": thread}).fetchone()[0]
        same = same if known else "TRUE"
        values = {"thread": thread, "begin": begin}
        values["last"] = self.first_of(f"SELECT begin FROM calls WHERE {which} AND {same} AND begin <= :begin "
                                       "ORDER BY begin DESC LIMIT 1", values)
        before = self.first_of(f"SELECT MAX(begin) FROM temp.nccl_launches WHERE {same} AND begin < :last", values)
        at = self.first_of(f"SELECT COUNT(*) FROM temp.nccl_launches WHERE {same} AND begin >= :last AND begin < :begin",
                           values)
        values["after"] = -FARTHEST if before is None else before
        within = f"{which} AND {same} AND begin <= :begin"
        for where in (f"{within} AND begin > :after", f"{within} AND used = 0")[:2 if before is not None and wanted else 1]:
            rows = self.nodes.execute(f"SELECT id, call, used FROM calls WHERE {where} ORDER BY begin, id", values).fetchall()
            calls = [(number, Communication.of_text(call), used) for number, call, used in rows]
            if found := self.of_one_communicator(calls, wanted, at):
                self.nodes.executemany("UPDATE calls SET used = 1 WHERE id = ?", [(number,) for number, _ in found])
                return [call for _, call in found]
        return []

    @staticmethod
    def of_one_communicator(calls, wanted, at):
        """The calls that are left of the communicator in place `at`, or else of the first one that has any."""
        groups = list(dict.fromkeys(call.group for _, call, _ in calls))
        left = [(number, call) for number, call, used in calls if not used and (not wanted or call.kind in wanted)]
        of_place = [(number, call) for number, call in left if groups[at:at + 1] == [call.group]]
        return of_place or [(number, call) for number, call in left if call.group == left[0][1].group]

    def first_of(self, query, values):
        row = self.nodes.execute(query, values).fetchone()
        return row[0] if row else None

    def recorded_calls(self, external, begin, thread):
        """None for a call that an earlier kernel has executed: NCCL divides what one kernel has no room for among several
        (ncclLaunchPrepare of src/enqueue.cc)."""
        row = None
        if external is not None:
            row = self.nodes.execute("SELECT id, call, record, used FROM calls WHERE external = ? AND call IS NOT NULL "
                                     "ORDER BY used, id LIMIT 1", (external,)).fetchone()
        if row is None and begin is not None:
            row = self.nodes.execute("SELECT id, call, record, used FROM calls WHERE begin <= ? AND end >= ? AND thread IS ? "
                                     "AND call IS NOT NULL ORDER BY used, begin DESC LIMIT 1",
                                     (begin, begin, thread)).fetchone()
        if row is None:
            return []
        number, call, record, used = row
        if used:
            return None
        self.nodes.execute("UPDATE calls SET used = 1 WHERE id = ?", (number,))
        found = Communication.of_text(call)
        if found.size is None and record is not None:
            better = self.timeline.one("SELECT call FROM recorded WHERE record = ?", record)
            found = Communication.of_text(better) if better else found
        return [found]

    def grouped_calls(self, name, begin, thread):
        """Calls between the beginning and the end of a group (a coalescing manager, batch_isend_irecv) share one kernel
        and have no own kernels. The name of RCCL's kernel, and of NCCL's generic one, does not say what it does."""
        kind = kind_of_kernel(name)
        wanted = ("send", "recv") if kind == "messages" else (kind,) if kind else None
        return self.take("launched = 0", begin, thread, wanted)
