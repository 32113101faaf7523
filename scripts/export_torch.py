#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Writes a model of PyTorch as a program of weft (docs/reference/program_format.md). It runs where PyTorch is: copy this one file
there.

    import export_torch
    exported = torch.export.export(module, (example_input,))
    export_torch.write_program(exported, "step.yaml", ranks=8, device="h100-sxm")

or, on the command line, with a function that gives (module, inputs):

    python export_torch.py my_model:make -o step.yaml --ranks 8 --device h100-sxm

Input: what torch.export.export gives, or a torch.fx.GraphModule whose nodes have shapes
(torch.fx.passes.shape_prop.ShapeProp): of torch.fx.experimental.proxy_tensor.make_fx, or of torch.fx.symbolic_trace, which keeps
modules of torch.nn as one operation; linear layers and convolutions are known, a transformer layer is an error. Each
operator of the graph becomes a kernel of each rank, after those whose results it takes: GEMMs with m, n, k and their bytes,
everything else with its bytes. Views take no time. Functional collectives (torch.ops._c10d_functional) become collectives of
all ranks. With train=True a backward pass of twice the forward pass's work follows, gradients of all parameters are reduced
among the ranks in buckets of 25 MiB, and an optimizer goes over them (Adam, 28 bytes a parameter)."""

import argparse
import importlib
import math
import os
import sys

VIEWS = {"view", "reshape", "transpose", "permute", "t", "expand", "slice", "select", "unsqueeze", "squeeze", "detach",
         "alias", "as_strided", "_unsafe_view", "_to_copy", "clone", "split", "split_with_sizes", "getitem", "flatten",
         "unbind", "chunk", "empty", "contiguous", "lift_fresh_copy", "dropout", "sym_size", "arange", "wait_tensor",
         "unflatten", "scalar_tensor", "_assert_tensor_metadata", "movedim", "narrow", "_reshape_alias", "identity"}
GEMMS = {"mm": 0, "bmm": 0, "matmul": 0, "linear": 0, "addmm": 1, "baddbmm": 1}
CONVOLUTIONS = {"convolution", "conv1d", "conv2d", "conv3d", "_convolution"}
ATTENTION = {"scaled_dot_product_attention", "_scaled_dot_product_flash_attention",
             "_scaled_dot_product_efficient_attention", "_scaled_dot_product_flash_attention_for_cpu",
             "_scaled_dot_product_cudnn_attention"}
LOOKUPS = {"embedding", "embeddingbag"}  # modules that read a row of their table for each row of the result
COLLECTIVES = {"all_reduce": "all_reduce", "all_gather_into_tensor": "all_gather",
               "reduce_scatter_tensor": "reduce_scatter", "all_to_all_single": "all_to_all", "broadcast": "broadcast"}
PRECISIONS = {"torch.float32": "fp32", "torch.bfloat16": "bf16", "torch.float16": "fp16", "torch.float8_e4m3fn": "fp8"}
BUCKET = 25 << 20
ADAM_BYTES = 28


def operator_name(node):
    """The short name of a node's operator: `mm` for torch.ops.aten.mm.default and torch.mm; also for
    operator.getitem."""
    name = str(node.target) if not callable(node.target) or "." in str(node.target) else ""
    if not name or name.startswith("<"):
        name = getattr(node.target, "__name__", str(node.target))
    parts = [part for part in name.split(".") if part]
    return parts[-2] if len(parts) > 1 and parts[0] in ("aten", "_c10d_functional", "prims",
                                                        "c10d") and len(parts) > 2 else parts[-1]


def value_of(node):
    """The result of a node, with a shape and a dtype. None for numbers and lists of several."""
    meta = getattr(node, "meta", {})
    value = meta.get("val", meta.get("tensor_meta"))
    if isinstance(value, (list, tuple)) and not hasattr(value, "shape"):
        value = next((one for one in value if hasattr(one, "shape")), None)
    return value if hasattr(value, "shape") else None


def shape_of(node):
    value = value_of(node)
    return [int(size) for size in value.shape] if value is not None else None


def element_size(value):
    size = getattr(value, "element_size", None)
    if callable(size):
        return int(size())
    return int(getattr(value.dtype, "itemsize", 4))


def bytes_of(node):
    value = value_of(node)
    return math.prod(int(size) for size in value.shape) * element_size(value) if value is not None else 0


def inputs_of(node):
    """Nodes among the arguments, also in lists."""
    found, open_ones = [], [*node.args, *getattr(node, "kwargs", {}).values()]
    while open_ones:
        one = open_ones.pop(0)
        if isinstance(one, (list, tuple)):
            open_ones = [*one, *open_ones]
        elif hasattr(one, "op") and hasattr(one, "target"):
            found.append(one)
    return found


def gemm_of(name, node, taken):
    """(m, n, k, count), or None."""
    out = shape_of(node)
    if name in GEMMS and len(taken) > GEMMS[name] + 1 and out:
        k = shape_of(taken[GEMMS[name]])[-1]
        if name in ("bmm", "baddbmm") or (name == "matmul" and len(shape_of(taken[1])) > 2):
            return out[-2], out[-1], k, math.prod(out[:-2])
        return math.prod(out[:-1]), out[-1], k, 1
    if name in CONVOLUTIONS and len(taken) > 1 and out:
        weight = shape_of(taken[1])
        return out[0] * math.prod(out[2:]), out[1], math.prod(weight[1:]), 1
    if name in ATTENTION and len(taken) > 1:
        query, key = shape_of(taken[0]), shape_of(taken[1])
        return query[-2], key[-2], query[-1], 2 * math.prod(query[:-2])
    return None


def gemm_of_module(node, kind, taken, weights):
    """(m, n, k, count) of a module that torch.fx keeps as one operation, or None if it has no weights but vectors. `weights` has
    the shapes of its parameters. ValueError if it is not known what the module does with its weights."""
    out, wide = shape_of(node), [shape for shape in weights if len(shape) > 1]
    if not wide or kind in LOOKUPS:
        return None
    first = shape_of(taken[0]) if taken else None
    if len(wide) == 1 and out and first:
        weight = wide[0]
        if kind == "linear":
            return math.prod(out[:-1]), out[-1], weight[1], 1
        if kind in ("conv1d", "conv2d", "conv3d"):
            return math.prod(out) // out[-len(weight) + 1], weight[0], math.prod(weight[1:]), 1
        if kind in ("convtranspose1d", "convtranspose2d", "convtranspose3d"):
            return math.prod(first) // first[-len(weight) + 1], math.prod(weight[1:]), weight[0], 1
    raise ValueError(f"'{node.target}' is a module '{kind}', which torch.fx keeps as one operation, so that its products are not in the "
                     f"graph; expected the graph of torch.export.export or of torch.fx.experimental.proxy_tensor.make_fx")


def text(value):
    """A text in YAML."""
    return '"' + str(value).replace("\\", "\\\\").replace('"', '\\"') + '"'


class Exporter:
    def __init__(self, graph_module, ranks, device, precision):
        self.module, self.graph = graph_module, graph_module.graph
        self.ranks, self.device, self.precision = ranks, device, precision
        self.lines, self.ids, self.works, self.unknown = [], {}, [], []

    def forward(self):
        for node in self.graph.nodes:
            if node.op in ("call_function", "call_method", "call_module"):
                self.operator(node)
            else:
                self.ids[node.name] = []

    def operator(self, node):
        module = self.module.get_submodule(node.target) if node.op == "call_module" else None
        name, taken = type(module).__name__.lower() if module is not None else operator_name(node), inputs_of(node)
        after = sorted({one for source in taken for one in self.ids.get(source.name, [])})
        if name in COLLECTIVES:
            return self.collective(COLLECTIVES[name], node, taken, after)
        if name in VIEWS or value_of(node) is None:
            if value_of(node) is None and name not in VIEWS:
                self.unknown.append(node.name)
            self.ids[node.name] = after
            return None
        size = bytes_of(node) + sum(map(bytes_of, taken))
        if module is not None:
            weights = list(module.parameters())
            gemm = gemm_of_module(node, name, taken, [list(weight.shape) for weight in weights])
            size += bytes_of(node) if name in LOOKUPS else sum(one.numel() * one.element_size() for one in weights)
        else:
            gemm = gemm_of(name, node, taken)
        kernel = f"bytes: {size} B" if gemm is None else self.gemm_text(gemm, value_of(node), size)
        self.works.append((node.name, kernel))
        return self.item(node.name, f"compute: {{{kernel}}}", after)

    def gemm_text(self, gemm, value, size):
        m, n, k, count = gemm
        precision = self.precision or PRECISIONS.get(str(value.dtype), "bf16")
        return f"m: {m}, n: {n}, k: {k}, count: {count}, bytes: {size} B, precision: {precision}"

    def collective(self, kind, node, taken, after):
        size = bytes_of(node) if kind == "all_gather" else bytes_of(taken[0]) if taken else bytes_of(node)
        return self.item(node.name, f"collective: {kind}, size: {size} B", after, of_all=False)

    def item(self, name, what, after, of_all=True):
        number = f"n{len(self.lines)}"
        waits = f", after: [{', '.join(after)}]" if after else ""
        self.lines.append(f"  - {{{'rank: all, ' if of_all else ''}id: {number}, label: {text(name)}, {what}{waits}}}")
        self.ids[name] = [number]
        return number

    def backward(self, parameters):
        """`parameters`: bytes and elements of each, in the order of the forward pass."""
        last, reductions, bucket = None, [], 0
        share = sum(size for size, _ in parameters) / max(1, len(self.works))
        for at, (name, kernel) in enumerate(reversed(self.works), 1):
            for part in range(2 if kernel.startswith("m:") else 1):
                last = self.item(f"gradient {part} of {name}", f"compute: {{{kernel}}}",
                                 [last] if last else self.last_ids())
            bucket += share
            if self.ranks > 1 and (bucket >= BUCKET or at == len(self.works)) and bucket >= 1:
                reductions.append(self.item(f"bucket {len(reductions)}", f"collective: all_reduce, size: {int(bucket)} "
                                            f"B", [last], of_all=False))
                bucket = 0
        elements = sum(count for _, count in parameters)
        if elements:
            self.item("optimizer", f"compute: {{bytes: {ADAM_BYTES * elements} B}}",
                      [*reductions, *([last] if last else [])])

    def last_ids(self):
        return [f"n{len(self.lines) - 1}"] if self.lines else []

    def program(self):
        return "\n".join([f"ranks: {self.ranks}", f"device: {self.device}", "operations:", *self.lines]) + "\n"


def parameters_of(exported):
    """(bytes, elements) of each parameter."""
    named = getattr(exported, "state_dict", {})
    values = (named() if callable(named) else named).values()
    return [(value.numel() * value.element_size(), value.numel()) for value in values]


def write_program(exported, path, ranks=1, device="h100-sxm", train=True, precision=None):
    """Writes the program to `path`, and prints its content in one line. Returns the number of operations."""
    exporter = Exporter(getattr(exported, "graph_module", exported), ranks, device, precision)
    exporter.forward()
    if train:
        exporter.backward(parameters_of(exported))
    if not exporter.lines:
        raise ValueError("the graph has no operators with shapes; a torch.fx.GraphModule needs ShapeProp first")
    with open(path, "w", encoding="utf-8") as file:
        file.write("# A program of weft: workload: {kind: program, file: THIS_FILE}. Written by export_torch.py.\n")
        file.write(exporter.program())
    lost = f"; without shapes and left out: {', '.join(exporter.unknown[:5])}" if exporter.unknown else ""
    print(f"{path}: {len(exporter.lines)} operations of each of {ranks} ranks{lost}")
    return len(exporter.lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("function", metavar="MODULE:FUNCTION", help="gives (torch.nn.Module, tuple of inputs)")
    parser.add_argument("-o", "--output", metavar="FILE.yaml", required=True)
    parser.add_argument("--ranks", metavar="N", type=int, default=1)
    parser.add_argument("--device", metavar="NAME", default="h100-sxm")
    parser.add_argument("--precision", metavar="NAME")
    parser.add_argument("--inference", action="store_true", help="the forward pass alone")
    options = parser.parse_args()
    sys.path.insert(0, os.getcwd())
    import torch  # noqa: PLC0415  (only here: write_program needs the graph alone)
    module_name, _, function = options.function.partition(":")
    module, inputs = getattr(importlib.import_module(module_name), function or "make")()
    exported = torch.export.export(module, tuple(inputs))
    write_program(exported, options.output, options.ranks, options.device, not options.inference, options.precision)


if __name__ == "__main__":
    main()
