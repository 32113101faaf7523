# SPDX-License-Identifier: GPL-2.0-only
"""Calls of torch.distributed and NCCL, as profilers name them."""

import json
import re
from dataclasses import dataclass, field

from .elements import element_size

# Beginnings of names, without blanks, underscores and case: torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp of PyTorch
# (RECORD_PARAM_COMMS), and the names of NCCL's kernels and functions.
KINDS = (("allreduce", "all_reduce"), ("allgather", "all_gather"), ("reducescatter", "reduce_scatter"),
         ("alltoall", "all_to_all"), ("broadcast", "broadcast"), ("bcast", "broadcast"), ("reduce", "reduce"),
         ("barrier", "barrier"), ("gather", "gather"), ("scatter", "scatter"), ("sendrecv", "messages"),
         ("send", "send"), ("recv", "recv"), ("receive", "recv"))
NCCL_KERNEL = re.compile(r"(?:nccl|rccl)\w*?[Kk]ernel\w*?_([A-Za-z]+)|^nccl:?_?([a-z_]+)")
PARAMETERS_NODE = "record_param_comms"
TRUNCATED = "..."
MAX_RANKS = 1 << 17


@dataclass
class Communication:
    """One call of one rank. `size` is the input of the rank in bytes (of a gather: its own block; of a scatter: all
    blocks); None if the trace does not have it."""

    kind: str
    size: int | None = None
    group: str = "0"
    root: int = 0  # position in the group
    peer: int | None = None  # of send and recv: a rank of the job
    peer_position: int | None = None  # or its position in the group
    sends: list = field(default_factory=list)  # of an all_to_all with different sizes: bytes to each member
    receives: list = field(default_factory=list)
    sequence: int | None = None
    cut: bool | None = None  # its splits have been cut short: torch.profiler writes 30 of them (saveNcclMeta)
    stream: int | None = None  # of a call of which only the time is known: where it runs

    def text(self):
        return json.dumps({key: value for key, value in vars(self).items() if value not in (None, [])})

    @staticmethod
    def of_text(text):
        return Communication(**json.loads(text))

    @staticmethod
    def all_of_text(text):
        """Of one call, or of the list of those that one operation executes; none of no text."""
        found = json.loads(text) if text else []
        return [Communication(**one) for one in (found if isinstance(found, list) else [found])]


def kind_of(name):
    """None for calls that are no communication, such as `wait`."""
    plain = re.sub(r"[\W_]", "", str(name).lower()).removeprefix("nccl").removeprefix("c10d").removeprefix("gloo")
    return next((kind for start, kind in KINDS if plain.startswith(start)), None)


def is_nccl(name):
    """Whether a kernel is NCCL's or RCCL's; `mscclKernel` is the latter's, too (src/device/msccl_kernel.cpp). Kernels of NCCL
    EP dispatch tokens by themselves."""
    return bool(re.match(r"(?:void )?(?:nccl(?!_?ep)|rccl|mscclKernel)", name, re.IGNORECASE) or "ncclDevKernel" in name or
                "ncclKernel" in name)


def kind_of_kernel(name):
    found = NCCL_KERNEL.search(name)
    return kind_of(found.group(1) or found.group(2)) if found else None


def numbers(value):
    """A list of whole numbers, also written as a text; None if it is truncated. Raises ValueError for others."""
    if isinstance(value, str):
        if TRUNCATED in value:
            return None
        found = re.findall(r"[^\s,()\[\]{}]+", value)
        value = found if any(map(str.isdigit, value)) else []
    if not isinstance(value, (list, tuple)):
        return []
    try:
        whole = [int(one) for one in value]
    except (TypeError, ValueError, OverflowError):
        whole = None
    # int() cuts fractions off.
    if whole is None or any(not isinstance(one, str) and one != cut for one, cut in zip(value, whole)):
        raise ValueError(f"found {str(value)[:60]}; expected whole numbers")
    return whole


def split_bytes(splits, size):
    """Bytes to each member from rows to each member, also if all are the same on this rank: those of other ranks may
    differ."""
    total = sum(splits)
    return [size * rows // total if total else 0 for rows in splits]


def communication(name, into, out, members, group, root=0, in_splits=(), out_splits=()):
    """A call by its name, with bytes of its input and output tensors on this rank. None for calls that are no
    communication; ValueError if the splits or the number of members are impossible."""
    if not 1 <= members <= MAX_RANKS:
        raise ValueError(f"a group of {members} ranks; expected 1 to {MAX_RANKS}")
    kind = kind_of(name)
    if kind is None or kind == "messages":
        return None
    found = Communication(kind, into, group)
    if kind in ("send", "recv"):
        found.size = into or out
        found.peer_position = root
    elif kind == "barrier":
        found.size = 0
    elif kind in ("broadcast", "reduce"):
        found.root, found.size = max(0, root), into or out
    elif kind == "gather":
        found.root = max(0, root)
    elif kind == "scatter":
        found.root, found.size = max(0, root), max(into or 0, (out or 0) * members)
    elif kind == "all_to_all":
        in_splits, out_splits = numbers(in_splits), numbers(out_splits)
        if in_splits is None or out_splits is None:
            found.size, found.cut = None, True
            return found
        for splits in (in_splits, out_splits):
            if splits and (len(splits) != members or min(splits) < 0):
                raise ValueError(f"{len(splits)} split sizes for {members} members")
        found.sends, found.receives = split_bytes(in_splits, into or 0), split_bytes(out_splits, out or 0)
        if found.sends or found.receives:
            found.sends = found.sends or [(into or 0) // members] * members
            found.receives = found.receives or [(out or 0) // members] * members
    return found


def unnamed_group(ranks, size, groups):
    """A name for the process group of a call that has none: of the same ranks it is the same one, and so it is of those of
    which only the number is known. `groups` {name: ranks} are those that have a name."""
    if not ranks:
        return f"{size} ranks"
    name = f"ranks {ranks[0]} to {ranks[-1]}, {len(ranks)}"
    while groups.get(name, ranks) != ranks:
        name += "'"
    return name


def bytes_of(elements, dtype):
    """None if the type is not known."""
    size = element_size(dtype)
    return None if size is None or elements is None else int(elements) * size


def aligned_group(ranks, world):
    """The axes of a group that is one of those into which the ranks of a mesh fall: ((stride, size), ...), the axis whose
    neighbours are next to each other first. One axis is a row or a column, several are a block, as Megatron's group of
    tensor and pipeline ranks. None for others."""
    axes, covered = [], 1  # the first `covered` members are those of `axes`
    while covered < len(ranks):
        stride, size = ranks[covered] - ranks[0], 1
        while size * covered < len(ranks) and ranks[size * covered] == ranks[0] + size * stride:
            size += 1
        within = axes[-1][0] * axes[-1][1] if axes else 1
        if stride < 1 or stride % within or len(ranks) % (covered * size):
            return None
        axes.append((stride, size))
        covered *= size
    axes = tuple(axes) or ((1, 1),)
    aligned = world % (axes[-1][0] * axes[-1][1]) == 0
    return axes if aligned and list(ranks) == group_of(ranks[0], axes) else None


def coordinates(rank, axes):
    return [rank // stride % size for stride, size in axes]


def group_of(rank, axes):
    """The ranks of `rank`'s group in such a division."""
    found = [rank - sum(at * stride for at, (stride, _) in zip(coordinates(rank, axes), axes))]
    for stride, size in axes:
        found = [first + stride * i for i in range(size) for first in found]
    return found
