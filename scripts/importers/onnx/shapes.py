# SPDX-License-Identifier: GPL-2.0-only
"""Shapes of all values of an ONNX graph, from those of its inputs, by the operators' definitions (docs/Operators.md of
github.com/onnx/onnx). Small tensors of whole numbers are computed, too: shapes are made of them."""

import math

from importing.errors import InputError

from . import control, products
from .model import FEW, MICROSOFT, Tensor, Unknown

SAME = {"Relu", "LeakyRelu", "Sigmoid", "Tanh", "Erf", "Exp", "Log", "Sqrt", "Neg", "Abs", "Softmax", "LogSoftmax",
        "Gelu", "LayerNormalization", "BatchNormalization", "InstanceNormalization", "GroupNormalization",
        "SimplifiedLayerNormalization", "RMSNormalization", "Dropout", "Identity", "Clip", "HardSwish", "HardSigmoid",
        "Elu", "Selu", "PRelu", "Softplus", "Softsign", "Reciprocal", "Floor", "Ceil",
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
UINT8, INT32, BOOLEAN = 2, 6, 9
# Of com.microsoft, besides those with matrix products; other operators of this domain are refused.
FOREIGN = {"BiasGelu", "DequantizeLinear", "EmbedLayerNormalization", "FastGelu", "Gelu", "QuantizeLinear", "QuickGelu",
           "RotaryEmbedding", "SimplifiedLayerNormalization", "SkipLayerNormalization",
           "SkipSimplifiedLayerNormalization", "Trilu"}
# Without matrix products, whatever weights they have.
PRODUCTLESS = {"CastLike", "Compress", "GatherND", "GridSample", "MaxUnpool", "OneHot", "Resize", "ReverseSequence",
               "RoiAlign", "TopK", "Unique", "Upsample"}


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
        if node.domain == MICROSOFT and op not in FOREIGN and not products.has_product(node):
            raise Unknown(f"an operator of the domain {MICROSOFT} whose FLOPs are not known here; expected those of "
                          "ai.onnx, as before the extended optimizations of ONNX Runtime")
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
        """An unknown operator: the file may have the shapes of its results. With a matrix as a weight, it may be a
        matrix product."""
        for name, tensor in ((name, self.tensors[name]) for name in node.inputs if name):
            if tensor.weight and len(tensor.dims) > 1 and node.op not in PRODUCTLESS:
                raise Unknown(f"the operator is not known here, and its weight '{name}' of {list(tensor.dims)} may be "
                              "a factor of a matrix product; expected operators with known FLOPs")
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

    def shapes(self, node):
        """Of all inputs; None for one that is left out."""
        return [self.dims(node, at) if name else None for at, name in enumerate(node.inputs)]

    def kind_of(self, node):
        """The type of a matrix product; None: that of its first input."""
        like = products.OPERANDS[node.op].like
        if like is None:
            return INT32
        if like == 0:
            return None
        return self.tensors[node.inputs[like]].kind if like < len(node.inputs) and node.inputs[like] else 1

    def matmul(self, node):
        a, b = products.factors(node, self.shapes(node))
        if len(a) == 1 or len(b) == 1:
            raise Unknown("a GEMM with a vector; expected matrices")
        if a[-1] != b[-2]:
            raise Unknown(f"a GEMM of {list(a)} and {list(b)}")
        self.put(node, 0, (*broadcast([a[:-2], b[:-2]]), a[-2], b[-1]), self.kind_of(node))

    of_MatMul = of_FusedMatMul = of_TransposeMatMul = of_MatMulInteger = of_QLinearMatMul = matmul
    of_MatMulIntegerToFloat = of_DynamicQuantizeMatMul = of_Gemm = of_FusedGemm = of_QGemm = matmul

    def of_MatMulNBits(self, node):  # noqa: N802  (named like the operators)
        a, k, n = self.dims(node, 0), node.attributes["K"], node.attributes["N"]
        if a[-1] != k or n < 1:
            raise Unknown(f"a GEMM of {list(a)} and {[k, n]}")
        self.put(node, 0, (*a[:-1], n))

    def of_Einsum(self, node):  # noqa: N802
        _, result, size = products.einsum(node, self.shapes(node))
        self.put(node, 0, [size[label] for label in result])

    def recurrent(self, node):
        steps, batch, directions, hidden = products.recurrent(node, self.shapes(node))
        turned = node.attributes.get("layout", 0)
        self.put(node, 0, (batch, steps, directions, hidden) if turned else (steps, directions, batch, hidden))
        for at in (1, 2):
            self.put(node, at, (batch, directions, hidden) if turned else (directions, batch, hidden))

    of_LSTM = of_GRU = of_RNN = recurrent

    def attention(self, node):
        found, query = products.attention(node, self.shapes(node)), self.dims(node, 0)
        if len(query) == 4 and node.op == "Attention":
            self.put(node, 0, (found.batch, found.heads, found.queries, found.value_width))
        else:
            self.put(node, 0, (found.batch, found.queries, found.heads * found.value_width))
        if products.is_projecting(node):
            self.put(node, 1, (2, *found.present(found.width)))
            return
        self.put(node, 1, found.present(found.width))
        self.put(node, 2, found.present(found.value_width))
        self.put(node, 3, (found.batch, found.heads, found.queries, found.keys))

    of_Attention = of_MultiHeadAttention = of_GroupQueryAttention = attention

    # Quantization

    def of_QuantizeLinear(self, node):  # noqa: N802
        kind = self.tensors[node.inputs[2]].kind if len(node.inputs) > 2 and node.inputs[2] else UINT8
        self.put(node, 0, self.dims(node, 0), node.attributes.get("output_dtype") or kind)

    def of_DequantizeLinear(self, node):  # noqa: N802
        self.put(node, 0, self.dims(node, 0), self.tensors[node.inputs[1]].kind)

    def of_DynamicQuantizeLinear(self, node):  # noqa: N802
        self.put(node, 0, self.dims(node, 0), UINT8)
        self.put(node, 1, (), 1)
        self.put(node, 2, (), UINT8)

    # Convolutions

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

    def convolution(self, node):
        where, dims, groups = products.OPERANDS[node.op], self.shapes(node), node.attributes.get("group", 1)
        into, kernels = dims[where.a], dims[where.b]
        if into[1] != kernels[1] * groups:
            raise Unknown(f"kernels {list(kernels)} in {groups} groups over {list(into)}")
        self.put(node, 0, (into[0], kernels[0], *self.window(node, into[2:], kernels[2:])), self.kind_of(node))

    of_Conv = of_FusedConv = of_ConvInteger = of_QLinearConv = convolution

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

    # Normalizations with further results

    def of_SkipLayerNormalization(self, node):  # noqa: N802
        """The last result is the sum that is normalized; mean and deviation are those of each token."""
        dims = self.dims(node, 0)
        for at in range(len(node.outputs)):
            self.put(node, at, (*dims[:-1], 1) if at in (1, 2) else dims)

    of_SkipSimplifiedLayerNormalization = of_SkipLayerNormalization

    def of_EmbedLayerNormalization(self, node):  # noqa: N802
        """Sums of rows of the tables of words, positions and segments."""
        (batch, tokens), table = self.dims(node, 0), self.dims(node, 2)
        kind = self.tensors[node.inputs[2]].kind
        self.put(node, 0, (batch, tokens, table[1]), kind)
        self.put(node, 1, (batch,), INT32)
        self.put(node, 2, (batch, tokens, table[1]), kind)

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
