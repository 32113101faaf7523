# SPDX-License-Identifier: GPL-2.0-only
"""Chakra execution traces, one file for each rank (schema/protobuf/et_def.proto of github.com/mlcommons/chakra, version
0.0.4), as the workload kind `chakra` reads them with `issue: streams` (docs/reference/traces.md)."""

import json

from importing.errors import StudyError
from importing.imported import Beside, Map

from .wire import VARINT, delimited, varint

COMPUTE, SEND, RECV, COLLECTIVE = 4, 5, 6, 7
COLLECTIVES = {"all_reduce": 0, "reduce": 1, "all_gather": 2, "gather": 3, "scatter": 4, "broadcast": 5,
               "all_to_all": 6, "reduce_scatter": 7, "barrier": 9}
MOST = (1 << 63) - 1
NAME_LENGTH = 200
# Fields of AttributeProto's value.
INT64, BOOL, STRING = 9, 27, 29


def attribute(name, number, value):
    if number == STRING:
        coded = delimited(STRING, value.encode())
    else:
        coded = varint(number << 3 | VARINT) + varint(value)
    return delimited(10, delimited(1, name.encode()) + coded)


class RankFile:
    """Writes one rank's operations. Each method returns the operation's id for `after` of later ones. Operations with
    one `stream` of the accelerator, or one `thread` of the host, run one after another; without either they wait for
    `after` alone."""

    def __init__(self, file):
        self.file, self.next, self.pending, self.size = file, 0, [], 0
        self.write(delimited(1, b"0.0.4"))

    def write(self, message):
        self.pending.append(varint(len(message)) + message)
        self.size += len(message)
        if self.size > 1 << 20:
            self.flush()

    def flush(self):
        self.file.write(b"".join(self.pending))
        self.pending, self.size = [], 0

    def node(self, name, kind, after, attributes):
        number = self.next
        self.next += 1
        message = varint(1 << 3) + varint(number) if number else b""
        message += delimited(2, name[:NAME_LENGTH].encode("utf-8", "replace")) + varint(3 << 3) + varint(kind)
        if after:
            message += delimited(5, b"".join(map(varint, sorted(set(after)))))
        self.write(message + attributes)
        return number

    @staticmethod
    def place(stream, thread):
        if thread is not None:
            return attribute("is_cpu_op", BOOL, 1) + attribute("tid", INT64, thread)
        return attribute("stream", INT64, -1 if stream is None else stream)

    def compute(self, name, after, picoseconds, stream=None, thread=None, flops=0):
        more = attribute("duration_ps", INT64, bounded(picoseconds, name, "picoseconds"))
        if flops:
            more += attribute("num_ops", INT64, bounded(flops, name, "FLOPs"))
        return self.node(name, COMPUTE, after, self.place(stream, thread) + more)

    def collective(self, name, after, kind, size, group, stream=None, root=0):
        """`size` is the input of each rank in bytes; `group` a name of GroupNames; `root` a position in the group."""
        more = attribute("comm_type", INT64, COLLECTIVES[kind]) + attribute("pg_name", STRING, group)
        more += attribute("comm_size", INT64, bounded(size, name, "bytes"))
        if root:
            more += attribute("root", INT64, root)
        return self.node(name, COLLECTIVE, after, self.place(stream, None) + more)

    def message(self, name, after, sends, size, peer, tag, stream=None):
        more = attribute("comm_dst" if sends else "comm_src", INT64, peer) + attribute("comm_tag", INT64, tag)
        more += attribute("comm_size", INT64, bounded(size, name, "bytes"))
        return self.node(name, SEND if sends else RECV, after, self.place(stream, None) + more)


class GroupNames:
    """Process groups of all ranks, each with a unique name, in the file that the workload's `groups` names. "0" is the
    first one that has all ranks; others with all ranks have names of their own, because the order of their calls is
    another one."""

    def __init__(self, world):
        self.world = world
        self.clear()

    def clear(self):
        self.names, self.taken, self.whole = {}, {"", "0"}, None

    def of(self, name, ranks):
        """The unique name of a group that its ranks call `name`."""
        ranks = tuple(ranks)
        name = name or "0"
        if ranks == tuple(range(self.world)):
            self.whole = self.whole or name
            if name == self.whole:
                return "0"
        if (found := self.names.get((name, ranks))) is None:
            found = name if name not in self.taken else f"{name}.{ranks[0]}"
            while found in self.taken:
                found += "'"
            self.taken.add(found)
            self.names[name, ranks] = found
        return found

    def __bool__(self):
        return bool(self.names)

    def write(self, file):
        lines = [f"{json.dumps(found)}: {json.dumps(ranks)}" for (_, ranks), found in self.names.items()]
        file.write(("{\n" + ",\n".join(lines) + "\n}\n").encode())


def chakra_workload(imported, ranks, names, write):
    """Calls `write(rank, file)` for the file of each rank beside the experiment, and then writes the file of their
    groups. Names contain the number of ranks, so that files of an earlier import are not used as those of more
    ranks."""
    for rank in range(ranks):
        imported.beside(f"{ranks}ranks.{rank}.et", lambda file, rank=rank: write(rank, file))
    imported.workload = Map(kind="chakra", file=Beside(f"{ranks}ranks.{{rank}}.et"), ranks=ranks, issue="streams")
    if names:
        imported.workload["groups"] = imported.beside("groups.json", names.write)


def bounded(value, name, unit):
    if not 0 <= value <= MOST:
        raise StudyError(f"{name[:80]!r}: {value} {unit}; expected 0 to 2^63 - 1")
    return value
