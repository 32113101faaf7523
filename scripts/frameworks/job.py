# SPDX-License-Identifier: GPL-2.0-only
"""The ranks of a job together: process groups, tags, ranks that were not traced, and the calls of all ranks side by
side."""

import itertools

from importing.errors import InputError, StudyError

from .communications import aligned_group, coordinates, group_of
from .rank_files import MOST

COLLECTIVE_TAG, MESSAGE_TAG = 0, 1
DIGITS = 9  # of PyTorch's numbers of process groups


class Groups:
    """The process groups of one rank, by name."""

    def __init__(self, rank, world, named):
        self.rank, self.world = rank, world
        self.named = {name: list(ranks) or list(range(world)) for name, ranks in named.items()}
        self.known_shapes = None

    def ranks(self, name):
        """None for a group that is not known."""
        return self.named.get(name) or (list(range(self.world)) if name in ("", "0") else None)

    def own(self):
        """The groups that the rank is in."""
        return {name: ranks for name, ranks in self.named.items() if self.rank in ranks}

    def shapes(self):
        """{name: axes} of the rank's groups, None for those that are no row, column or block of the mesh."""
        if self.known_shapes is None:
            self.known_shapes = {name: aligned_group(ranks, self.world) for name, ranks in self.own().items()}
        return self.known_shapes

    def of_rank(self, other, timeline):
        """The groups of a rank that was not traced: the same division of ranks into rows, columns and blocks. Groups that
        no operation uses need none."""
        moved, shapes, own = {}, self.shapes(), self.own()
        for name in timeline.called_groups() & own.keys():
            axes = shapes[name]
            moved[name] = group_of(other, axes) if axes else self.part(own[name], other, shapes)
            if moved[name] is None:
                raise InputError(timeline.path, None, f"--fill symmetric: process group '{name}' is {brief(own[name])} of "
                                 f"{self.world} ranks, which is no row or column, and nothing says which ranks rank {other} "
                                 f"has instead; trace a rank of each group")
        return Groups(other, self.world, moved)

    def part(self, ranks, other, shapes):
        """Some members of a row or column, as the first and the last stage of a pipeline: those of the other rank's, if it
        is in the same place of its own."""
        for name in sorted(shapes, key=lambda name: len(self.named[name])):
            whole, axes = self.named[name], shapes[name]
            if axes and set(ranks) <= set(whole) and coordinates(other, axes) == coordinates(self.rank, axes):
                there = group_of(other, axes)
                return [there[whole.index(rank)] for rank in ranks]
        return None


class Labels:
    """Names of the process groups of a job of which some ranks were traced. PyTorch's are other ones in each row of a
    mesh: here all rows have the name in the first trace. Groups of one shape are told apart by the order in which they
    were created, which is the same on all ranks: by PyTorch's numbers, or else as the trace lists them (NCCL's numbers
    of 64 bits have no order)."""

    def __init__(self):
        self.names, self.known = {}, {}

    def of(self, groups):
        """{name: label} of a traced rank."""
        if groups.rank in self.known:
            return self.known[groups.rank]
        found, shapes, counts = {}, groups.shapes(), {}
        own = groups.own()
        for name in sorted(own, key=lambda name: int(name) if name.isdecimal() and len(name) <= DIGITS else 10**DIGITS):
            shape = shapes[name] or ("part", len(own[name]))
            counts[shape] = counts.get(shape, -1) + 1
            found[name] = name if name in ("", "0") else self.names.setdefault((shape, counts[shape]), name)
        self.known[groups.rank] = found
        return found


class Job:
    """Writes the calls of one rank. `count` is called with each (kind, group, bytes, number of the call, place). A
    group is (name, ranks): several may have the same ranks, and the calls of each have an order of their own."""

    def __init__(self, groups, tags, names, symmetric=False, count=None, traced=None, labels=None):
        """Of a rank that was not traced, `traced` are the groups of the rank whose calls it makes, and `labels` their
        names in the job."""
        self.groups, self.tags, self.names, self.symmetric = groups, tags, names, symmetric
        self.traced, self.labels = traced or groups, labels or {}
        self.count = count or (lambda *_: None)

    def write_calls(self, out, timeline, name, after, calls, stream, place):
        """The node with whose end all calls have ended."""
        if len(calls) == 1 and calls[0].kind not in ("send", "recv") and not calls[0].sends:
            return self.write_collective(out, timeline, name, after, calls[0], stream, place)
        if len(calls) == 1 and not calls[0].sends:
            return self.write_message(out, timeline, name, after, calls[0], stream, place)
        nodes = set(after)
        for call in calls:
            if call.sends:
                nodes |= self.write_uneven(out, timeline, name, after, call, place)
            elif call.kind in ("send", "recv"):
                nodes.add(self.write_message(out, timeline, name, after, call, None, place))
            else:
                nodes.add(self.write_collective(out, timeline, name, after, call, None, place))
        return out.compute(name, nodes, 0, stream)

    def members(self, timeline, call, place):
        ranks = self.groups.ranks(call.group)
        if ranks is None:
            raise timeline.error(place, f"process group '{call.group}' is not known: no distributedInfo, no 'Process "
                                        f"Group Ranks' (torch.profiler cuts lists of more than 30 short) and no "
                                        f"process_group:init says which ranks it has")
        if self.groups.rank not in ranks:
            raise timeline.error(place, f"rank {self.groups.rank} calls {call.kind} of process group '{call.group}', "
                                        f"whose ranks are {ranks}")
        return ranks

    def key(self, call, ranks):
        """A group among those of the job. The group of all ranks is "" or "0" if the trace does not name it."""
        return self.labels.get(call.group, call.group) or "0", tuple(ranks)

    @staticmethod
    def check_size(timeline, name, call, place):
        if call.cut:
            raise timeline.error(place, f"'{name[:80]}': the split sizes of this all_to_all have been cut short, as "
                                        "torch.profiler does beyond 30 ranks; execution traces (ExecutionTraceObserver) "
                                        "beside these files have all of them")
        if call.size is None:
            raise timeline.error(place, f"'{name[:80]}': the trace does not say how many bytes this {call.kind} has")
        if not 0 <= call.size <= MOST:
            raise timeline.error(place, f"'{name[:80]}': {call.kind} of {call.size} bytes; expected 0 to 2^63 - 1")

    def write_collective(self, out, timeline, name, after, call, stream, place):
        ranks = self.members(timeline, call, place)
        self.check_size(timeline, name, call, place)
        if call.root >= len(ranks):
            raise timeline.error(place, f"{call.kind} has the root {call.root} in a process group of {len(ranks)}")
        self.count(call.kind, self.key(call, ranks), call.size, call.root, place)
        return out.collective(name, after, call.kind, call.size, self.names.of(*self.key(call, ranks)), stream, call.root)

    def tag(self, call, ranks, purpose):
        return 2 * self.tags.setdefault(self.key(call, ranks), len(self.tags)) + purpose

    def write_message(self, out, timeline, name, after, call, stream, place):
        ranks = self.members(timeline, call, place)
        # As the traced rank has it, and then the member of this rank's group in the same place.
        traced, peer = self.traced.ranks(call.group), call.peer
        if peer is None and call.peer_position is not None and 0 <= call.peer_position < len(traced):
            peer = traced[call.peer_position]
        elif peer is None and call.peer_position is None and len(traced) == 2:
            peer = next(rank for rank in traced if rank != self.traced.rank)
        if traced is not ranks and peer is not None:
            peer = ranks[traced.index(peer)] if peer in traced else None
        if peer is None or peer == self.groups.rank or not 0 <= peer < self.groups.world:
            end = f"rank {peer}"
            if peer is None:
                end = ("not said" if call.peer_position is None else
                       f"member {call.peer_position} of a process group in which {len(ranks)} ranks were traced")
            raise timeline.error(place, f"'{name[:80]}': a {call.kind} whose other end is {end}; expected another rank")
        self.check_size(timeline, name, call, place)
        self.count(call.kind, self.key(call, ranks), call.size, peer, place)
        tag = self.tag(call, ranks, MESSAGE_TAG)
        return out.message(name, after, call.kind == "send", call.size, peer, tag, stream)

    def write_uneven(self, out, timeline, name, after, call, place):
        """An all-to-all of different sizes: NCCL's is a send to and a receive from each, too (no bytes, no message)."""
        ranks = self.members(timeline, call, place)
        own = ranks.index(self.groups.rank)
        sends, receives = call.sends, call.receives
        if len(sends) != len(ranks) or len(receives) != len(ranks):
            raise timeline.error(place, f"{len(sends)} and {len(receives)} split sizes in a group of {len(ranks)}")
        if max(*sends, *receives) > MOST:
            raise timeline.error(place, f"'{name[:80]}': {max(*sends, *receives)} bytes to or from one rank; expected "
                                        "0 to 2^63 - 1")
        self.count("all_to_all", self.key(call, ranks), sum(sends), (tuple(sends), tuple(receives)), place)
        tag = self.tag(call, ranks, COLLECTIVE_TAG)
        nodes = set()
        if self.symmetric:
            # This rank sends as many bytes to its next neighbour as the traced rank, and gets as many from the previous
            # one.
            traced = self.symmetric.get(call.group, own)
            at = len(ranks)
            sends = [sends[(traced + i - own) % at] for i in range(at)]
            receives = [sends[(2 * own - i) % at] for i in range(at)]
        for peer, size in zip(ranks, sends):
            if size and peer != self.groups.rank:
                nodes.add(out.message(f"{name} to {peer}", after, True, size, peer, tag))
        for peer, size in zip(ranks, receives):
            if size and peer != self.groups.rank:
                nodes.add(out.message(f"{name} from {peer}", after, False, size, peer, tag))
        return nodes


class Calls:
    """The calls of all ranks in a few bytes each: all members of a group must have the same calls in the same order."""

    def __init__(self):
        self.of_groups = {}  # group: [number of the kind of call, ...]
        self.shapes, self.first = {}, {}
        self.found = {}  # (group, rank): number of calls - 1; ranks are read in ascending order
        self.counts, self.sizes = {}, {}
        self.paths = {}

    def counter(self, rank, path):
        self.paths[rank] = path

        def count(kind, group, size, detail, place):
            self.counts[kind] = self.counts.get(kind, 0) + 1
            self.sizes[kind] = self.sizes.get(kind, 0) + size
            if kind not in ("send", "recv"):
                self.compare(rank, path, group, kind, size, detail, place)

        return count

    def compare(self, rank, path, group, kind, size, detail, place):
        at = self.found[group, rank] = self.found.get((group, rank), -1) + 1
        uneven = isinstance(detail, tuple)
        shape = (kind, None if uneven or kind in ("barrier", "scatter", "gather") else size, None if uneven else detail)
        number = self.shapes.setdefault(shape, len(self.shapes))
        calls = self.of_groups.setdefault(group, [])
        if at == len(calls):
            calls.append(number)
        elif calls[at] != number:
            other = next(one for one, value in self.shapes.items() if value == calls[at])
            raise InputError(path, place, f"call {at} of the group {brief(group[1])} is {said(shape)} on rank {rank}, "
                             f"and {said(other)} on {self.who_makes(group, at)}; all ranks of a group make the same "
                             "calls in the same order")

    def who_makes(self, group, at):
        """The first rank that makes call `at` of a group."""
        rank = next(one for one in sorted(group[1]) if self.found.get((group, one), -1) >= at)
        return f"rank {rank} ({self.paths[rank]})"

    def check(self):
        """Every rank has all calls of its groups."""
        for group, calls in self.of_groups.items():
            for rank in group[1]:
                count = self.found.get((group, rank), -1) + 1
                if count != len(calls):
                    made = f"{count} call{'' if count == 1 else 's'}"
                    raise StudyError(f"{self.paths.get(rank, f'rank {rank}')}: rank {rank} makes {made} in the "
                                     f"group {brief(group[1])}, and {self.who_makes(group, len(calls) - 1)} "
                                     f"{len(calls)}: the traces do not have the same steps")


def brief(ranks):
    return f"[{', '.join(map(str, itertools.islice(ranks, 8)))}{', ...' if len(ranks) > 8 else ''}]"


def said(shape):
    kind, size, detail = shape
    return f"{kind}{'' if size is None else f' of {size} B'}{f' with root {detail}' if detail else ''}"


class MissingRanks(StudyError):
    """There is no trace of some ranks."""


def which_ranks(timelines, world, fill):
    """{rank: the timeline that represents it}; an error that names the missing ranks."""
    have = {}
    for timeline in timelines:
        if timeline.rank in have:
            raise InputError(timeline.path, None, f"it is of rank {timeline.rank}, and so is "
                                                  f"{have[timeline.rank].path}; expected one trace of each rank, and those "
                                                  "of another step or run in a folder of their own")
        have[timeline.rank] = timeline
    beyond = [rank for rank in have if rank >= world]
    if beyond:
        raise InputError(have[beyond[0]].path, None, f"it is of rank {beyond[0]}, and the job has ranks 0 to "
                                                     f"{world - 1}")
    missing = [rank for rank in range(world) if rank not in have]
    if missing and fill != "symmetric":
        raise MissingRanks(f"{timelines[0].path}: the job has {world} ranks, and of ranks {brief(missing)} there is no "
                           f"trace; give all of them, or --fill symmetric if they do what the others do")
    if not missing:
        return have
    traced = [Traced(timeline, world) for _, timeline in sorted(have.items())]
    return {rank: have.get(rank) or stand_in(rank, traced) for rank in range(world)}


class Traced:
    """A traced rank that may stand for others. `axes` are those of its groups that do not have all ranks, `stages` of
    those in which it sends or receives."""

    def __init__(self, timeline, world):
        self.timeline, self.rank, self.stages = timeline, timeline.rank, {}
        groups = Groups(timeline.rank, world, timeline.groups)
        shapes = groups.shapes()
        self.axes = [shapes[name] for name in shapes if shapes[name] and len(groups.ranks(name)) < world]
        for name in timeline.message_groups():
            ranks = groups.ranks(name)
            if ranks is None or timeline.rank not in ranks:
                continue  # an error where it is called
            self.stages[name] = aligned_group(ranks, world)
            if self.stages[name] is None:
                raise InputError(timeline.path, None, f"--fill symmetric: process group '{name}', in which messages are "
                                 f"sent, is {brief(ranks)} of {world} ranks, which is no row or column; trace all ranks")

    def same_place(self, rank, axes):
        return coordinates(rank, axes) == coordinates(self.rank, axes)


def stand_in(rank, traced):
    """A traced rank that is in the same place in all groups in which it sends or receives, since stages of a pipeline
    differ; of these one that is in the same place of most other groups, and then of its server."""
    fits = [one for one in traced if all(one.same_place(rank, axes) for axes in one.stages.values())]
    if not fits:
        raise StudyError(f"{traced[0].timeline.path}: --fill symmetric: no traced rank is in the place of rank {rank} in "
                         f"the process group '{next(iter(traced[0].stages))}', in which messages are sent; trace a rank "
                         f"of each stage of the pipeline")
    return min(fits, key=lambda one: (-sum(one.same_place(rank, axes) for axes in one.axes),
                                      (rank - one.rank) % len(traced), one.rank)).timeline
