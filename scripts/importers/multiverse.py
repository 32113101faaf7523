# SPDX-License-Identifier: GPL-2.0-only
"""Workloads of Multiverse (F. Gui et al., NSDI 2025; github.com/Harnets/multiverse): nodes of Chakra as JSON, a file
npu.N.json for each NPU. Their meaning in Multiverse: scripts/node_conversion.py and scripts/parse_chakra.py of that
repository, and src/sys/llm_system.cpp and communication_system.cpp of its second version,
github.com/tiancai4652/madrona_simple_example."""

import itertools
import pathlib
import re

from frameworks.json_stream import JsonStream, beginning
from importing.chakra_writer import COLLECTIVE, COMPUTE, RECEIVE, SEND, TraceWriter
from importing.errors import InputError
from importing.imported import Imported, Map
from importing.node_checks import NodeChecks

SUMMARY = "a workload of Multiverse: a JSON list of Chakra nodes for each NPU, npu.N.json"
NAME = re.compile(r"npu\.([0-9]+)\.json(\.gz|\.xz)?")
KINDS = {"COMP_NODE": COMPUTE, "COMM_SEND_NODE": SEND, "COMM_RECV_NODE": RECEIVE, "COMM_COLL_NODE": COLLECTIVE}
COLLECTIVES = {0: "all_reduce", 2: "all_gather", 6: "all_to_all", 7: "reduce_scatter"}
NUMBERS = ("uint64Val", "int64Val", "uint32Val", "int32Val")
MAX_DEPENDENCIES = 10  # node_to_int_array
LONGEST = 106 * 24 * 3600 * 10**6  # microseconds, the end of simulated time
ALL_DIMENSIONS = 3  # ring_dim0 to ring_dim2
MAX_RANKS = 1 << 20
ENOUGH = 16  # files of a folder that are looked at to recognise it


def add_arguments(parser):
    parser.add_argument("input", metavar="FOLDER|npu.0.json", help="npu.0.json, npu.1.json, ..., one for each NPU")
    parser.add_argument("--ring-dims", metavar="N,N,N", help="NPUs in each dimension, the first one fastest, as "
                        "Multiverse's --ring-dims; nodes say by `involved_dim` which of them a collective goes "
                        "through (all NPUs in the first one)")

def numbered(path):
    """{number: file} of the NPUs' files, some of which may be missing."""
    folder = path if path.is_dir() else path.parent
    return {int(name.group(1)): one for one in (folder.iterdir() if folder.is_dir() else ())
            if (name := NAME.fullmatch(one.name))}


def files_of(path):
    """Files in the order of the NPUs, which are counted from 0."""
    path = pathlib.Path(path)
    folder = path if path.is_dir() else path.parent
    found = numbered(path)
    if not found or (not path.is_dir() and path not in found.values()):
        raise InputError(path, None, "expected npu.0.json, npu.1.json, ..., or the folder with them")
    missing = next((npu for npu in range(len(found)) if npu not in found), None)
    if missing is not None:
        raise InputError(folder / f"npu.{missing}.json", None, f"it is missing: there are files of {len(found)} NPUs, "
                         f"up to {max(found)}")
    return [found[npu] for npu in range(len(found))]


def matches(path):
    """Whether some NPU's file has nodes: others may be missing or damaged, which is for read() to say."""
    path = pathlib.Path(path)
    try:
        found = numbered(path)
    except OSError:
        return False
    if not path.is_dir() and path not in found.values():
        return False
    return any(has_nodes(beginning(found[npu], 1 << 14)) for npu in sorted(found)[:ENOUGH])


def has_nodes(start):
    return bool(re.match(r"\s*\[\s*\{", start)) and "_NODE\"" in start and '"attr"' in start


class Node:
    """A node; its errors have their place."""

    def __init__(self, path, line, value):
        self.path, self.value = path, value
        self.place = line
        if not isinstance(value, dict):
            raise self.error("a node is a map")
        self.number = self.whole("id", value.get("id", 0))
        self.place = f"{line}: node {self.number}"
        self.type = value.get("type")
        if self.type not in KINDS:
            raise self.error(f"found the type {str(self.type)[:40]!r}; expected one of {', '.join(KINDS)}")
        self.name = str(value.get("name", ""))[:200]
        self.attributes = {}
        for one in self.items("attr"):
            if not isinstance(one, dict) or not isinstance(one.get("name"), str):
                raise self.error(f"the attribute {str(one)[:40]!r}; expected a map with a name")
            self.attributes[one["name"]] = one

    def error(self, text):
        return InputError(self.path, self.place, text)

    def items(self, key):
        found = self.value.get(key)
        if found is None:
            return []
        if not isinstance(found, list):
            raise self.error(f"'{key}' is {type(found).__name__}; expected a list")
        return found

    def whole(self, what, value, most=2**63 - 1):
        """64-bit numbers are texts in protobuf's JSON."""
        if isinstance(value, str) and re.fullmatch(r"[0-9]{1,19}", value):
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
            raise self.error(f"{what}: found {str(value)[:40]!r}; expected a whole number from 0 to {most}")
        return value

    def dependencies(self):
        return [self.whole("dataDeps", one) for one in self.items("dataDeps")]

    def attribute(self, name, usual=None, most=2**63 - 1):
        one = self.attributes.get(name)
        found = None if one is None else next((one[key] for key in NUMBERS if key in one), None)
        if found is None and usual is None:
            raise self.error(f"it has no '{name}'")
        return usual if found is None else self.whole(name, found, most)

    def involved(self):
        """The dimensions that take part; all if the node does not name them."""
        one = self.attributes.get("involved_dim")
        flags = one.get("boolList") if one is not None else None
        values = flags.get("values") if isinstance(flags, dict) else None
        if values is None:
            return (True,) * ALL_DIMENSIONS
        if not isinstance(values, list) or not all(isinstance(flag, bool) for flag in values):
            raise self.error("involved_dim: expected a list of true and false")
        return tuple((values + [False] * ALL_DIMENSIONS)[:ALL_DIMENSIONS])


class Groups:
    """Ranks that differ in some dimensions alone: a process group for each such set of dimensions and its place."""

    def __init__(self, dimensions):
        self.dimensions = dimensions
        self.ranks = dimensions[0] * dimensions[1] * dimensions[2]
        self.used = set()

    def strides(self):
        return (1, self.dimensions[0], self.dimensions[0] * self.dimensions[1])

    def wide(self, involved):
        """The dimensions with more than one NPU."""
        return tuple(flag and size > 1 for flag, size in zip(involved, self.dimensions))

    def size(self, involved):
        found = 1
        for flag, one in zip(involved, self.dimensions):
            found *= one if flag else 1
        return found

    def name(self, involved, rank):
        """"" is all ranks. A name gives the position of the group in the dimensions that do not take part."""
        involved = self.wide(involved)
        if self.size(involved) == self.ranks:
            return ""
        self.used.add(involved)
        places = [rank // stride % size for stride, size in zip(self.strides(), self.dimensions)]
        return ".".join("x" if flag else str(place) for flag, place in zip(involved, places))

    def members(self, involved, rank):
        ranges = [range(size) if flag else (rank // stride % size,)
                  for flag, stride, size in zip(involved, self.strides(), self.dimensions)]
        return sorted(sum(place * stride for place, stride in zip(one, self.strides()))
                      for one in itertools.product(*ranges))

    def write(self, file):
        found = {}
        for involved in sorted(self.used):
            for rank in range(self.ranks):
                if (name := self.name(involved, rank)) not in found:
                    found[name] = self.members(involved, rank)
        text = ",\n".join(f'"{name}": {members}' for name, members in found.items())
        file.write(f"{{\n{text}\n}}\n".encode())


class Workload:
    """All files, each read as a stream: once to check it, and once when its trace is written."""

    def __init__(self, options, imported):
        self.files, self.imported = files_of(options.input), imported
        self.groups = Groups(self.dimensions(options))
        self.checks, self.teams = NodeChecks(self.files), {}
        self.long, self.several = None, None

    def dimensions(self, options):
        if options.ring_dims is None:
            return (len(self.files), 1, 1)
        parts = options.ring_dims.split(",")
        if not all(re.fullmatch(r"[1-9][0-9]{0,6}", part) for part in parts) or len(parts) > ALL_DIMENSIONS:
            raise InputError("--ring-dims", None, f"found '{options.ring_dims}'; expected up to three numbers such as "
                             "2,2,4")
        found = tuple(([int(part) for part in parts] + [1, 1])[:ALL_DIMENSIONS])
        product = found[0] * found[1] * found[2]
        if product != len(self.files):
            raise InputError("--ring-dims", None, f"'{options.ring_dims}' are {product} NPUs, and there are files of "
                             f"{len(self.files)}")
        return found

    def nodes(self, rank):
        path = self.files[rank]
        stream = JsonStream(path)
        for key, value, line in stream.members(()):
            if key:
                raise InputError(path, line, "a map; expected a list of nodes")
            yield Node(path, line, value)

    def look(self, rank):
        """Checks each node of a file, so that nothing is written for a damaged one."""
        count = 0
        self.checks.begin(rank)
        for node in self.nodes(rank):
            self.check(node, rank)
            count += 1
            if len(node.dependencies()) > MAX_DEPENDENCIES and self.long is None:
                self.long = f"{node.path}:{node.place}"
            if node.type == "COMM_COLL_NODE" and sum(self.groups.wide(node.involved())) > 1 and self.several is None:
                self.several = f"{node.path}:{node.place}"
        if count == 0:
            raise InputError(self.files[rank], None, "there is no node in it")
        self.checks.end((node.number, node.place, node.dependencies()) for node in self.nodes(rank))

    def check(self, node, rank):
        kind, attributes = self.of_node(node, rank)
        self.checks.node(node.number, node.place, node.dependencies())
        if kind in (SEND, RECEIVE):
            ends = (rank, attributes["comm_dst"]) if kind == SEND else (attributes["comm_src"], rank)
            self.checks.message(*ends, attributes["comm_tag"], attributes["comm_size"], node.place)
        elif kind == COLLECTIVE:
            team = attributes.get("pg_name", "")
            self.teams.setdefault(team, (node.involved(), rank))
            self.checks.call(team, f"{COLLECTIVES[attributes['comm_type']]} of {attributes['comm_size']} B", node.place)

    def members(self, team):
        return self.groups.members(*self.teams[team])

    def of_node(self, node, rank):
        """The attributes of a node of weft's trace. A send's own end is its rank, and so is a receive's, regardless of
        the file: Multiverse's generator writes the node's number."""
        if node.type == "COMP_NODE":
            time = node.whole("durationMicros", node.value.get("durationMicros", 0), LONGEST - 1)
            return COMPUTE, {"is_cpu_op": False, "duration_ps": time * 10**6}
        size = node.attribute("comm_size")
        if node.type == "COMM_COLL_NODE":
            return self.collective(node, rank, size)
        end = "comm_dst" if node.type == "COMM_SEND_NODE" else "comm_src"
        peer = node.attribute(end)
        if peer >= len(self.files) or peer == rank:
            raise node.error(f"{end} is {peer}; expected another NPU from 0 to {len(self.files) - 1}")
        return KINDS[node.type], {"is_cpu_op": False, "comm_size": size, end: peer,
                                  "comm_tag": node.attribute("comm_para", 0, 2**32 - 1)}

    def collective(self, node, rank, size):
        kind = node.attribute("comm_type")
        if kind not in COLLECTIVES:
            raise node.error(f"comm_type is {kind}; 0 (all-reduce), 2 (all-gather), 6 (all-to-all) and 7 "
                             "(reduce-scatter) are known")
        involved = node.involved()
        if self.groups.size(involved) < 2 or size == 0:
            return COMPUTE, {"is_cpu_op": False, "duration_ps": 0}
        attributes = {"is_cpu_op": False, "comm_type": kind, "comm_size": size}
        if name := self.groups.name(involved, rank):
            attributes["pg_name"] = name
        return COLLECTIVE, attributes

    def write(self, file, rank):
        writer = TraceWriter(file)
        for node in self.nodes(rank):
            kind, attributes = self.of_node(node, rank)
            writer.node(node.name, kind, node.dependencies(), None, attributes, node.number)

    def list_others(self):
        self.imported.ignore("nodes", "durationMicros of communications, and the NPU's own end of messages (its "
                                      "generator writes the node's number there; Multiverse uses the NPU's instead)")
        if self.long:
            self.imported.refuse(self.long, f"more than {MAX_DEPENDENCIES} dependencies: Multiverse waits for the "
                                            "first of them, weft for all (this and all such nodes)")
        if self.several:
            self.imported.refuse(self.several, "a collective through several dimensions: Multiverse runs one ring after "
                                               "another, one in each; weft runs one ring of all of them (this and all such "
                                               "nodes)")


def read(options):
    imported = Imported([], None, [f"The workload {options.input} of Multiverse."])
    workload = Workload(options, imported)
    if not 2 <= len(workload.files) <= MAX_RANKS:
        raise InputError(options.input, None, f"found files of {len(workload.files)} NPUs; expected 2 to {MAX_RANKS}")
    imported.inputs, imported.ranks = [str(path) for path in workload.files], len(workload.files)
    for rank in range(imported.ranks):
        workload.look(rank)
    workload.checks.agree(workload.members)
    for rank in range(imported.ranks):
        imported.beside(f"{imported.ranks}npus.{rank}.et", lambda file, rank=rank: workload.write(file, rank))
    workload.list_others()
    imported.workload = Map(kind="chakra", file=imported.prefix(f"{imported.ranks}npus"), ranks=imported.ranks)
    imported.workload.put("issue", "ready", "An NPU computes one node at a time, the first of those that are ready; "
                                            "communications are under way as soon as they can be.")
    imported.workload.put("algorithm", "ring", "Multiverse's collectives are rings in one direction.")
    if workload.groups.used:
        imported.workload["groups"] = imported.beside("groups.json", workload.groups.write)
    return imported
