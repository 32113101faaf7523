# SPDX-License-Identifier: GPL-2.0-only
"""Chakra execution traces for tests, written by hand: as et_def.proto of github.com/mlcommons/chakra has the messages
(schema/protobuf), in protobuf's wire format (protobuf.dev/programming-guides/encoding) and in its JSON."""

import gzip
import json
import struct

TYPES = ["INVALID_NODE", "METADATA_NODE", "MEM_LOAD_NODE", "MEM_STORE_NODE", "COMP_NODE", "COMM_SEND_NODE",
         "COMM_RECV_NODE", "COMM_COLL_NODE", "STORAGE_NODE", "BATCH_NODE", "CHECKPOINT_NODE"]
METADATA, MEM_LOAD, MEM_STORE, COMP, SEND, RECV, COLL, STORAGE, BATCH, CHECKPOINT = range(1, 11)
LEVELS = ["STORAGE_LEVEL_UNKNOWN", "STORAGE_LEVEL_FS", "STORAGE_LEVEL_PAGE", "STORAGE_LEVEL_BLOCK",
          "STORAGE_LEVEL_DEVICE"]
ALL_REDUCE, REDUCE, ALL_GATHER, GATHER, SCATTER, BROADCAST, ALL_TO_ALL, REDUCE_SCATTER, _, BARRIER = range(10)

# Fields of AttributeProto's value, and how they are on the wire.
WIDTHS = {"double": 3, "float": 5, "int32": 7, "int64": 9, "uint32": 11, "uint64": 13, "sint32": 15, "sint64": 17,
          "fixed32": 19, "fixed64": 21, "sfixed32": 23, "sfixed64": 25, "bool": 27, "string": 29}


def varint(value):
    value &= 2**64 - 1
    out = b""
    while value >= 128:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def delimited(number, content):
    return varint(number << 3 | 2) + varint(len(content)) + content


def attribute(name, value, width=None):
    if width is None:
        width = "bool" if isinstance(value, bool) else "string" if isinstance(value, str) else "int64"
    number = WIDTHS[width]
    if width == "string":
        coded = delimited(number, value.encode())
    elif width in ("fixed64", "sfixed64", "double"):
        coded = varint(number << 3 | 1) + struct.pack({"fixed64": "<Q", "sfixed64": "<q", "double": "<d"}[width], value)
    elif width in ("fixed32", "sfixed32", "float"):
        coded = varint(number << 3 | 5) + struct.pack({"fixed32": "<I", "sfixed32": "<i", "float": "<f"}[width], value)
    elif width.startswith("sint"):
        coded = varint(number << 3) + varint(value << 1 if value >= 0 else -value * 2 - 1)
    else:
        coded = varint(number << 3) + varint(int(value))
    return delimited(1, name.encode()) + coded


def node(number, kind, after=(), duration=0, name=None, control=(), values=None, level=None, **attributes):
    """One node; `duration` in microseconds; an attribute is a value, or (value, width); `level` of storage."""
    return {"id": number, "level": level, "type": kind, "data": list(after), "control": list(control), "duration": duration,
            "name": name or f"node {number}", "values": values,
            "attributes": {key: value if isinstance(value, tuple) else (value, None)
                           for key, value in attributes.items()}}


def coded(one, packed=True):
    """A node in protobuf's encoding: zeros are absent."""
    out = varint(1 << 3) + varint(one["id"]) if one["id"] else b""
    out += delimited(2, one["name"].encode()) + varint(3 << 3) + varint(one["type"])
    for number, ids in ((4, one["control"]), (5, one["data"])):
        if ids and packed:
            out += delimited(number, b"".join(map(varint, ids)))
        elif ids:
            out += b"".join(varint(number << 3) + varint(i) for i in ids)
    if one["duration"]:
        out += varint(7 << 3) + varint(one["duration"])
    if one["values"]:
        out += delimited(8, delimited(1, one["values"].encode()))
    for name, (value, width) in one["attributes"].items():
        out += delimited(10, attribute(name, value, width))
    if one["level"] is not None:
        out += delimited(11, varint(1 << 3) + varint(one["level"]) + delimited(10, b""))
    return out


def protobuf(nodes, version="0.0.4", packed=True):
    messages = [delimited(1, version.encode()), *(coded(one, packed) for one in nodes)]
    return b"".join(varint(len(message)) + message for message in messages)


def json_objects(nodes, version="0.0.4"):
    """As json_format.MessageToJson prints them: one object after another, 64-bit numbers as texts, zeros absent."""
    objects = [{"version": version}]
    for one in nodes:
        entry = {"name": one["name"], "type": TYPES[one["type"]]}
        if one["id"]:
            entry["id"] = str(one["id"])
        if one["data"]:
            entry["dataDeps"] = list(map(str, one["data"]))
        if one["control"]:
            entry["ctrlDeps"] = list(map(str, one["control"]))
        if one["duration"]:
            entry["durationMicros"] = str(one["duration"])
        if one["values"]:
            entry["inputs"] = {"values": one["values"]}
        if one["level"] is not None:
            entry["storage"] = {"level": LEVELS[one["level"]], "fs": {}}
        entry["attr"] = [{"name": key, **json_value(value)} for key, (value, _) in one["attributes"].items()]
        objects.append(entry)
    return "\n".join(json.dumps(entry, indent=2) for entry in objects).encode()


def json_value(value):
    if isinstance(value, bool):
        return {"boolVal": value}
    return {"stringVal": value} if isinstance(value, str) else {"int64Val": str(value)}


def feeder_json(nodes):
    """{"workload_graph": [...]} of Chakra's feeder (src/feeder/json_node.cpp)."""
    graph = []
    for one in nodes:
        entry = {"Id": one["id"], "Name": one["name"], "NodeType": one["type"], "data_deps": one["data"],
                 "ctrl_deps": one["control"], "runtime": one["duration"]}
        graph.append({**entry, **{key: value for key, (value, _) in one["attributes"].items()}})
    return json.dumps({"workload_graph": graph}).encode()


def write(folder, ranks, prefix="trace", form=protobuf, ending=".et", zipped=False):
    """A file for each list of nodes; gives the prefix."""
    for rank, nodes in enumerate(ranks):
        content = form(nodes)
        (folder / f"{prefix}.{rank}{ending}").write_bytes(gzip.compress(content) if zipped else content)
    return prefix
