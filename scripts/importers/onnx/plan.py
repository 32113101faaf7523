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

from .model import FLOATING

GEMMS = {"MatMul", "Gemm", "FusedMatMul"}
CONVOLUTIONS = {"Conv", "ConvTranspose"}
# They only give existing data another name or shape, or their result is known beforehand.
FREE = {"Shape", "Constant", "ConstantOfShape", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Range",
        "Size", "Dropout"}
# They use all features of a token: a rank needs all of them.
OVER_FEATURES = {"LayerNormalization", "SimplifiedLayerNormalization", "SkipLayerNormalization", "RMSNormalization",
                 "ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "LogSoftmax", "ArgMax", "LpNormalization"}
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
        self.parameters = self.parameter_bytes = self.flops = 0

    def tensor(self, name):
        return self.graph.tensors[name]

    def elements(self, name):
        return math.prod(self.tensor(name).dims)

    def bytes(self, name):
        return self.elements(name) * self.tensor(name).size

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
        learned = node.op in GEMMS | CONVOLUTIONS and len(weights) > 0 and len(self.tensor(weights[0]).dims) > 1
        result = bool(parts)
        if self.ways == 1:
            result = False
        elif learned and parts:
            work.behind.append(("all_reduce", sum(map(self.bytes, made))))
            result = False
        elif learned and self.divides(node, weights[0]):
            if data and not self.gathered.get(data[0]):
                self.gathered[data[0]] = True
                work.backward_behind.append(("all_reduce", self.bytes(data[0])))
            result = True
        elif parts and (node.op in OVER_FEATURES or self.mixed(node, data, parts)):
            for name in parts:
                work.before.append(("all_gather", self.bytes(name) // self.ways))
                work.backward_behind.append(("reduce_scatter", self.bytes(name)))
                self.split[name] = False
            result = False
        self.cut = ("rows" if parts else "columns" if result else "") if learned and self.ways > 1 else \
            "heads" if result else ""
        for name in made:
            self.split[name] = result

    def divides(self, node, weight):
        """Whether a weight's columns, or a convolution's kernels, can be divided among the ranks."""
        dims = self.tensor(weight).dims
        if node.op == "Conv" or node.attributes.get("transB"):
            columns = dims[0]
        else:
            columns = dims[1] if node.op == "ConvTranspose" else dims[-1]
        groups = node.attributes.get("group", 1)
        return columns % self.ways == 0 and (groups == 1 or groups % self.ways == 0)

    def mixed(self, node, data, parts):
        """A sum of a split and a whole tensor, such as a residual connection."""
        return node.op in TOGETHER and any(name not in parts and self.elements(name) > 1 and
                                           len(self.tensor(name).dims) > 1
                                           and self.tensor(name).kind in FLOATING for name in data)

    def cost(self, node, work, weights, data, made):
        ways = self.ways if self.cut else 1
        moved = sum(map(self.bytes, made)) + sum(map(self.bytes, data)) + sum(map(self.bytes, weights))
        if node.op in ("Gather", "GatherElements", "Slice", "Split"):
            moved = 2 * sum(map(self.bytes, made))
        gemm = self.gemm(node, made)
        if gemm:
            m, n, k, count = gemm
            precision = self.precision or precision_of(self.tensor(made[0]).dtype)
            work.flops = 2 * m * n * k * count // ways
            self.flops += 2 * m * n * k * count
            n = max(1, n // ways) if self.cut == "columns" else n
            k = max(1, k // ways) if self.cut == "rows" else k
            count = max(1, count // ways) if self.cut == "heads" else count
            work.forward = self.device.gemm(m, n, k, count, moved // ways, precision)
            # GEMMs for the gradients of the input and of the weight, or of both inputs
            work.backward = 2 * work.forward
        else:
            work.forward = self.device.other(moved // ways)
            work.backward = work.forward
        for name in weights:
            if name in self.counted or self.tensor(name).kind not in FLOATING:
                continue
            self.counted.add(name)
            self.parameters += self.elements(name)
            self.parameter_bytes += self.bytes(name)
            part = ways if self.cut != "rows" or len(self.tensor(name).dims) > 1 else 1
            work.parameters += -(-self.elements(name) // part)
            work.parameter_bytes += -(-self.bytes(name) // part)

    def gemm(self, node, made):
        """(m, n, k, count), whole."""
        out = self.tensor(made[0]).dims
        if node.op in GEMMS:
            a = self.tensor(node.inputs[0]).dims
            k = a[0] if node.op == "Gemm" and node.attributes.get("transA") else a[-1]
            if self.tensor(node.inputs[1]).weight:
                return math.prod(out[:-1]), out[-1], k, 1
            return out[-2], out[-1], k, math.prod(out[:-2])
        if node.op in CONVOLUTIONS:
            weight = self.tensor(node.inputs[1]).dims
            covered = math.prod(weight[1:])
            if node.op == "ConvTranspose":  # each input element meets a whole kernel
                into = self.tensor(node.inputs[0]).dims
                return into[0] * math.prod(into[2:]), covered, weight[0] // node.attributes.get("group", 1), 1
            groups = node.attributes.get("group", 1)
            return out[0] * math.prod(out[2:]), out[1] // groups, covered, groups
        return None


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
                         if planner.tensor(name).values is None and planner.tensor(name).kind in FLOATING))
    return found
