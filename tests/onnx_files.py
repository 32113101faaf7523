# SPDX-License-Identifier: GPL-2.0-only
"""ONNX models for tests, in protobuf's wire format with the field numbers of onnx/onnx.proto (github.com/onnx/onnx)."""

import struct

from chakra_files import delimited, varint

FLOAT, UINT8, INT8, INT32, INT64, FLOAT16 = 1, 2, 3, 6, 7, 10
SIZES = {FLOAT: 4, UINT8: 1, INT8: 1, INT32: 4, INT64: 8, FLOAT16: 2}


def number(field, value):
    return varint(field << 3) + varint(value)


def text(field, value):
    return delimited(field, value.encode())


def tensor(name, dims, kind=FLOAT, values=None):
    """Weights of zeros, or whole numbers."""
    content = b"".join(number(1, size) for size in dims) + number(2, kind) + text(8, name)
    if values is not None:
        return content + delimited(9, struct.pack(f"<{len(values)}q", *values))
    count = 1
    for size in dims:
        count *= size
    return content + delimited(9, bytes(count * SIZES[kind]))


def value(name, dims, kind=FLOAT):
    shape = b"".join(delimited(1, number(1, one) if isinstance(one, int) else text(2, one)) for one in dims)
    return text(1, name) + delimited(2, delimited(1, number(1, kind) + delimited(2, shape)))


def attribute(name, content):
    coded = text(1, name)
    if isinstance(content, int):
        return coded + number(3, content) + number(20, 2)
    if isinstance(content, str):
        return coded + text(4, content) + number(20, 3)
    return coded + delimited(8, b"".join(map(varint, content))) + number(20, 7)


def node(op, inputs, outputs, **attributes):
    return (b"".join(text(1, one) for one in inputs) + b"".join(text(2, one) for one in outputs) +
            text(3, f"{op}_{outputs[0]}") + text(4, op) +
            b"".join(delimited(5, attribute(name, one)) for name, one in attributes.items()))


def foreign(op, inputs, outputs, **attributes):
    """An operator of ONNX Runtime's own."""
    return node(op, inputs, outputs, **attributes) + text(7, "com.microsoft")


def quantized(names, kind=UINT8):
    """Scales and zero points: names that end in s and z."""
    return [tensor(name, [], FLOAT if name.endswith("s") else kind) for name in names]


def within(name, nodes, inputs, outputs, weights=()):
    """An attribute that is a graph, to be put behind a node."""
    graph = b"".join(delimited(1, one) for one in nodes) + text(2, name) + b"".join(delimited(5, one) for one in weights)
    graph += b"".join(delimited(11, one) for one in inputs) + b"".join(delimited(12, one) for one in outputs)
    return delimited(5, text(1, name) + delimited(6, graph) + number(20, 5))


def boolean(name, flag):
    return number(2, 9) + text(8, name) + delimited(9, bytes([flag]))


def loop(trips=3, width=256):
    """`trips` times a GEMM with a weight outside of the loop, and one with a weight within it; all results of the first
    are kept side by side."""
    body = within("body", [node("MatMul", ["in", "w"], ["a"]), node("MatMul", ["a", "v"], ["b"]),
                           node("Identity", ["goes_on"], ["still"])],
                  [value("i", [], INT64), value("goes_on", [], 9), value("in", ["N", width])],
                  [value("still", [], 9), value("b", ["N", width]), value("a", ["N", width])],
                  [tensor("v", [width, width])])
    return model([node("Loop", ["trips", "true", "x"], ["y", "all"]) + body],
                 [tensor("trips", [], INT64, [trips]), boolean("true", 1), tensor("w", [width, width])],
                 [value("x", ["N", width])], [value("y", ["N", width]), value("all", [trips, "N", width])])


def branches(condition, width=256, computed=False):
    """An If whose condition is a constant, or compares the input's width with 256."""
    test = [node("Shape", ["x"], ["s"]), node("Gather", ["s", "one"], ["n"], axis=0), node("Equal", ["n", "due"], ["c"])]
    two = within("then_branch", [node("MatMul", ["x", "w"], ["t"]), node("MatMul", ["t", "w"], ["t2"])], [],
                 [value("t2", ["N", width])])
    one = within("else_branch", [node("MatMul", ["x", "w"], ["e"])], [], [value("e", ["N", width])])
    return model([*(test if computed else ()), node("If", ["c"], ["y"]) + two + one],
                 [*([tensor("one", [], INT64, [1]), tensor("due", [], INT64, [256])] if computed else [boolean("c", condition)]),
                  tensor("w", [width, width])], [value("x", ["N", width])], [value("y", ["N", width])])


def model(nodes, weights, inputs, outputs):
    graph = b"".join(delimited(1, one) for one in nodes) + text(2, "graph")
    graph += b"".join(delimited(5, one) for one in weights) + b"".join(delimited(11, one) for one in inputs)
    graph += b"".join(delimited(12, one) for one in outputs)
    return number(1, 8) + text(2, "tests") + delimited(7, graph) + delimited(8, number(2, 17))


def two_layers(width=1024, hidden=4096, kind=FLOAT):
    """GEMMs of [batch, width] by [width, hidden] and back, with a rectifier between and a residual connection."""
    return model([node("Gemm", ["x", "w1", "b1"], ["h"]), node("Relu", ["h"], ["r"]),
                  node("MatMul", ["r", "w2"], ["m"]), node("Add", ["m", "x"], ["y"])],
                 [tensor("w1", [width, hidden], kind), tensor("b1", [hidden], kind),
                  tensor("w2", [hidden, width], kind)],
                 [value("x", ["N", width], kind)], [value("y", ["N", width], kind)])


def attention(tokens=64, width=256, heads=4):
    """A block of a transformer as torch.onnx writes it: shapes are computed in the graph."""
    each = width // heads
    nodes = [node("Shape", ["x"], ["s"]), node("Gather", ["s", "zero"], ["n"], axis=0),
             node("Unsqueeze", ["n", "axes0"], ["n1"]), node("Concat", ["n1", "rest"], ["split"], axis=0),
             node("Concat", ["n1", "whole"], ["join"], axis=0)]
    for name in "qkv":
        nodes += [node("MatMul", ["x", f"w{name}"], [f"{name}0"]), node("Reshape", [f"{name}0", "split"], [f"{name}1"]),
                  node("Transpose", [f"{name}1"], [name], perm=[0, 2, 3, 1] if name == "k" else [0, 2, 1, 3])]
    nodes += [node("MatMul", ["q", "k"], ["scores"]), node("Softmax", ["scores"], ["p"], axis=3),
              node("MatMul", ["p", "v"], ["c"]), node("Transpose", ["c"], ["c1"], perm=[0, 2, 1, 3]),
              node("Reshape", ["c1", "join"], ["c2"]), node("MatMul", ["c2", "wo"], ["o"]),
              node("Add", ["o", "x"], ["r"]), node("LayerNormalization", ["r", "g", "b"], ["y"], axis=2)]
    weights = [tensor(f"w{name}", [width, width]) for name in "qkvo"] + [tensor("g", [width]), tensor("b", [width])]
    weights += [tensor("zero", [], INT64, [0]), tensor("axes0", [1], INT64, [0]),
                tensor("rest", [3], INT64, [tokens, heads, each]), tensor("whole", [2], INT64, [tokens, width])]
    return model(nodes, weights, [value("x", ["N", tokens, width])], [value("y", ["N", tokens, width])])


def convolution(size=32):
    """Two convolutions, pooling and a classifier."""
    return model([node("Conv", ["x", "w1"], ["a"], kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2]),
                  node("Relu", ["a"], ["b"]), node("Conv", ["b", "w2"], ["c"], kernel_shape=[3, 3], pads=[1, 1, 1, 1],
                                                   group=2),
                  node("GlobalAveragePool", ["c"], ["d"]), node("Flatten", ["d"], ["e"]),
                  node("Gemm", ["e", "w3", "b3"], ["y"], transB=1)],
                 [tensor("w1", [16, 3, 3, 3]), tensor("w2", [32, 8, 3, 3]), tensor("w3", [10, 32]), tensor("b3", [10])],
                 [value("x", ["N", 3, size, size])], [value("y", ["N", 10])])


def products(tokens=4, width=16, heads=2):
    """One after the other: Einsum, an LSTM, attention with a weight and without one, weights of four bits and of
    eight."""
    nodes = [node("Einsum", ["x", "w"], ["e"], equation="...i,io->...o"),
             node("LSTM", ["e", "lw", "lr"], ["l"], layout=1, hidden_size=width),
             node("Reshape", ["l", "shape"], ["l1"]), foreign("Attention", ["l1", "aw"], ["a"], num_heads=heads),
             foreign("GroupQueryAttention", ["a", "a", "a"], ["g"], num_heads=heads, kv_num_heads=heads),
             foreign("MatMulNBits", ["g", "bw", "bs"], ["m"], K=width, N=width, bits=4, block_size=16),
             node("DynamicQuantizeLinear", ["m"], ["q", "qs", "qz"]), node("MatMulInteger", ["q", "iw", "qz"], ["y"])]
    weights = [tensor("w", [width, width]), tensor("lw", [1, 4 * width, width]), tensor("lr", [1, 4 * width, width]),
               tensor("aw", [width, 3 * width]), tensor("bw", [width, width // 16, 8], UINT8),
               tensor("bs", [width * width // 16]), tensor("iw", [width, width], INT8),
               tensor("shape", [3], INT64, [0, tokens, width])]
    return model(nodes, weights, [value("x", ["N", tokens, width])], [value("y", ["N", tokens, width], INT32)])
