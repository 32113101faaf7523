# SPDX-License-Identifier: GPL-2.0-only
"""Operators of ONNX that contain matrix products, and the GEMMs that they are: by docs/Operators.md of
github.com/onnx/onnx, and for the domain com.microsoft by docs/ContribOperators.md of github.com/microsoft/onnxruntime.
`dims` are the shapes of a node's inputs, None for one that is left out."""

import math
from dataclasses import dataclass

from .model import MICROSOFT, Unknown


@dataclass(frozen=True)
class Operands:
    """Where a node's factors and biases are among its inputs."""

    a: int = 0
    b: int = 1
    biases: tuple = ()
    integer: bool = False  # the factors are multiplied as whole numbers
    like: int | None = 0  # the input whose type the result has; None: int32


MATMULS = {"MatMul": Operands(), "FusedMatMul": Operands(), "TransposeMatMul": Operands(),
           "MatMulInteger": Operands(integer=True, like=None), "QLinearMatMul": Operands(0, 3, (), True, 7),
           "MatMulIntegerToFloat": Operands(0, 1, (6,), True, 2), "DynamicQuantizeMatMul": Operands(0, 1, (4,), True)}
GEMMS = {"Gemm": Operands(biases=(2,)), "FusedGemm": Operands(biases=(2,)), "QGemm": Operands(0, 3, (6,), True, 8)}
CONVOLUTIONS = {"Conv": Operands(biases=(2,)), "FusedConv": Operands(biases=(2,)),
                "ConvInteger": Operands(integer=True, like=None), "QLinearConv": Operands(0, 3, (8,), True, 7),
                "ConvTranspose": Operands(biases=(2,))}
BLOCKS = {"MatMulNBits": Operands(biases=(5,))}  # weights in blocks of few bits
OPERANDS = {**MATMULS, **GEMMS, **CONVOLUTIONS, **BLOCKS}
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
ATTENTIONS = {"Attention", "MultiHeadAttention", "GroupQueryAttention"}
# Inputs that are learned, of operators with other weights, too: tables, scales, masks, first states.
LEARNED = {**{op: (one.a, one.b, *one.biases) for op, one in OPERANDS.items()}, **dict.fromkeys(GATES, (1, 2, 3, 7)),
           "Attention": (), "MultiHeadAttention": (3,), "GroupQueryAttention": (), "RotaryEmbedding": (),
           "DequantizeLinear": (0,)}


@dataclass
class Gemm:
    """`count` GEMMs of m x k by k x n, and `repeats` of that one after the other. `each`: the count is one of heads, so
    that ranks divide it. `again`: the input that is read in each repetition."""

    m: int
    n: int
    k: int
    count: int = 1
    repeats: int = 1
    each: bool = False
    again: int | None = None

    @property
    def flops(self):
        return 2 * self.m * self.n * self.k * self.count * self.repeats


def is_projecting(node):
    """Attention of com.microsoft, which makes queries, keys and values by a weight of its own."""
    return node.op == "Attention" and node.domain == MICROSOFT


def learned(node):
    """Places of the learned inputs; None: all with weights of floating point."""
    return (1, 2) if is_projecting(node) else LEARNED.get(node.op)


def has_product(node):
    return node.op in OPERANDS or node.op in GATES or node.op in ATTENTIONS or node.op == "Einsum"


def factor(node, weights):
    """The place of the weight that a matrix product of a node has as a factor, or None. `weights`: for each input,
    whether it is a weight of two or more dimensions."""
    if node.op == "Einsum":
        return weights.index(True) if len(weights) == 2 and sum(weights) == 1 else None
    place = 1 if is_projecting(node) else OPERANDS[node.op].b if node.op in OPERANDS else None
    return place if place is not None and weights[place] else None


def turned(node, dims, at, key):
    """The shape of a factor, transposed if the attribute `key` says so."""
    return (*dims[at][:-2], dims[at][-1], dims[at][-2]) if node.attributes.get(key) else dims[at]


def factors(node, dims):
    """Shapes of both factors as they are multiplied."""
    if node.attributes.get("transBatchA") or node.attributes.get("transBatchB"):
        raise Unknown("transposed batches; expected transBatchA and transBatchB of 0")
    where = OPERANDS[node.op]
    return turned(node, dims, where.a, "transA"), turned(node, dims, where.b, "transB")


def gemms_of(node, dims, out, place):
    """[Gemm] of a node. `out`: the shape of its first result, `place`: that of a factor that is a weight, or None."""
    if node.op == "Einsum":
        return of_einsum(node, dims, place)
    if node.op in GATES:
        return of_recurrent(node, dims)
    if node.op in ATTENTIONS:
        return attention(node, dims).gemms()
    if node.op in BLOCKS:
        return [Gemm(math.prod(out[:-1]), out[-1], dims[0][-1])]
    if node.op in CONVOLUTIONS:
        return [of_convolution(node, dims, out)]
    if node.op in OPERANDS:
        k = factors(node, dims)[1][-2]
        if place is not None:
            return [Gemm(math.prod(out[:-1]), out[-1], k)]
        return [Gemm(out[-2], out[-1], k, math.prod(out[:-2]))]
    return []


def of_convolution(node, dims, out):
    into, kernels = dims[OPERANDS[node.op].a], dims[OPERANDS[node.op].b]
    groups, covered = node.attributes.get("group", 1), math.prod(kernels[1:])
    if node.op == "ConvTranspose":  # each input element meets a whole kernel
        return Gemm(into[0] * math.prod(into[2:]), covered, kernels[0] // groups)
    return Gemm(out[0] * math.prod(out[2:]), out[1] // groups, covered, groups)


def columns(node, dims, place):
    """Sizes of the dimensions of which ranks can have a part each, with a part of the weight at `place`."""
    if node.op == "Einsum":
        terms, result, size = einsum(node, dims)
        return [size[label] for label in terms[place] if label in result and label not in terms[1 - place]]
    if is_projecting(node):
        return [node.attributes["num_heads"]]
    if node.op in BLOCKS:
        return [node.attributes["N"]]
    if node.op in CONVOLUTIONS:
        return [dims[place][1 if node.op == "ConvTranspose" else 0]]
    return [factors(node, dims)[1][-1]]


# Einsum


def labels_of(term, width):
    """The labels of an operand of `width` dimensions; those that an ellipsis stands for count from its end."""
    head, dots, tail = term.partition("...")
    covered = width - len(head) - len(tail) if dots else 0
    found = [*head, *(f"...{at}" for at in range(-covered, 0)), *tail]
    if len(found) != width or len(set(found)) < width:
        raise Unknown(f"operand '{term}' of {width} dimensions; expected another label for each of them")
    return found


def einsum(node, dims):
    """(labels of each operand, of the result, {label: size})."""
    left, arrow, right = node.attributes.get("equation", "").replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(dims) or len(terms) > 2:
        raise Unknown(f"equation '{left}{arrow}{right}' of {len(dims)} inputs; expected one or two, each with labels")
    terms, size = [labels_of(term, len(shape)) for term, shape in zip(terms, dims)], {}
    for labels, shape in zip(terms, dims):
        for label, length in zip(labels, shape):
            if 1 not in (length, size.get(label, 1)) and size[label] != length:
                raise Unknown(f"label '{label}' has the sizes {size[label]} and {length}")
            size[label] = max(length, size.get(label, 1))
    covered = sorted((label for label in size if label.startswith("...")), key=lambda label: int(label[3:]))
    every = [label for labels in terms for label in labels]
    if not arrow:
        once = sorted(label for label in size if label not in covered and every.count(label) == 1)
        return terms, covered + once, size
    result = labels_of(right, len(right) - 3 + len(covered) if "..." in right else len(right))
    if not set(result) <= set(size):
        raise Unknown(f"result '{right}'; expected labels of '{left}'")
    return terms, result, size


def of_einsum(node, dims, place):
    """A product of two operands over the labels that only the result lacks; others are sums or products of elements."""
    terms, result, size = einsum(node, dims)
    if len(terms) < 2:
        return []
    a, b = reversed(terms) if place == 0 else terms
    shared = [label for label in a if label in b]
    if set(shared) <= set(result):
        return []

    def elements(labels):
        return math.prod(size[label] for label in labels)

    return [Gemm(elements(label for label in a if label in result and label not in shared),
                 elements(label for label in b if label in result and label not in shared),
                 elements(label for label in shared if label not in result),
                 elements(label for label in shared if label in result))]


# Recurrent layers


def recurrent(node, dims):
    """(steps, batch, directions, hidden) of an LSTM, a GRU or an RNN."""
    into, weight, again = dims[:3]
    steps, batch = into[1::-1] if node.attributes.get("layout", 0) else into[:2]
    directions, hidden = weight[0], again[-1]
    gates = GATES[node.op] * hidden
    if weight != (directions, gates, into[-1]) or again != (directions, gates, hidden):
        raise Unknown(f"weights {list(weight)} and {list(again)} over {list(into)}; expected "
                      f"[D, {GATES[node.op]} H, I] and [D, {GATES[node.op]} H, H]")
    return steps, batch, directions, hidden


def of_recurrent(node, dims):
    """The inputs of all steps meet their weight at once; states do one step after the other."""
    steps, batch, directions, hidden = recurrent(node, dims)
    gates = GATES[node.op] * hidden
    return [Gemm(steps * batch, gates, dims[0][-1], directions),
            Gemm(batch, gates, hidden, directions, steps, again=2)]


# Attention


@dataclass
class Attention:
    """Of `heads` with queries and keys of `width` and values of `value_width`; `cached`: heads of keys and values."""

    batch: int
    heads: int
    queries: int
    keys: int
    width: int
    value_width: int
    cached: int
    projection: Gemm | None = None

    def gemms(self):
        """Each query with each key, and the sums of values: masked pairs count, too."""
        count = self.batch * self.heads
        products = [Gemm(self.queries, self.keys, self.width, count, each=True),
                    Gemm(self.queries, self.value_width, self.keys, count, each=True)]
        return [self.projection, *products] if self.projection else products

    def present(self, width):
        return self.batch, self.cached, self.keys, width


def given(dims, at):
    return dims[at] if at < len(dims) else None


def past(dims, at):
    """Keys of earlier calls: of [batch, heads, keys, width]."""
    return given(dims, at)[-2] if given(dims, at) else 0


def attention(node, dims):
    if is_projecting(node):
        return projecting(node, dims)
    if node.op == "MultiHeadAttention":
        return multi_head(node, dims)
    return grouped(node, dims) if node.op == "GroupQueryAttention" else plain(node, dims)


def projecting(node, dims):
    batch, queries, features = dims[0]
    heads = node.attributes["num_heads"]
    sizes = node.attributes.get("qkv_hidden_sizes") or [dims[1][1] // 3] * 3
    if dims[1] != (features, sum(sizes)) or any(size % heads for size in sizes):
        raise Unknown(f"weights {list(dims[1])} of {heads} heads over {list(dims[0])}")
    return Attention(batch, heads, queries, queries + past(dims, 4), sizes[1] // heads, sizes[2] // heads, heads,
                     Gemm(batch * queries, sum(sizes), features))


def multi_head(node, dims):
    heads, key, value = node.attributes["num_heads"], given(dims, 1), given(dims, 2)
    batch, queries, width = dims[0][0], dims[0][1], dims[0][-1] // (1 if len(dims[0]) == 5 else heads)
    keys, value_width = queries, width
    if key and len(key) == 4:  # [batch, heads, keys, width]
        keys, value_width = key[2], value[3]
    elif key:
        keys, value_width = key[1], value[2] // heads if value else width
    return Attention(batch, heads, queries, keys + past(dims, 6), width, value_width, heads)


def grouped(node, dims):
    heads, cached = node.attributes["num_heads"], node.attributes["kv_num_heads"]
    (batch, queries, features), key = dims[0], given(dims, 1)
    width = features // (heads if key else heads + 2 * cached)
    return Attention(batch, heads, queries, (key[1] if key else queries) + past(dims, 3), width, width, cached)


def plain(node, dims):
    """Attention of ai.onnx, of four dimensions, or of three with the number of heads beside them."""
    (query, key, value), found = dims[:3], node.attributes
    if len(query) == 4:
        return Attention(query[0], query[1], query[2], key[2] + past(dims, 4), query[3], value[3], key[1])
    heads, cached = found["q_num_heads"], found["kv_num_heads"]
    return Attention(query[0], heads, query[1], key[1] + past(dims, 4), query[2] // heads, value[2] // cached, cached)
