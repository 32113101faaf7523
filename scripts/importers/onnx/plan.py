# SPDX-License-Identifier: GPL-2.0-only
"""The work of one pipeline stage for an ONNX graph: kernels with their FLOPs and bytes, tensors that are split among
the ranks of a tensor-parallel group, and the places where their parts must be combined.

Tensor parallelism is Megatron-LM's (arXiv:1909.08053, section 3), found by following the data: a GEMM with weights is
split by columns if every rank has its whole input, and by rows if its input is split. A tensor stays split through all
operators that work on each element, head or channel separately."""

import math
from dataclasses import dataclass, field

from frameworks.devices import precision_of
from importing.errors import InputError

from . import products
from .model import FLOATING, QUANTIZED

# They only give existing data another name or shape, or their result is known beforehand.
FREE = {"Shape", "Constant", "ConstantOfShape", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Range",
        "Size", "Dropout"}
# They use all features of a token: a rank needs all of them.
OVER_FEATURES = {"LayerNormalization", "SimplifiedLayerNormalization", "SkipLayerNormalization", "RMSNormalization",
                 "SkipSimplifiedLayerNormalization", "ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "LogSoftmax",
                 "ArgMax", "LpNormalization", *products.GATES}
LOOKUPS = {"Gather", "GatherElements", "Slice", "Split", "EmbedLayerNormalization"}  # they read what they write
TOGETHER = {"Add", "Sub", "Mul", "Div", "Sum", "Where", "Concat", "Max", "Min", "Pow"}
# Bytes per parameter of Adam with all states in 32 bits: it reads weight, gradient and two moments, and writes all but
# the gradient (Kingma and Ba, arXiv:1412.6980, algorithm 1).
ADAM_BYTES = 28


@dataclass
class Work:
    """One operator on one rank. Times in picoseconds; communications are (kind, bytes) of the tensor-parallel group."""

    label: str
    forward: int = 0
    backward: int = 0
    flops: int = 0
    parameters: int = 0  # of this rank
    parameter_bytes: int = 0
    before: list = field(default_factory=list)  # in the forward pass, before its kernel
    behind: list = field(default_factory=list)
    backward_before: list = field(default_factory=list)
    backward_behind: list = field(default_factory=list)


class Planner:
    def __init__(self, graph, path, device, tensor, precision):
        self.graph, self.path, self.device, self.ways, self.precision = graph, str(path), device, tensor, precision
        self.split = {}  # value: True if each rank has a part of it
        self.counted = set()  # weights that belong to an operator above
        self.gathered = {}  # columns' inputs whose gradients are already summed
        self.cut = ""  # of the current operator: the dimension that is divided among the ranks
        self.whole = {}  # matrix products that are not divided among the ranks: {label: why}
        self.parameters = self.parameter_bytes = self.flops = self.multiplying = 0

    def tensor(self, name):
        return self.graph.tensors[name]

    def elements(self, name):
        return math.prod(self.tensor(name).dims)

    def bytes(self, name):
        return math.ceil(self.elements(name) * self.tensor(name).size)

    def dims(self, node):
        """Shapes of all inputs; None for one that is left out."""
        return [self.tensor(name).dims if name else None for name in node.inputs]

    def factor(self, node):
        """The place of the weight that a matrix product of the node has as a factor, or None."""
        return products.factor(node, [bool(name) and self.tensor(name).weight and len(self.tensor(name).dims) > 1
                                      for name in node.inputs])

    def plan(self):
        """[(node, Work)] of nodes that take time."""
        return [(node, work) for node in self.graph.nodes if (work := self.work(node))]

    def work(self, node):
        weights = [name for name in node.inputs if name and self.tensor(name).weight]
        data = [name for name in node.inputs if name and not self.tensor(name).weight]
        made = [name for name in node.outputs if name]
        known = all(self.tensor(name).values is not None for name in made)
        if node.op in FREE or known or not made:
            for name in made:
                self.split[name] = any(self.split.get(one) for one in data)
            return None
        work = Work(node.label)
        self.communicate(node, work, weights, data, made)
        self.cost(node, work, weights, data, made)
        return work

    def communicate(self, node, work, weights, data, made):
        """Whether results are split, and the communication that combines parts."""
        parts = [name for name in data if self.split.get(name)]
        place = self.factor(node)
        if parts and (node.op in OVER_FEATURES or products.is_projecting(node) or
                      place is None and self.mixed(node, data, parts)):
            self.gather(work, parts)
            parts = []
        result = bool(parts)
        if place is not None and parts:
            work.behind.append(("all_reduce", sum(map(self.bytes, made))))
            result = False
        elif place is not None and self.divides(node, place):
            if data and not self.gathered.get(data[0]):
                self.gathered[data[0]] = True
                work.backward_behind.append(("all_reduce", self.bytes(data[0])))
            result = True
        self.cut = ("rows" if parts else "columns" if result else "") if place is not None else \
            "heads" if result else ""
        for name in made:
            self.split[name] = result

    def gather(self, work, parts):
        """Every rank gets the whole of split tensors. Their gradients are whole on every rank, which keeps its part of them
        (GatherFromModelParallelRegion of Megatron-LM's megatron/core/tensor_parallel/mappings.py)."""
        for name in parts:
            work.before.append(("all_gather", self.bytes(name) // self.ways))
            self.split[name] = False

    def divides(self, node, place):
        """Whether ranks can each have a part of a weight: of its columns, or of a convolution's kernels."""
        groups = node.attributes.get("group", 1)
        return self.ways > 1 and (groups == 1 or groups % self.ways == 0) and \
            any(size % self.ways == 0 for size in products.columns(node, self.dims(node), place))

    def reason(self, node):
        """Why ranks do not share a matrix product."""
        place, groups = self.factor(node), node.attributes.get("group", 1)
        if place is None:
            return "its steps need the whole state" if node.op in products.GATES else "no weight, and no divided input"
        sizes = [f"{size} {'heads' if products.is_projecting(node) else 'columns'}"
                 for size in products.columns(node, self.dims(node), place)]
        return f"{' and '.join(sizes) or 'no columns'}{f' in {groups} groups' if groups > 1 else ''}"

    def mixed(self, node, data, parts):
        """A sum of a split and a whole tensor, such as a residual connection."""
        return node.op in TOGETHER and any(name not in parts and self.elements(name) > 1 and
                                           len(self.tensor(name).dims) > 1
                                           and self.tensor(name).kind in FLOATING for name in data)

    def cost(self, node, work, weights, data, made):
        ways = self.ways if self.cut else 1
        moved = sum(map(self.bytes, made)) + sum(map(self.bytes, data)) + sum(map(self.bytes, weights))
        if node.op in LOOKUPS:
            moved = 2 * sum(map(self.bytes, made))
        gemms = products.gemms_of(node, self.dims(node), self.tensor(made[0]).dims, self.factor(node))
        if gemms:
            self.multiplying += 1
            if self.ways > 1 and not self.cut:
                self.whole[node.label] = self.reason(node)
            self.products(node, work, gemms, moved // ways, made[0])
        else:
            work.forward = work.backward = self.device.other(moved // ways)
        for name in self.learned(node, weights):
            if name in self.counted:
                continue
            self.counted.add(name)
            count = self.parameters_of(node, name)
            self.parameters += count
            self.parameter_bytes += self.bytes(name)
            part = ways if self.cut != "rows" or len(self.tensor(name).dims) > 1 else 1
            work.parameters += -(-count // part)
            work.parameter_bytes += -(-self.bytes(name) // part)

    def products(self, node, work, gemms, moved, made):
        """The time of a node's GEMMs, the first of which moves its bytes; a later one what it reads again."""
        ways = self.ways if self.cut else 1
        precision = self.precision or precision_of(self.tensor(self.multiplied(node, made)).dtype)
        for gemm in gemms:
            work.flops += gemm.flops // ways
            self.flops += gemm.flops
            each = gemm.each or self.cut == "heads"
            n = max(1, gemm.n // ways) if self.cut == "columns" and not each else gemm.n
            k = max(1, gemm.k // ways) if self.cut == "rows" else gemm.k
            count = max(1, gemm.count // ways) if each else gemm.count
            size = self.bytes(node.inputs[gemm.again]) // ways if gemm.again is not None else moved
            work.forward += gemm.repeats * self.device.gemm(gemm.m, n, k, count, size, precision)
            moved = 0
        # GEMMs for the gradients of the input and of the weight, or of both inputs
        work.backward = 2 * work.forward

    @staticmethod
    def multiplied(node, made):
        """The tensor in whose type a node multiplies: its result, or a weight of whole numbers."""
        where = products.OPERANDS.get(node.op)
        return node.inputs[where.b] if where and where.integer else made

    def learned(self, node, weights):
        """The parameters among its weights: by the operator's definition, or numbers of floating point and tables of
        few bits."""
        places = products.learned(node)
        if places is not None:
            return [name for at, name in enumerate(node.inputs) if at in places and name in weights]
        return [name for name in weights if self.tensor(name).kind in FLOATING or
                self.tensor(name).kind in QUANTIZED and len(self.tensor(name).dims) > 1]

    def parameters_of(self, node, name):
        """Numbers, also where several are in a byte."""
        if node.op in products.BLOCKS and name == node.inputs[1]:
            return node.attributes["K"] * node.attributes["N"]
        return self.elements(name)


def stages_of(works, count, path):
    """The graph cut into stages of about the same time: [(first, after the last), ...]."""
    times = [work.forward + work.backward for _, work in works]
    if len(works) < count:
        raise InputError(path, None, f"{len(works)} operators in {count} stages of a pipeline; expected fewer stages")
    total, reached, cuts = sum(times), 0, [0]
    for at, time in enumerate(times):
        left, open_cuts = len(times) - at, count - len(cuts)
        if open_cuts and at > cuts[-1] and (reached + time / 2 >= total * len(cuts) / count or left <= open_cuts):
            cuts.append(at)
        reached += time
    return list(zip(cuts, [*cuts[1:], len(works)]))


def crossing(planner, works, cuts):
    """Bytes of the values that are produced before each cut and used after it; for split values the rank's part."""
    graph = planner.graph
    position = {node.number: at for at, (node, _) in enumerate(works)}
    made, used = {}, {}
    now = -1
    for node in graph.nodes:
        now = position.get(node.number, now)
        for name in node.outputs:
            made.setdefault(name, max(0, now))
        for name in node.inputs:
            used[name] = max(0, now)
    found = []
    for cut in cuts:
        live = [name for name, at in made.items() if at < cut <= used.get(name, -1)]
        found.append(sum(planner.bytes(name) // (planner.ways if planner.split.get(name) else 1) for name in live
                         if planner.tensor(name).values is None and
                         planner.tensor(name).kind in FLOATING | QUANTIZED))
    return found
