# SPDX-License-Identifier: GPL-2.0-only
"""ncclCommSplit of NCCL: which communicator comes out of a call, and which ranks it has."""

from dataclasses import dataclass

from .communications import group_of

MASK = (1 << 64) - 1
MOST_SPLITS = 4096  # of one communicator


@dataclass(frozen=True)
class Split:
    """A call of one rank; ranks of one color share a communicator, in which they stand by key, then by position."""

    parent: str
    position: int  # in the parent
    color: int
    key: int


def eat(state, value, size):
    """eatHash of NCCL (src/include/bitops.h), for numbers of at most eight bytes."""
    a, b = state
    a ^= size
    a = (a + b) & MASK
    b ^= a
    a ^= a >> 31
    a = a * 0x9DE62BBC8CEF3CE3 & MASK
    b ^= b >> 32
    b = b * 0x485CD6311B599E79 & MASK
    return (a + (value & ((1 << 8 * size) - 1))) & MASK, b


def digest(state):
    """digestHash of NCCL."""
    a, b = state
    a ^= a >> 31
    a = a * 0xBAC3BD562846DE6B & MASK
    a = (a + b) & MASK
    a ^= a >> 32
    return a * 0x995A187A14E7B445 & MASK


def hashes_of(parent, color, first):
    """(number of the split, id of the communicator that comes out) from the `first` split of a communicator on:
    commHash in ncclCommInitRankFunc (src/init.cc of NCCL). All ranks of the parent take part in a split, so that they
    agree on its number."""
    begun = eat((1, 1), parent, 8)
    for number in range(first, first + MOST_SPLITS):
        yield number, digest(eat(eat(begun, number, 4), color, 4))


class Splits:
    """Those of one GPU, in the order of its calls."""

    def __init__(self):
        self.calls = []  # (its communicator's id as the range has it, Split)

    def add(self, own, split):
        self.calls.append((own, split))

    def of_communicators(self, called):
        """{communicator: its Split}, of the communicators that are called. NCCL writes a range's payload before the
        communicator has its id (0), which follows from that of its parent."""
        found, last = {}, {}
        for own, split in self.calls:
            if own:
                found[str(own)] = split
                continue
            for number, name in hashes_of(int(split.parent), split.color, last.get(split.parent, 0) + 1):
                if str(name) in called and str(name) not in found:
                    found[str(name)], last[split.parent] = split, number
                    break
        return found


def color_of_pytorch(ranks):
    """_process_group_color of torch/distributed/distributed_c10d.py, which PyTorch gives to ncclCommSplit. CPython has
    the same hash of a tuple of whole numbers in each process and in all versions since 3.8."""
    return abs(hash(tuple(ranks))) % (1 << 31)


def groups_around(rank, world):
    """Rows, columns and blocks of two of the ranks of a mesh that a rank is in."""
    axes = [(stride, size) for stride in range(1, world) if world % stride == 0
            for size in range(2, world // stride + 1) if world % (stride * size) == 0]
    yield from (group_of(rank, (axis,)) for axis in axes)
    yield from (group_of(rank, (inner, outer)) for inner in axes for outer in axes
                if outer[0] > inner[0] * inner[1] and outer[0] % (inner[0] * inner[1]) == 0)


def group_of_color(color, members, strangers, world):
    """The ranks that have PyTorch's color: with the `members`, and without `strangers`, which have another one. None if
    no group has it."""
    for group in groups_around(members[0], world):
        if color_of_pytorch(group) == color and set(members) <= set(group) and not set(strangers) & set(group):
            return group
    return None
