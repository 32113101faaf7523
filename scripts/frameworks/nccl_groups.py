# SPDX-License-Identifier: GPL-2.0-only
"""Ranks of the job and of NCCL's communicators, from the positions of GPUs in them. A GPU has

timeline        frameworks.timeline.Timeline, of which rank, world and groups are set
positions       {communicator: position of the GPU in it}, of those whose creation was recorded
sizes           {communicator: number of its ranks}
communicators   those that it calls
splits          {communicator: frameworks.nccl_splits.Split}"""

from importing.errors import InputError

from .communications import group_of
from .job import brief
from .nccl_splits import group_of_color


def number_ranks(gpus, world, notes, source):
    """Ranks by their positions in the communicator of all, if its creation was recorded, otherwise in the order of
    `gpus`. `source` names what was read in errors. Returns {communicator: (its GPUs, number of ranks)}."""
    everybody = [name for name in gpus[0].positions if all(name in gpu.positions for gpu in gpus)
                 and gpus[0].sizes[name] in (None, world)]
    positions = [gpu.positions[everybody[0]] for gpu in gpus] if everybody else []
    known = len(set(positions)) == len(gpus) and all(0 <= one < world for one in positions)
    for number, gpu in enumerate(gpus):
        gpu.timeline.rank, gpu.timeline.world = positions[number] if known else number, world
    named = {name: None for gpu in gpus for name in gpu.communicators}
    found = {name: Members(name, gpus, source) for name in named}
    sized = {}
    for name, members in found.items():
        ranks = members.ranks(gpus, world, found.values(), notes)
        for gpu in members.gpus:
            gpu.timeline.groups[name] = ranks
        sized[name] = members.gpus, len(ranks) or world
    return sized


class Members:
    """The traced GPUs of a communicator: those that call it, or whose creation of it was recorded."""

    def __init__(self, name, gpus, source):
        self.name, self.source = name, source
        self.gpus = [gpu for gpu in gpus if name in gpu.communicators or name in gpu.positions]
        self.path = self.gpus[0].timeline.path
        self.positions = {gpu.timeline.rank: gpu.positions.get(name) for gpu in self.gpus}
        self.size = next((gpu.sizes[name] for gpu in self.gpus if gpu.sizes.get(name)), None)
        self.splits = {gpu.timeline.rank: gpu.splits[name] for gpu in self.gpus if name in gpu.splits}

    def ordered(self):
        at = self.positions
        return sorted(at, key=lambda rank: (at[rank] is None, at[rank] or 0, rank))

    def of_split(self, gpus, world):
        """Ranks of a communicator that ncclCommSplit has made: those of its color, by their keys (commGetSplitInfo in
        src/init.cc of NCCL)."""
        split = next(iter(self.splits.values()))
        traced = [gpu for gpu in gpus if split.parent in gpu.positions]
        strangers = [gpu.timeline.rank for gpu in traced if gpu.timeline.rank not in self.splits]
        parent_size = next((gpu.sizes[split.parent] for gpu in traced if gpu.sizes.get(split.parent)), world)
        ordered = sorted(self.splits, key=lambda rank: (self.splits[rank].key, self.splits[rank].position))
        if len(traced) == parent_size:
            return ordered
        ranks = group_of_color(split.color, ordered, strangers, world)
        if ranks is None:
            raise InputError(self.path, None, f"communicator {self.name} has the ranks that gave the color {split.color} to "
                             f"ncclCommSplit; of the {parent_size} ranks of communicator {split.parent}, {len(traced)} were "
                             f"traced, and the others' colors are not in the {self.source}; give the {self.source}s of all GPUs")
        return ranks

    def ranks(self, gpus, world, others, notes):
        """Those of the job, [] for all of them. Of a communicator of which not all GPUs were traced they follow from the
        positions of those that were."""
        traced = len(gpus)
        if self.splits and self.name not in self.gpus[0].positions and len(self.splits) == len(self.gpus):
            ranks = self.of_split(gpus, world)
            return [] if ranks == list(range(world)) else ranks
        if self.name == "0" or self.size == world:
            ranks = self.ordered()
            return ranks if len(ranks) == world and ranks != list(range(world)) else []
        if traced == world or self.size in (None, len(self.gpus)):
            return self.ordered() if traced == world or self.size else self.assumed(world, traced, notes)
        strides = [stride for stride in range(1, world // self.size + 1)
                   if world % (stride * self.size) == 0 and
                   all(one.fits(stride) for one in others if one.size == self.size and len(one.gpus) < one.size)]
        if len(strides) != 1:
            which = "several rows and columns" if strides else "no row or column"
            raise InputError(self.path, None, f"communicator {self.name} has {self.size} of {world} ranks, and of these "
                             f"{brief(self.ordered())} were traced: {which} of the ranks would have them in their places; "
                             f"give {self.source}s of more GPUs")
        return group_of(self.gpus[0].timeline.rank, ((strides[0], self.size),))

    def fits(self, stride):
        """Whether all traced members are in their places of one row."""
        rows = {tuple(group_of(rank, ((stride, self.size),))) for rank in self.positions}
        return len(rows) == 1 and all(place is None or next(iter(rows))[place % self.size] == rank
                                      for rank, place in self.positions.items())

    def assumed(self, world, traced, notes):
        """Of a communicator whose creation was not recorded, if not all GPUs were traced."""
        if len(self.gpus) == 1:
            raise InputError(self.path, None, f"one traced GPU calls communicator {self.name}, whose creation "
                             f"(ncclCommInitRank) is not in the {self.source}, so that nothing says which ranks it has: "
                             f"give the {self.source}s of all GPUs, or record from the start of the program")
        everybody = len(self.gpus) == traced
        notes.add(f"communicators whose creation (ncclCommInitRank) is not in the {self.source} are taken to have "
                  f"{f'all {world} ranks' if everybody else 'only the ranks that were traced'}", self.path)
        return [] if everybody else self.ordered()
