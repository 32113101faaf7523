# SPDX-License-Identifier: GPL-2.0-only
"""ONNX models in protobuf (onnx/onnx.proto of github.com/onnx/onnx): the graph's nodes and shapes. Weights are not
read: of a large model only the other parts are read."""

import struct
from dataclasses import dataclass, field

from frameworks.wire import Part, WireError, real, signed
from importing.errors import InputError, unreadable

# TensorProto.DataType: name, bytes.
TYPES = {1: ("float", 4), 2: ("uint8", 1), 3: ("int8", 1), 4: ("uint16", 2), 5: ("int16", 2), 6: ("int32", 4),
         7: ("int64", 8), 9: ("bool", 1), 10: ("float16", 2), 11: ("double", 8), 12: ("uint32", 4), 13: ("uint64", 8),
         14: ("complex64", 8), 15: ("c128", 16), 16: ("bfloat16", 2), 17: ("float8_e4m3fn", 1),
         18: ("float8_e4m3fnuz", 1), 19: ("float8_e5m2", 1), 20: ("float8_e5m2fnuz", 1), 21: ("uint4", 0.5),
         22: ("int4", 0.5)}
FLOATING = {1, 10, 11, 16, 17, 18, 19, 20}
QUANTIZED = {2, 3, 21, 22}  # of weights and activations as whole numbers
MICROSOFT = "com.microsoft"  # the domain of the operators of ONNX Runtime
# Values are read for tensors of at most this number of elements: shapes, axes and the like.
FEW = 64
DEEPEST = 16  # graphs inside nodes of graphs


class Unknown(Exception):
    """What is not known about an operator: a shape, a value, its FLOPs."""


@dataclass
class Tensor:
    """The type of a value of the graph. A dimension is a number or a name."""

    kind: int = 1
    dims: tuple | None = None  # None: not known
    values: list | None = None  # whole numbers, if they are known
    weight: bool = False

    @property
    def size(self):
        return TYPES.get(self.kind, ("", 4))[1]

    @property
    def dtype(self):
        return TYPES.get(self.kind, ("float", 4))[0]


@dataclass
class Node:
    op: str = ""
    name: str = ""
    inputs: list = field(default_factory=list)
    outputs: list = field(default_factory=list)
    attributes: dict = field(default_factory=dict)
    number: int = 0
    domain: str = ""

    @property
    def label(self):
        return self.name or f"{self.op}_{self.number}"


@dataclass
class Graph:
    nodes: list = field(default_factory=list)
    tensors: dict = field(default_factory=dict)  # name: Tensor
    inputs: list = field(default_factory=list)
    outputs: list = field(default_factory=list)


def read_model(path):
    try:
        with open(path, "rb") as file:
            size = file.seek(0, 2)
            return Reader(path, file).model(Part(file, 0, size))
    except WireError as wrong:
        raise InputError(path, None, f"byte {wrong.at}: {wrong}; the file is damaged, or no ONNX model") from None
    except OSError as error:
        raise unreadable(path, error) from None


def looks_like(path):
    """Whether a file is a message with a version, a producer or operator sets, and a graph: from the heads of its
    fields."""
    try:
        with open(path, "rb") as file:
            size, found = file.seek(0, 2), set()
            for number, value in Part(file, 0, size).fields():
                if number == 1 and isinstance(value, Part):
                    return False
                found.add(number)
            return 7 in found and bool(found & {1, 2, 8}) and found <= {1, 2, 3, 4, 5, 6, 7, 8, 14, 20, 25, 26}
    except (WireError, OSError):
        return False


def floats(content):
    count = len(content) // 4
    return struct.unpack(f"<{count}f", content[:4 * count])


class Reader:
    def __init__(self, path, file):
        self.path, self.file, self.depth = str(path), file, 0

    def error(self, what):
        return InputError(self.path, None, what)

    def model(self, part):
        graph = None
        for number, value in part.fields(parts=(7, 25)):
            if number == 7:
                graph = self.graph(value)
            elif number == 25:
                raise self.error("it has functions of its own; inline them first (onnx.inliner.inline_local_functions)")
        if graph is None:
            raise self.error("it has no graph; expected an ONNX ModelProto")
        return graph

    def graph(self, part):
        graph = Graph()
        weights = {}
        for number, value in part.fields(parts=(1, 5, 11, 12, 13)):
            if number == 1:
                graph.nodes.append(self.node(value, len(graph.nodes)))
            elif number == 5:
                name, tensor = self.tensor(value)
                tensor.weight = True
                weights[name] = tensor
            elif number in (11, 12, 13):
                name, tensor = self.value(value)
                graph.tensors.setdefault(name, tensor)
                if number != 13:
                    (graph.inputs if number == 11 else graph.outputs).append(name)
        graph.tensors.update(weights)
        graph.inputs = [name for name in graph.inputs if name not in weights]
        return graph

    def node(self, part, count):
        node = Node(number=count)
        for number, value in part.fields(parts=(1, 2, 3, 4, 5, 7)):
            if number == 1:
                node.inputs.append(value.text())
            elif number == 2:
                node.outputs.append(value.text())
            elif number == 3:
                node.name = value.text()
            elif number == 4:
                node.op = value.text()
            elif number == 5:
                self.attribute(value, node)
            elif number == 7:
                node.domain = value.text()
        if node.domain not in ("", "ai.onnx", MICROSOFT):
            raise self.error(f"node '{node.label}' ({node.op}): an operator of the domain '{node.domain}'; expected "
                             f"ai.onnx or {MICROSOFT}")
        return node

    def attribute(self, part, node):
        name, found, lists = "", None, {7: [], 8: []}
        for number, value in part.fields(parts=(1, 4, 5, 6), numbers=(2, 3)):
            if number == 1:
                name = value.text()
            elif number == 2:
                found = real(value)
            elif number == 3:
                found = signed(value)
            elif number == 4:
                found = value.text()
            elif number == 5:
                found = self.tensor(value)[1]
            elif number == 6:
                self.depth += 1
                if self.depth > DEEPEST:
                    raise self.error(f"node '{node.label}' ({node.op}): graphs within graphs, more than {DEEPEST} deep")
                found = self.graph(value)
                self.depth -= 1
            elif number == 7:
                lists[7] += floats(value.read()) if isinstance(value, Part) else [real(value)]
            elif number == 8:
                lists[8] += map(signed, value.packed()) if isinstance(value, Part) else [signed(value)]
        node.attributes[name] = found if found is not None else list(lists[8] or lists[7])

    def tensor(self, part):
        tensor, name, raw, values = Tensor(dims=()), "", None, []
        dims = []
        for number, value in part.fields(parts=(8, 9), numbers=(2,)):
            if number == 1:
                dims += map(signed, value.packed()) if isinstance(value, Part) else [signed(value)]
            elif number == 2:
                tensor.kind = value
            elif number == 8:
                name = value.text()
            elif number == 9:
                raw = value
            elif number in (5, 7):
                values += self.whole(value)
        tensor.dims = tuple(dims)
        if any(size < 0 for size in dims):
            raise self.error(f"the tensor '{name}' has the shape {dims}")
        if tensor.kind == 9 and not values and raw is not None and len(raw) <= FEW:
            values = list(raw.read())
        if tensor.kind == 9:
            tensor.values = values if values and len(values) <= FEW else None
        if tensor.kind in (6, 7):
            if raw is not None and len(raw) <= FEW * 8:
                code = "q" if tensor.kind == 7 else "i"
                width = struct.calcsize(code)
                values = list(struct.unpack(f"<{len(raw) // width}{code}", raw.read()[:len(raw) // width * width]))
            tensor.values = values if len(values) <= FEW and (values or 0 in dims) else None
        return name, tensor

    @staticmethod
    def whole(value):
        if not isinstance(value, Part):
            return [signed(value)]
        return list(map(signed, value.packed())) if len(value) <= FEW * 10 else [0] * (FEW + 1)

    def value(self, part):
        name, tensor = "", Tensor()
        for number, value in part.fields(parts=(1, 2)):
            if number == 1:
                name = value.text()
            elif number == 2:
                for kind, inner in value.fields(parts=(1,)):
                    if kind == 1:
                        self.tensor_type(inner, tensor)
        return name, tensor

    @staticmethod
    def tensor_type(part, tensor):
        for number, value in part.fields(parts=(2,), numbers=(1,)):
            if number == 1:
                tensor.kind = value
            elif number == 2:
                dims = []
                for _, dimension in (one for one in value.fields(parts=(1,)) if one[0] == 1):
                    size = "?"
                    for kind, inner in dimension.fields(parts=(2,), numbers=(1,)):
                        size = signed(inner) if kind == 1 else inner.text() if kind == 2 else size
                    dims.append(size)
                tensor.dims = tuple(dims)
