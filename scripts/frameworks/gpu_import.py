# SPDX-License-Identifier: GPL-2.0-only
"""From the timelines of a job's ranks to an experiment: a Chakra file for each rank beside it."""

import itertools

from importing.errors import InputError
from importing.imported import Imported
from support.console import natural
from support.progress import Progress

from . import own_communication
from .communications import MAX_RANKS
from .job import Calls, Groups, Job, Labels, which_ranks
from .rank_files import GroupNames, RankFile, chakra_workload
from .timeline import Notes, ProgramOfTimeline


class Sink:
    """A file object that discards what is written."""

    def write(self, content):
        pass


def add_gpu_arguments(parser, kernels=True):
    """`kernels`: whether the traces have kernels."""
    parser.add_argument("--ranks", metavar="N", type=natural, help="ranks of the job, if the traces do not say it")
    parser.add_argument("--fill", choices=["symmetric"], help="ranks that were not traced do what a traced one does, "
                        "in their own process groups")
    parser.add_argument("--overlap", choices=["traced", "network"], help="traced: work that had ended before an "
                        "operation began also ends before it in the simulation. network: only waits of the program "
                        "are kept, so that the network decides what overlaps. Default: network if the traces have waits of streams "
                        "(enable_cuda_sync_events), else traced")
    parser.add_argument("--host", choices=["late", "none"], default="late", help="late: the host's work between "
                        "launches and waits is computation where the accelerator waited for it (default); none: the host "
                        "is never late")
    if not kernels:
        return parser.set_defaults(unknown_calls=None)
    parser.add_argument("--unknown-calls", choices=["compute"], help="kernels of NCCL and RCCL of which the trace does not say "
                        "what they send, as those that a CUDA graph replays, are compute of their traced time; otherwise they "
                        "are an error")
    return None


def world_of(options, timelines):
    if options.ranks:
        for timeline in timelines:
            if timeline.world not in (None, options.ranks):
                raise InputError(timeline.path, None, f"it is of a job of {timeline.world} ranks, whose groups and bytes "
                                 f"it has; expected --ranks {timeline.world}, or no --ranks")
        return options.ranks
    for timeline in timelines:
        for rank in (timeline.rank, (timeline.world or 1) - 1, *itertools.chain(*timeline.groups.values())):
            if not 0 <= rank < MAX_RANKS:
                raise InputError(timeline.path, None, f"it has a rank {rank}; expected 0 to {MAX_RANKS - 1}")
    known = [timeline.world or timeline.least for timeline in timelines]
    in_groups = [max(ranks) + 1 for timeline in timelines for ranks in timeline.groups.values() if ranks]
    return max([*known, *in_groups, *(timeline.rank + 1 for timeline in timelines)])


def imported_job(options, timelines, notes, what):
    timelines = sorted(timelines, key=lambda timeline: timeline.rank)
    world = world_of(options, timelines)
    for timeline in timelines:
        # Lists of ranks may have been cut short (saveNcclMeta writes 30): groups of as many ranks as the job has all of them.
        for name, size in timeline.sizes.items():
            if size == world:
                timeline.groups.setdefault(name, [])
    stand_ins = which_ranks(timelines, world, options.fill)
    overlap = options.overlap or ("network" if any(timeline.has_waits for timeline in timelines) else "traced")
    job = Writing(options, timelines, stand_ins, world, notes, overlap)
    job.survey()
    if not any(job.nodes.values()):
        raise InputError(timelines[0].path, None, "no rank has an operation; expected kernels, operators of the host "
                                                  "or communication")
    imported = Imported([options.input] if isinstance(options.input, str) else options.input, world,
                        [f"{what[0].upper()}{what[1:]} of {len(timelines)} of {world} ranks, imported by weft import.",
                         f"Overlap of computation and communication: {overlap}."])
    if job.took:
        imported.title.append(f"In the trace, accelerators took {job.took / 10**9:.6g} ms from their first to their last operation.")
    chakra_workload(imported, world, job.names, job.write)
    for place, text in notes.lines():
        imported.ignore(place, text)
    for place, text in job.unknown.lines() if job.unknown else ():
        imported.refuse(place, text)
    for place, text in [*own_communication.remarks(timelines), *own_communication.left_out(timelines, job.calls.counts)]:
        imported.refuse(place, text)
    imported.counts = job.counts()
    return imported


class Writing:
    """The files of all ranks, each from its own timeline or from that of the rank that represents it."""

    def __init__(self, options, timelines, stand_ins, world, notes, overlap):
        self.timelines, self.stand_ins, self.world, self.notes = timelines, stand_ins, world, notes
        self.traced, self.host = overlap == "traced", options.host == "late"
        self.calls, self.tags, self.overlap = Calls(), {}, overlap
        self.symmetric, self.names = len(timelines) < world, GroupNames(world)
        self.labels, self.groups_of_traced = Labels(), {}
        self.nodes = {}
        self.unknown = Notes() if options.unknown_calls else None
        self.progress = Progress("weft import", not options.quiet)

    @property
    def took(self):
        """Picoseconds from the first operation of an accelerator to its last one in the trace, of the rank that took longest;
        None without times."""
        spans = [timeline.one("SELECT MAX(end) - MIN(start) FROM ops") for timeline in self.timelines if timeline.has_times]
        return max([span for span in spans if span is not None], default=None)

    def groups(self, rank):
        timeline = self.stand_ins[rank]
        groups = self.traced_groups(timeline)
        return groups if rank == timeline.rank else groups.of_rank(rank, timeline)

    def traced_groups(self, timeline):
        if timeline.rank not in self.groups_of_traced:
            self.groups_of_traced[timeline.rank] = Groups(timeline.rank, self.world, timeline.groups)
        return self.groups_of_traced[timeline.rank]

    def work(self):
        """Operations of the accelerators that survey() and write() go through, of all ranks."""
        count = {timeline.rank: timeline.one("SELECT COUNT(*) FROM ops") for timeline in self.timelines}
        return sum(count.values()) + sum(count[timeline.rank] for timeline in self.stand_ins.values())

    def survey(self):
        """Reads every trace once to find contradictions before anything is written."""
        kept, self.notes = self.notes, Notes()
        self.progress.begin(f"checking and writing {self.world} ranks", self.work())
        for timeline in self.timelines:
            count = self.calls.counter(timeline.rank, timeline.path)
            self.nodes[timeline.rank] = self.program(timeline.rank, Sink(), count)
        kept.found.update(self.notes.found)
        self.notes = Notes()
        if not self.symmetric:
            self.calls.check()

    def program(self, rank, file, count=None):
        timeline = self.stand_ins[rank]
        groups = self.groups(rank)
        own, traced, labels = {}, groups, {}
        if self.symmetric:
            traced = self.traced_groups(timeline)
            own = {name: ranks.index(timeline.rank) for name, ranks in traced.own().items()}
            own["0"] = own.get("0", timeline.rank)
            labels = self.labels.of(traced)
        timeline.database.execute("UPDATE calls SET used = 0")
        out = RankFile(file)
        job = Job(groups, self.tags, self.names, own, count, traced, labels)
        unknown = self.unknown if count or self.unknown is None else Notes()
        ProgramOfTimeline(timeline, out, job, self.notes, self.traced and timeline.has_times, self.host,
                          self.progress, unknown).write()
        return out.next

    def write(self, rank, file):
        if rank == 0:
            # Numbers of groups and tags are in the order of ranks, whichever of them were traced.
            self.names.clear()
            self.tags.clear()
        self.program(rank, file)
        if rank + 1 == self.world:
            self.progress.end()

    def counts(self):
        took = {} if self.took is None else {"traced_seconds": self.took / 10**12}
        return {"traced_ranks": [timeline.rank for timeline in self.timelines], **took, "overlap": self.overlap,
                "calls": dict(sorted(self.calls.counts.items())), "call_bytes": dict(sorted(self.calls.sizes.items()))}
