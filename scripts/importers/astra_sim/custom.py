# SPDX-License-Identifier: GPL-2.0-only
"""ASTRA-sim's custom collectives: algorithms as Chakra traces of sends, recvs and computations, one file for each
member (github.com/astra-sim/astra-sim, astra-sim/system/astraccl/custom_collectives/CustomAlgorithm.cc and
CollectiveImplLookup.cc). They are written into the workload's traces: the collective's node is replaced by the
algorithm's nodes, followed by a node without work with the collective's number, for the nodes that wait for it."""

import gzip
import os
import pathlib

from importing.chakra_writer import TraceWriter, delimited, varint
from importing.errors import InputError, read_text, whole_number

KINDS = {"all-reduce": 0, "all-gather": 2, "all-to-all": 6, "reduce-scatter": 7}  # CollectiveCommType
METADATA, COMPUTE, SEND, RECEIVE, COLLECTIVE = 1, 4, 5, 6, 7
NUMBERS = {7, 9, 11, 13, 27}  # fields of AttributeProto's value: varints,
ZIGZAG = {15, 17}             # varints with the sign in the lowest bit,
FIXED = {19, 21, 23, 25}      # and values of fixed width
LONGEST = 1 << 26             # bytes of a node


class Message:
    """A protobuf message in memory; raises ValueError if it is damaged."""

    def __init__(self, content):
        self.content = content

    def number(self, at):
        value = shift = 0
        for step in range(10):
            if at + step >= len(self.content):
                break
            byte = self.content[at + step]
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value & (2**64 - 1), at + step + 1
        raise ValueError("a number without an end")

    def fields(self):
        """(field, value): a number, or bytes."""
        at = 0
        while at < len(self.content):
            key, at = self.number(at)
            wire = key & 7
            if wire == 0:
                value, at = self.number(at)
            elif wire in (1, 2, 5):
                size, at = self.number(at) if wire == 2 else ({1: 8, 5: 4}[wire], at)
                if at + size > len(self.content):
                    raise ValueError("a field that is longer than its message")
                value, at = self.content[at:at + size], at + size
                value = value if wire == 2 else int.from_bytes(value, "little", signed=True)
            else:
                raise ValueError(f"a field of wire type {wire}")
            yield key >> 3, value


def ids_of(value):
    """The numbers of a packed list, or one entry of a list that is not packed."""
    if isinstance(value, int):
        return [value]
    message, at, found = Message(value), 0, []
    while at < len(value):
        one, at = message.number(at)
        found.append(one)
    return found


def attribute(content):
    """(name, value): a number, a text, or None for values without meaning here."""
    name, value = "", None
    for field, one in Message(content).fields():
        if field == 1 and isinstance(one, bytes):
            name = one.decode("utf-8", "replace")
        elif field in NUMBERS and isinstance(one, int):
            value = one - (1 << 64) if one >> 63 else one
        elif field in ZIGZAG and isinstance(one, int):
            value = (one >> 1) ^ -(one & 1)
        elif field in FIXED and isinstance(one, int):
            value = one
        elif field == 29 and isinstance(one, bytes):
            value = one.decode("utf-8", "replace")
    return name, value


class Node:
    """A node of a trace: number, type, dependencies, microseconds, attributes."""

    def __init__(self, content):
        self.content, self.id, self.kind, self.duration, self.name = content, 0, 0, 0, ""
        self.after, self.attributes = [], {}
        for field, value in Message(content).fields():
            if field in (1, 3, 7) and isinstance(value, int):
                setattr(self, {1: "id", 3: "kind", 7: "duration"}[field], value)
            elif field == 2 and isinstance(value, bytes):
                self.name = value.decode("utf-8", "replace")
            elif field in (4, 5):
                self.after += ids_of(value)
            elif field == 10 and isinstance(value, bytes):
                name, one = attribute(value)
                self.attributes[name] = one

    def group(self):
        """Its process group; nothing: all ranks."""
        name = self.attributes.get("pg_name")
        return "" if name in (None, "", "0", 0) else str(name)


def messages(path):
    """The messages of a trace, each after its length, the metadata first."""
    try:
        with open(path, "rb") as raw:
            zipped = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            file = gzip.open(raw) if zipped else raw
            while True:
                size = shift = 0
                while byte := file.read(1):
                    size |= (byte[0] & 127) << shift
                    shift += 7
                    if byte[0] < 128 or shift > 28:
                        break
                if not byte and not shift:
                    return
                content = file.read(size) if size <= LONGEST else b""
                if not byte or byte[0] >= 128 or len(content) < size:
                    raise ValueError("it ends within a node, or is none of protobuf")
                yield content
    except (OSError, EOFError, ValueError) as error:
        raise InputError(path, None, f"as a Chakra trace in protobuf, which a collective of one's own needs: {error}") \
            from None


def nodes(path):
    """The nodes of a trace, one by one."""
    content = messages(path)
    next(content, None)  # metadata
    for number, one in enumerate(content):
        try:
            yield Node(one)
        except ValueError as error:
            raise InputError(path, f"node {number} of the file", str(error)) from None


def file_of(system, key, name):
    """The search of ASTRA-sim for a prefix: in the working folder, otherwise in that of the file that names it."""
    for folder in (pathlib.Path(), pathlib.Path(system.path).parent):
        if os.path.exists(f"{folder / name}.0.et"):
            return str(folder / name)
    raise system.error(key, f"{key}: there is no file '{name}.0.et' in the working folder or that of {system.path}")


class Customs:
    """The collectives with a custom algorithm."""

    def __init__(self, system):
        self.of_kind, self.of_node = {}, {}
        for kind, number in KINDS.items():
            key = f"{kind}-implementation-custom"
            if key in system.keys:
                found = system.keys[key]
                if not isinstance(found, list) or len(found) != 1 or not isinstance(found[0], str):
                    raise system.error(key, f"{key}: expected a list of one prefix of Chakra traces")
                self.of_kind[number] = file_of(system, key, found[0])
        key = "per-node-custom-implementation"
        if key in system.keys:
            self.read_nodes(system, key, str(system.keys[key]))
        if self and (splits := system.whole("preferred-dataset-splits", 1, 1)) > 1:
            raise system.error("preferred-dataset-splits",
                               f"preferred-dataset-splits: {splits}, with each of which ASTRA-sim runs a whole custom "
                               "algorithm; expected 1 with a custom algorithm")

    def read_nodes(self, system, key, name):
        """YAML of `node: prefix`, a line each."""
        folders = (pathlib.Path(), pathlib.Path(system.path).parent)
        path = next((str(folder / name) for folder in folders if (folder / name).is_file()), None)
        if path is None:
            raise system.error(key, f"{key}: there is no file '{name}'")
        for line, text in enumerate(read_text(path).split("\n"), 1):
            node, colon, prefix = text.split("#")[0].partition(":")
            if node.strip() and not colon:
                raise InputError(path, line, "expected 'NODE: PREFIX'")
            if colon:
                number = whole_number(node.strip(), path, line, "the node")
                self.of_node[number] = file_of(system, key, prefix.strip().strip("'\""))

    def __bool__(self):
        return bool(self.of_kind or self.of_node)

    def of(self, node):
        """The prefix of the algorithm of a node; None if ASTRA-sim provides it, or if the node is no collective."""
        if node.kind != COLLECTIVE or node.attributes.get("is_cpu_op") or "comm_type" not in node.attributes:
            return None
        return self.of_node.get(node.id) or self.of_kind.get(node.attributes["comm_type"])


class Workload:
    """The traces of a workload, with algorithms in place of collectives."""

    def __init__(self, files, customs, groups):
        self.files, self.customs, self.groups = files, customs, groups

    def members(self, path, node):
        """Ranks of the node's process group, in the algorithm's order."""
        if not node.group():
            return range(len(self.files))
        found = self.groups.get(node.group())
        if found is None:
            raise InputError(path, f"node {node.id}", f"its process group '{node.group()}' is not in --groups")
        return found

    def write(self, file, rank):
        """The communications of each rank stay in the order of the file: in ASTRA-sim one runs at a time."""
        path, writer, last, free = self.files[rank], TraceWriter(file), None, self.first_free(rank)
        for node in nodes(path):
            prefix = self.customs.of(node)
            if prefix:
                members = self.members(path, node)
                if rank not in members:
                    raise InputError(path, f"node {node.id}", f"rank {rank} is no member of its process group")
                if len(members) > 1:
                    before = node.after + ([last] if last is not None else [])
                    free = self.expand(writer, prefix, members, members.index(rank), node, before, free)
                else:
                    writer.message(self.done(node, node.after))
                last = node.id
            elif last is not None and self.waits_for_its_turn(node):
                writer.message(node.content + delimited(5, varint(last)))
                last = node.id
            else:
                writer.message(node.content)
                last = node.id if self.waits_for_its_turn(node) else last

    @staticmethod
    def waits_for_its_turn(node):
        return node.kind in (SEND, COLLECTIVE) and not node.attributes.get("is_cpu_op")

    def first_free(self, rank):
        """A number above those of all nodes."""
        return 1 + max((node.id for node in nodes(self.files[rank])), default=0)

    @staticmethod
    def done(node, after):
        """A node without work in place of the collective."""
        content = varint(1 << 3) + varint(node.id) if node.id else b""
        content += delimited(2, node.name.encode()) + varint(3 << 3) + varint(METADATA)
        return content + delimited(5, b"".join(map(varint, after)))

    def expand(self, writer, prefix, members, position, collective, before, free):
        """The algorithm's nodes, numbered from `free` on; those that wait for nothing wait for `before`. Returns the
        next free number."""
        path = f"{prefix}.{position}.et"
        numbers = {}
        for node in nodes(path):
            if node.kind == METADATA:
                continue
            numbers[node.id] = free
            free += 1
        if not numbers:
            raise InputError(path, None, "it has no node; expected sends, recvs and computations")
        last = set(numbers.values())
        for node in nodes(path):
            if node.kind == METADATA:
                continue
            after = [numbers[one] for one in node.after if one in numbers]
            if len(after) < len(node.after):
                lost = next(one for one in node.after if one not in numbers)
                raise InputError(path, f"node {node.id}", f"it waits for node {lost}, which is not in the file")
            last.difference_update(after)
            self.write_inner(writer, path, node, members, position, after or before, numbers[node.id])
        writer.message(self.done(collective, sorted(last)))
        return free

    def write_inner(self, writer, path, node, members, position, after, number):
        name = f"{node.name or 'node'} of {pathlib.Path(path).name}"
        if node.kind == COMPUTE:
            writer.node(name, COMPUTE, after, -1, {"is_cpu_op": False, "duration_ps": node.duration * 10**6}, number)
            return
        if node.kind not in (SEND, RECEIVE):
            raise InputError(path, f"node {node.id}", f"its type is {node.kind}; COMM_SEND_NODE, COMM_RECV_NODE and "
                             "COMP_NODE are known in a custom algorithm")
        key = "comm_dst" if node.kind == SEND else "comm_src"
        other = self.whole(path, node, key, len(members) - 1)
        if other == position:
            raise InputError(path, f"node {node.id}", f"{key}: {other} is the member itself; expected another one")
        size, tag = self.whole(path, node, "comm_size", 2**63 - 1), self.whole(path, node, "comm_tag", 2**32 - 1, 0)
        attributes = {"is_cpu_op": False, "comm_size": size, "comm_tag": tag, key: members[other]}
        writer.node(name, node.kind, after, -1, attributes, number)

    @staticmethod
    def whole(path, node, key, most, usual=None):
        value = node.attributes.get(key, usual)
        if value is None:
            raise InputError(path, f"node {node.id}", f"it has no '{key}'")
        return whole_number(value, path, f"node {node.id}", key, 0, most)
