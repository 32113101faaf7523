# SPDX-License-Identifier: GPL-2.0-only
"""Shapes of all values of an ONNX graph, from those of its inputs, by the operators' definitions (docs/Operators.md of
github.com/onnx/onnx). Small tensors of whole numbers are computed, too: shapes are made of them."""

import math

from importing.errors import InputError

from . import control
from .model import FEW, Tensor

SAME = {"Relu", "LeakyRelu", "Sigmoid", "Tanh", "Erf", "Exp", "Log", "Sqrt", "Neg", "Abs", "Softmax", "LogSoftmax",
        "Gelu", "LayerNormalization", "BatchNormalization", "InstanceNormalization", "GroupNormalization",
        "SkipLayerNormalization", "SimplifiedLayerNormalization", "RMSNormalization", "Dropout", "Identity", "Clip",
        "HardSwish", "HardSigmoid", "Elu", "Selu", "PRelu", "Softplus", "Softsign", "Reciprocal", "Floor", "Ceil",
        "Round", "Not", "Sign", "Cos", "Sin", "Mish", "FastGelu", "CumSum", "LpNormalization", "LRN", "Trilu", "Celu",
        "ThresholdedRelu", "IsNaN", "QuickGelu", "BiasGelu", "Swish", "ScatterND", "ScatterElements", "Hardmax",
        "RotaryEmbedding"}
BROADCAST = {"Add", "Sub", "Mul", "Div", "Pow", "Min", "Max", "And", "Or", "Xor", "Equal", "Greater", "Less",
             "GreaterOrEqual", "LessOrEqual", "Where", "Mod", "Sum", "Mean", "BitShift"}
REDUCTIONS = {"ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2",
              "ReduceLogSumExp", "ReduceSumSquare"}
ARITHMETIC = {"Add": lambda a, b: a + b, "Sub": lambda a, b: a - b, "Mul": lambda a, b: a * b,
              "Div": lambda a, b: int(a / b) if b else 0, "Mod": lambda a, b: a % b if b else 0, "Min": min, "Max": max}
COMPARISONS = {"Equal": lambda a, b: int(a == b), "Greater": lambda a, b: int(a > b), "Less": lambda a, b: int(a < b),
               "GreaterOrEqual": lambda a, b: int(a >= b), "LessOrEqual": lambda a, b: int(a <= b),
               "And": lambda a, b: int(a and b), "Or": lambda a, b: int(a or b)}
BOOLEAN = 9


class Unknown(Exception):
    """A shape needs a value that is not known."""


def broadcast(shapes):
    width = max(map(len, shapes))
    padded = [(1,) * (width - len(shape)) + tuple(shape) for shape in shapes]
    result = []
    for sizes in zip(*padded):
        others = {size for size in sizes if size != 1}
        if len(others) > 1:
            raise Unknown(f"shapes {' and '.join(str(list(shape)) for shape in shapes)} do not go together")
        result.append(others.pop() if others else 1)
    return tuple(result)


class Inference:
    """`batch` is the size of an input's first dimension if that has a name; `named` {name: size} of others."""

    def __init__(self, graph, path, batch, named):
        self.graph, self.path = graph, str(path)
        self.named, self.batch = dict(named), batch
        self.tensors = graph.tensors
        self.batch_names = set()
        for name in graph.inputs:
            dims = self.tensors[name].dims
            if dims and isinstance(dims[0], str) and dims[0] not in self.named:
                self.batch_names.add(dims[0])
        for name in [*graph.inputs, *graph.outputs, *list(self.tensors)]:
            self.settle(name)

    def settle(self, name):
        tensor = self.tensors[name]
        if tensor.dims is None or all(isinstance(one, int) for one in tensor.dims):
            return
        given = name in self.graph.inputs
        dims = []
        for at, one in enumerate(tensor.dims):
            if isinstance(one, str):
                size = self.named.get(one, self.batch if one in self.batch_names else None)
                if size is None and given:
                    raise InputError(self.path, None, f"input '{name}': dimension {at} is '{one}'; give --dim "
                                                      f"{one}=SIZE")
                one = size
            dims.append(one)
        tensor.dims = None if None in dims else tuple(dims)

    def run(self):
        nodes, self.graph.nodes = self.graph.nodes, []
        for node in nodes:
            self.settle_node(node)

    def settle_node(self, node):
        """One node, or the nodes that it expands to, after those that are already in the graph."""
        if node.op in control.CONTROL:
            try:
                for inner in control.written_out(node, self.tensors, len(self.graph.nodes)):
                    self.settle_node(inner)
            except control.Unknown as wrong:
                raise InputError(self.path, None, f"node '{node.label}' ({node.op}): {wrong}") from None
            except (KeyError, TypeError, ValueError, AttributeError, IndexError):
                raise InputError(self.path, None, f"node '{node.label}' ({node.op}): the graph within does not fit "
                                                  "it") from None
            return
        node.number = len(self.graph.nodes)
        self.graph.nodes.append(node)
        if node.op != "Scanned":
            try:
                self.node(node)
            except Unknown as wrong:
                raise InputError(self.path, None, f"node '{node.label}' ({node.op}): {wrong}") from None
            except (IndexError, ValueError, TypeError, KeyError, ZeroDivisionError, AttributeError,
                    OverflowError, MemoryError):
                raise InputError(self.path, None, f"node '{node.label}' ({node.op}): its inputs {self.shown(node)} do "
                                                  f"not fit the operator") from None

    def shown(self, node):
        return [list(self.tensors[name].dims or ()) if name in self.tensors else "?" for name in node.inputs if name]

    def dims(self, node, at):
        """The tensor of input `at`."""
        name = node.inputs[at]
        tensor = self.tensors.get(name)
        if tensor is None:
            raise Unknown(f"its input '{name}' is made by no node above it")
        if tensor.dims is None:
            raise Unknown(f"the shape of '{name}' is not known; onnx.shape_inference.infer_shapes_path writes shapes "
                          f"into a model")
        return tensor.dims

    def values(self, node, at, attribute=None):
        """The numbers of an input, or of an attribute in older operators."""
        if attribute and attribute in node.attributes:
            found = node.attributes[attribute]
            return list(found) if isinstance(found, (list, tuple)) else [found]
        if at < len(node.inputs) and node.inputs[at]:
            values = self.tensors[node.inputs[at]].values
            if values is None:
                raise Unknown(f"the numbers of its input '{node.inputs[at]}' are not known before it runs")
            return values
        return None

    def put(self, node, at, dims, kind=None, values=None):
        if at >= len(node.outputs) or not node.outputs[at]:
            return
        known = self.tensors.get(node.outputs[at])
        first = self.tensors.get(node.inputs[0]) if node.inputs else None
        kind = kind or (known.kind if known else first.kind if first else 1)
        self.tensors[node.outputs[at]] = Tensor(kind, tuple(dims), values)

    def node(self, node):
        op = node.op
        for at, name in enumerate(node.inputs):
            if name:
                self.dims(node, at)
        if op in SAME:
            self.put(node, 0, self.dims(node, 0), values=self.tensors[node.inputs[0]].values if op == "Identity"
                     else None)
        elif op in BROADCAST:
            self.broadcast_node(node)
        elif op in REDUCTIONS:
            self.reduction(node)
        elif (method := getattr(self, f"of_{op}", None)) is not None:
            method(node)
        else:
            self.other(node)

    def other(self, node):
        """An unknown operator: the file may have the shapes of its results."""
        for name in node.outputs:
            if name and (name not in self.tensors or self.tensors[name].dims is None):
                raise Unknown(f"the operator is not known here, and the file has no shape of '{name}'; "
                              "onnx.shape_inference.infer_shapes_path writes shapes into a model")

    def broadcast_node(self, node):
        shapes = [self.dims(node, at) for at in range(len(node.inputs)) if node.inputs[at]]
        values, dims = None, broadcast(shapes)
        given = [self.tensors[name].values for name in node.inputs if name]
        computes = ARITHMETIC.get(node.op) or COMPARISONS.get(node.op)
        if computes and len(given) == 2 and None not in given and math.prod(dims) <= FEW:
            size = max(map(len, given))
            given = [one * size if len(one) == 1 else one for one in given]
            values = [computes(a, b) for a, b in zip(*given)]
        kind = BOOLEAN if node.op in COMPARISONS else None
        if node.op == "Where":
            kind = self.tensors[node.inputs[1]].kind
        self.put(node, 0, dims, kind, values)

    def reduction(self, node):
        dims = self.dims(node, 0)
        axes = self.values(node, 1, "axes")
        axes = range(len(dims)) if axes is None else [axis % len(dims) for axis in axes]
        keep = node.attributes.get("keepdims", 1)
        self.put(node, 0, [1 if at in axes else size for at, size in enumerate(dims) if keep or at not in axes])

    # GEMMs

    def of_MatMul(self, node):  # noqa: N802  (named like the operators)
        a, b = self.dims(node, 0), self.dims(node, 1)
        if len(a) == 1 or len(b) == 1:
            raise Unknown("a GEMM with a vector; expected matrices")
        if a[-1] != b[-2]:
            raise Unknown(f"a GEMM of {list(a)} and {list(b)}")
        self.put(node, 0, (*broadcast([a[:-2], b[:-2]]), a[-2], b[-1]))

    def of_FusedMatMul(self, node):  # noqa: N802
        self.of_MatMul(node)

    def of_Gemm(self, node):  # noqa: N802
        a, b = self.dims(node, 0), self.dims(node, 1)
        a = a[::-1] if node.attributes.get("transA") else a
        b = b[::-1] if node.attributes.get("transB") else b
        if a[1] != b[0]:
            raise Unknown(f"a GEMM of {list(a)} and {list(b)}")
        self.put(node, 0, (a[0], b[1]))

    def window(self, node, spatial, kernel, transposed=False):
        count = len(spatial)
        strides = node.attributes.get("strides") or [1] * count
        dilations = node.attributes.get("dilations") or [1] * count
        pads = node.attributes.get("pads") or [0] * (2 * count)
        automatic = node.attributes.get("auto_pad", "NOTSET")
        extra = node.attributes.get("output_padding") or [0] * count
        result = []
        for at, size in enumerate(spatial):
            covered = (kernel[at] - 1) * dilations[at] + 1
            if transposed:
                result.append((size - 1) * strides[at] + covered - pads[at] - pads[at + count] + extra[at])
            elif automatic.startswith("SAME"):
                result.append(-(-size // strides[at]))
            else:
                room = size + (0 if automatic == "VALID" else pads[at] + pads[at + count]) - covered
                up = node.attributes.get("ceil_mode", 0)
                result.append((-(-room // strides[at]) if up else room // strides[at]) + 1)
        if min(result, default=1) < 1:
            raise Unknown(f"a window of {kernel} over {list(spatial)} leaves nothing")
        return result

    def of_Conv(self, node):  # noqa: N802
        into, weight = self.dims(node, 0), self.dims(node, 1)
        if into[1] != weight[1] * node.attributes.get("group", 1):
            raise Unknown(f"kernels {list(weight)} in {node.attributes.get('group', 1)} groups over {list(into)}")
        self.put(node, 0, (into[0], weight[0], *self.window(node, into[2:], weight[2:])))

    def of_ConvTranspose(self, node):  # noqa: N802
        into, weight = self.dims(node, 0), self.dims(node, 1)
        self.put(node, 0, (into[0], weight[1] * node.attributes.get("group", 1),
                           *self.window(node, into[2:], weight[2:], True)))

    def pool(self, node):
        into = self.dims(node, 0)
        self.put(node, 0, (*into[:2], *self.window(node, into[2:], node.attributes["kernel_shape"])))

    of_MaxPool = of_AveragePool = of_LpPool = pool

    def global_pool(self, node):
        into = self.dims(node, 0)
        self.put(node, 0, (*into[:2], *[1] * (len(into) - 2)))

    of_GlobalAveragePool = of_GlobalMaxPool = global_pool

    # Shapes

    def of_Constant(self, node):  # noqa: N802
        found = node.attributes
        if isinstance(found.get("value"), Tensor):
            tensor = found["value"]
            self.put(node, 0, tensor.dims, tensor.kind, tensor.values)
        elif "value_ints" in found:
            self.put(node, 0, (len(found["value_ints"]),), 7, list(found["value_ints"]))
        elif "value_int" in found:
            self.put(node, 0, (), 7, [found["value_int"]])
        else:
            self.put(node, 0, (len(found["value_floats"]),) if "value_floats" in found else (), 1)

    def of_Shape(self, node):  # noqa: N802
        dims = list(self.dims(node, 0))[node.attributes.get("start", 0):node.attributes.get("end")]
        self.put(node, 0, (len(dims),), 7, dims)

    def of_Size(self, node):  # noqa: N802
        self.put(node, 0, (), 7, [math.prod(self.dims(node, 0))])

    def of_ConstantOfShape(self, node):  # noqa: N802
        dims = self.values(node, 0)
        given = node.attributes.get("value")
        kind, first = (given.kind, (given.values or [None])[0]) if isinstance(given, Tensor) else (1, None)
        few = first is not None and math.prod(dims) <= FEW
        self.put(node, 0, dims, kind, [first] * math.prod(dims) if few else None)

    def of_Cast(self, node):  # noqa: N802
        kind = node.attributes.get("to", 1)
        self.put(node, 0, self.dims(node, 0), kind, self.tensors[node.inputs[0]].values if kind in (6, 7) else None)

    def of_Reshape(self, node):  # noqa: N802
        into, wanted = self.dims(node, 0), self.values(node, 1, "shape")
        dims = [into[at] if size == 0 and not node.attributes.get("allowzero") else size for at,
                size in enumerate(wanted)]
        rest = math.prod(size for size in dims if size != -1)
        dims = [math.prod(into) // rest if size == -1 else size for size in dims]
        if math.prod(dims) != math.prod(into):
            raise Unknown(f"{list(into)} cannot become {wanted}")
        self.put(node, 0, dims, values=self.tensors[node.inputs[0]].values)

    def of_Flatten(self, node):  # noqa: N802
        into, axis = self.dims(node, 0), node.attributes.get("axis", 1)
        self.put(node, 0, (math.prod(into[:axis]), math.prod(into[axis:])))

    def of_Transpose(self, node):  # noqa: N802
        into = self.dims(node, 0)
        order = node.attributes.get("perm") or list(range(len(into)))[::-1]
        self.put(node, 0, [into[at] for at in order])

    def of_Unsqueeze(self, node):  # noqa: N802
        into, axes = self.dims(node, 0), self.values(node, 1, "axes")
        width = len(into) + len(axes)
        axes, rest = {axis % width for axis in axes}, iter(into)
        self.put(node, 0, [1 if at in axes else next(rest) for at in range(width)],
                 values=self.tensors[node.inputs[0]].values)

    def of_Squeeze(self, node):  # noqa: N802
        into, axes = self.dims(node, 0), self.values(node, 1, "axes")
        gone = {at for at, size in enumerate(into) if size == 1} if axes is None else {axis % len(into)
                                                                                       for axis in axes}
        self.put(node, 0, [size for at, size in enumerate(into) if at not in gone],
                 values=self.tensors[node.inputs[0]].values)

    def of_Concat(self, node):  # noqa: N802
        shapes = [self.dims(node, at) for at in range(len(node.inputs))]
        axis = node.attributes.get("axis", 0) % len(shapes[0])
        given = [self.tensors[name].values for name in node.inputs]
        dims = list(shapes[0])
        dims[axis] = sum(shape[axis] for shape in shapes)
        self.put(node, 0, dims, values=sum(given, []) if None not in given and len(dims) == 1 else None)

    def of_Split(self, node):  # noqa: N802
        into = list(self.dims(node, 0))
        axis = node.attributes.get("axis", 0) % len(into)
        sizes = self.values(node, 1, "split")
        count = len(node.outputs)
        even = -(-into[axis] // count)
        sizes = sizes or [min(even, into[axis] - even * at) for at in range(count)]
        for at, size in enumerate(sizes):
            self.put(node, at, [*into[:axis], size, *into[axis + 1:]])

    def of_Slice(self, node):  # noqa: N802
        dims = list(self.dims(node, 0))
        starts, ends = self.values(node, 1, "starts"), self.values(node, 2, "ends")
        axes = self.values(node, 3, "axes") or list(range(len(starts)))
        steps = self.values(node, 4, "steps") or [1] * len(starts)
        values = self.tensors[node.inputs[0]].values
        for start, end, axis, step in zip(starts, ends, axes, steps):
            axis %= len(dims)
            chosen = range(*slice(start, end if abs(end) < 1 << 62 else None, step).indices(dims[axis]))
            dims[axis] = len(chosen)
            values = [values[at] for at in chosen] if values is not None and len(dims) == 1 else None
        self.put(node, 0, dims, values=values)

    def of_Gather(self, node):  # noqa: N802
        into, chosen = self.dims(node, 0), self.dims(node, 1)
        axis = node.attributes.get("axis", 0) % len(into)
        values, which = self.tensors[node.inputs[0]].values, self.tensors[node.inputs[1]].values
        found = [values[at] for at in which] if values is not None and which is not None and len(into) == 1 else None
        self.put(node, 0, (*into[:axis], *chosen, *into[axis + 1:]), values=found)

    def of_GatherElements(self, node):  # noqa: N802
        self.put(node, 0, self.dims(node, 1))

    def of_Expand(self, node):  # noqa: N802
        self.put(node, 0, broadcast([self.dims(node, 0), tuple(self.values(node, 1))]))

    def of_Tile(self, node):  # noqa: N802
        self.put(node, 0, [size * times for size, times in zip(self.dims(node, 0), self.values(node, 1))])

    def of_Pad(self, node):  # noqa: N802
        into, pads = self.dims(node, 0), self.values(node, 1, "pads")
        self.put(node, 0, [size + pads[at] + pads[at + len(into)] for at, size in enumerate(into)])

    def of_Range(self, node):  # noqa: N802
        (start,), (end,), (step,) = (self.values(node, at) for at in range(3))
        chosen = range(start, end, step)
        self.put(node, 0, (len(chosen),), 7, list(chosen) if len(chosen) <= FEW else None)

    def of_ArgMax(self, node):  # noqa: N802
        into = self.dims(node, 0)
        axis, keep = node.attributes.get("axis", 0) % len(into), node.attributes.get("keepdims", 1)
        self.put(node, 0, [1 if at == axis else size for at, size in enumerate(into) if keep or at != axis], 7)
