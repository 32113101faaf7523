# SPDX-License-Identifier: GPL-2.0-only
"""A run as a trace that Perfetto and chrome://tracing show: operations of ranks and collectives as slices, links as
counters. The format is the Trace Event Format of Chrome, as a JSON object.

Times of events are whole nanoseconds, given in microseconds as the format wants it. Programs that show a trace also use
nanoseconds: slices that touch in picoseconds still touch there, and never overlap. The picoseconds are in `args`."""

import json
import math
import zlib

from weft_commands.slices import Exposure, Lanes, lanes_of, rank_by_rank
from weft_commands.trace_counters import write_counters

COLLECTIVES, LINKS = 1 << 20, 1 << 21  # process numbers; those of jobs are 1, 2, ...
KINDS = ["compute", "collective", "send", "receive", "host"]
TRACKS = ["compute", "collectives", "sends", "receives", "host"]
KNOWN = ["rank", "operation", "start", "end", "kind", "collective", "label"]
EVENTS_PER_WRITE = 4096


def microseconds(picoseconds):
    """Whole nanoseconds, in microseconds: 1234567 is 1.234."""
    sign, nanoseconds = ("-", -(-picoseconds // 1000)) if picoseconds < 0 else ("", picoseconds // 1000)
    return f"{sign}{nanoseconds // 1000}.{nanoseconds % 1000:03}"


class Packer:
    """A file that packs as gzip does, and writes the same bytes at any time: no name and no date (RFC 1952)."""

    def __init__(self, file):
        self.file, self.packer = file, zlib.compressobj(6, zlib.DEFLATED, 31)

    def write(self, data):
        self.file.write(self.packer.compress(data))

    def close(self):
        self.file.write(self.packer.flush())


class Trace:
    """Writes events one by one, each on its own line."""

    def __init__(self, file):
        self.file, self.lines, self.texts, self.tracks, self.begun = file, [], {}, {}, False
        self.events = 0

    def text(self, value):
        """A text as JSON. Labels repeat often."""
        if value not in self.texts:
            if len(self.texts) > 100000:
                self.texts.clear()
            self.texts[value] = json.dumps(value)
        return self.texts[value]

    def write(self, line):
        self.lines.append(line)
        self.events += 1
        if len(self.lines) >= EVENTS_PER_WRITE:
            self.flush()

    def flush(self):
        if self.lines:
            self.file.write(((",\n" if self.begun else "") + ",\n".join(self.lines)).encode())
            self.begun, self.lines = True, []

    def begin(self, facts):
        self.file.write(f'{{"displayTimeUnit": "ns", "otherData": {json.dumps(facts)}, "traceEvents": [\n'.encode())

    def end(self):
        self.flush()
        self.file.write(b"\n]}\n")

    def name_process(self, process, name, place):
        self.metadata("process_name", process, 0, "name", name)
        self.metadata("process_sort_index", process, 0, "sort_index", place)

    def metadata(self, what, process, track, key, value):
        self.write(f'{{"ph": "M", "pid": {process}, "tid": {track}, "name": "{what}", '
                   f'"args": {{"{key}": {json.dumps(value)}}}}}')

    def track(self, process, name):
        """The number of a track, which is created if necessary. Tracks are in the order in which they were created."""
        key = process, name
        if key not in self.tracks:
            number = len(self.tracks) + 1
            self.tracks[key] = number
            self.metadata("thread_name", process, number, "name", name)
            self.metadata("thread_sort_index", process, number, "sort_index", number)
        return self.tracks[key]

    def slice(self, process, track, name, category, start, end, arguments):
        """`arguments` are JSON already."""
        first = microseconds(start)
        length = microseconds((end // 1000 - start // 1000) * 1000)
        self.write(f'{{"ph": "X", "pid": {process}, "tid": {track}, "name": {self.text(name)}, "cat": "{category}", '
                   f'"ts": {first}, "dur": {length}, "args": {{{arguments}}}}}')

    def counter(self, process, name, time, value):
        self.write(f'{{"ph": "C", "pid": {process}, "tid": 0, "name": {self.text(name)}, "ts": {microseconds(time)}, '
                   f'"args": {{"value": {value}}}}}')


class Jobs:
    """The process of the trace for a rank, and for a collective."""

    def __init__(self, run):
        self.names = {}
        if run.has("jobs", "job", "name", "first_rank", "ranks"):
            jobs = run.table("jobs", ["job", "name", "first_rank", "ranks"])
            for job, name, first, ranks in zip(*(jobs[column].tolist() for column in jobs)):
                last = first + ranks - 1
                self.names[job] = f"{name}: rank {first}" if first == last else f"{name}: ranks {first} to {last}"
        self.of_rank = {}
        if run.has("ranks", "rank", "job"):
            ranks = run.table("ranks", ["rank", "job"])
            self.of_rank = dict(zip(ranks["rank"].tolist(), ranks["job"].tolist()))
        self.named = set()

    def process(self, trace, job, offset=1, suffix=""):
        process = offset + job
        if process not in self.named:
            self.named.add(process)
            trace.name_process(process, f"{self.names.get(job, f'job {job}')}{suffix}", process)
        return process

    def of(self, trace, rank):
        return self.process(trace, self.of_rank.get(rank, 0))


def as_json(value):
    """JSON has no notation for not-a-number."""
    return "null" if isinstance(value, float) and not math.isfinite(value) else json.dumps(value)


def json_values(columns):
    """Rows of further columns as the inside of JSON objects."""
    names = [json.dumps(name) for name in columns]
    lists = [values.tolist() for values in columns.values()]
    for row in zip(*lists):
        yield "".join(f", {name}: {as_json(value)}" for name, value in zip(names, row))


def kind_name(kind, names):
    return names[kind] if kind < len(names) else f"{names[-1]} of kind {kind}"


def track_names(rank, rows):
    """The track of each operation: by its stream if the file has it, otherwise by its kind."""
    by_kind = [kind_name(kind, TRACKS) for kind in rows["kind"].tolist()]
    streams = rows["stream"].tolist() if "stream" in rows else ["none"] * len(by_kind)
    return [f"rank {rank}, {kind if stream in ('none', '') else stream_name(stream)}"
            for kind, stream in zip(by_kind, streams)]


def stream_name(stream):
    return stream if isinstance(stream, str) else f"stream {stream}"


def write_operations(run, trace, jobs):
    """Writes all operations. Returns the Exposure of the collectives."""
    exposure = Exposure()
    if not run.has("operations", *KNOWN):
        return exposure
    for rank, rows in rank_by_rank(run):
        write_rank(trace, jobs.of(trace, rank), rank, rows, exposure)
    return exposure


def write_rank(trace, process, rank, rows, exposure):
    exposed = exposure.add(rows)
    further = {name: values for name, values in rows.items() if name not in KNOWN}
    extra = list(json_values(further)) if further else [""] * len(exposed)
    tracks, starts, ends = track_names(rank, rows), rows["start"].tolist(), rows["end"].tolist()
    kinds, labels = rows["kind"].tolist(), rows["label"].tolist()
    numbers, collectives = rows["operation"].tolist(), rows["collective"].tolist()
    lanes = {}
    for name in dict.fromkeys(tracks):
        trace.track(process, name)
    for i in sorted(range(len(starts)), key=lambda i: (starts[i], ends[i], numbers[i])):
        lane = lanes.setdefault(tracks[i], Lanes()).place(starts[i] // 1000, ends[i] // 1000)
        track = trace.track(process, tracks[i] if lane == 0 else f"{tracks[i]} ({lane + 1})")
        kind = kind_name(kinds[i], KINDS)
        times = f'"operation": {numbers[i]}, "start_ps": {starts[i]}, "end_ps": {ends[i]}'
        if kind in KINDS[1:4]:
            times += f', "exposed_ps": {exposed[i]}'
        if collectives[i] >= 0:
            times += f', "collective": {collectives[i]}'
        trace.slice(process, track, labels[i] or kind, kind, starts[i], ends[i], times + extra[i])


def collective_lanes(run):
    """{id: track} of the calls that ended; on a track no call of a job overlaps another."""
    calls = run.table("collectives", ["id", "job", "start", "end"])
    found = {}
    for job in sorted(set(calls["job"].tolist())):
        mine = (calls["job"] == job) & (calls["start"] >= 0) & (calls["end"] >= calls["start"])
        lanes = lanes_of((calls["start"][mine] // 1000).tolist(), (calls["end"][mine] // 1000).tolist())
        found |= zip(calls["id"][mine].tolist(), lanes)
    return found


def write_collectives(run, trace, jobs, exposure):
    """Writes all calls, with one process per job; without calls that no rank finished."""
    if not run.has("collectives", "id", "job", "kind", "label", "start", "end"):
        return
    lanes = collective_lanes(run)
    for block in run.blocks("collectives"):
        further = json_values({name: values for name, values in block.items() if name not in ("start", "end", "label")})
        rows = zip(*(block[name].tolist() for name in ("id", "job", "kind", "label", "start", "end")), further)
        for number, job, kind, label, start, end, extra in rows:
            if number not in lanes:
                continue
            process = jobs.process(trace, job, COLLECTIVES, ", collectives")
            track = trace.track(process, f"calls ({lanes[number] + 1})" if lanes[number] else "calls")
            arguments = f'"start_ps": {start}, "end_ps": {end}{exposure.as_json(number)}{extra}'
            trace.slice(process, track, label or kind, "collective", start, end, arguments)


def facts_of(run):
    """Attributes that are the same for every run of the experiment."""
    names = ["fingerprint", "simulated_time"]
    facts = {name: run.attributes[name] for name in names if name in run.attributes}
    manifest = run.attributes_of("manifest")
    facts |= {name: manifest[name] for name in ("version", "experiment_file", "seed") if name in manifest}
    return {**facts, "complete": int(run.complete)}


def write_trace(run, file, links):
    """Writes the whole trace of the run as JSON. Returns the number of events."""
    trace, jobs = Trace(file), Jobs(run)
    trace.begin(facts_of(run))
    exposure = write_operations(run, trace, jobs)
    write_collectives(run, trace, jobs, exposure)
    write_counters(run, trace, links, LINKS)
    trace.end()
    return trace.events
