# SPDX-License-Identifier: GPL-2.0-only
"""Chakra traces (schema/protobuf/et_def.proto of github.com/mlcommons/chakra) written node by node, for workloads that
weft reads with `kind: chakra`, `issue: streams`."""

COMPUTE, SEND, RECEIVE, COLLECTIVE = 4, 5, 6, 7
KINDS = {"all_reduce": 0, "reduce": 1, "all_gather": 2, "gather": 3, "scatter": 4, "broadcast": 5, "all_to_all": 6,
         "reduce_scatter": 7, "barrier": 9}
INT64, BOOL, STRING = 9, 27, 29  # fields of AttributeProto's value


def varint(value):
    out = bytearray()
    value &= 2**64 - 1
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def delimited(field, content):
    return varint(field << 3 | 2) + varint(len(content)) + content


def attribute(name, value):
    if isinstance(value, str):
        coded = delimited(STRING, value.encode())
    else:
        coded = varint((BOOL if isinstance(value, bool) else INT64) << 3) + varint(int(value))
    return delimited(10, delimited(1, name.encode()) + coded)


class TraceWriter:
    """The trace of one rank, on a binary file. Each method returns the id of its node, for `after` of later ones. A
    node with a `stream`
    (a number) runs after those before it on that stream."""

    def __init__(self, file):
        self.file, self.count = file, 0
        self.message(delimited(1, b"0.0.4"))

    def message(self, content):
        self.file.write(varint(len(content)) + content)

    def node(self, name, kind, after, stream, attributes, number=None):
        """`number`: the node's id, if others name it before it is written; then all nodes need one."""
        self.count += 1
        number = self.count if number is None else number
        content = varint(1 << 3) + varint(number) if number else b""
        content += delimited(2, name.encode("utf-8", "replace")) + varint(3 << 3) + varint(kind)
        if after:
            content += delimited(5, b"".join(map(varint, after)))
        if stream is not None:
            attributes = {**attributes, "stream": stream}
        content += b"".join(attribute(key, value) for key, value in attributes.items())
        self.message(content)
        return number

    def compute(self, picoseconds, name="compute", after=(), stream=0):
        return self.node(name, COMPUTE, after, stream, {"is_cpu_op": False, "duration_ps": picoseconds})

    def collective(self, kind, size, name=None, group="", after=(), stream=None, root=0):
        """`size`: the input of a rank, as in the schema. `group`: a name in the workload's file of groups."""
        attributes = {"is_cpu_op": False, "comm_type": KINDS[kind], "comm_size": size}
        if group:
            attributes["pg_name"] = group
        if root:
            attributes["root"] = root
        return self.node(name or kind, COLLECTIVE, after, stream, attributes)

    def send(self, size, to, tag=0, name="send", after=(), stream=None):
        return self.node(name, SEND, after, stream, {"is_cpu_op": False, "comm_size": size, "comm_dst": to,
                                                     "comm_tag": tag})

    def receive(self, size, source, tag=0, name="recv", after=(), stream=None):
        return self.node(name, RECEIVE, after, stream, {"is_cpu_op": False, "comm_size": size, "comm_src": source,
                                                        "comm_tag": tag})
