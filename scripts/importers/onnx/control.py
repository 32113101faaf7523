# SPDX-License-Identifier: GPL-2.0-only
"""Control flow of ONNX, expanded: the branch of an If whose condition is known, and a Loop with a known number of
iterations (docs/Operators.md of github.com/onnx/onnx)."""

import copy

from .model import Node, Tensor

CONTROL = {"If", "Loop"}
MAX_NODES = 10**5  # of a model, with expanded loops


class Unknown(Exception):
    """A value that is not known before the model runs."""


def written_out(node, tensors, count):
    """The nodes of an expanded node of CONTROL, produced on demand: the caller processes each before the next one.
    `tensors` takes weights of the inner graphs. `count`: number of nodes expanded so far."""
    yield from (of_if if node.op == "If" else of_loop)(node, tensors, count)


def number_of(node, tensors, at, what):
    name = node.inputs[at] if at < len(node.inputs) else ""
    values = tensors[name].values if name in tensors else None
    if not values:
        raise Unknown(f"{what} depends on data: '{name}' is not known before it runs; export with a constant there")
    return values[0]


def graph_of(node, key):
    graph = node.attributes.get(key)
    if graph is None or not hasattr(graph, "nodes"):
        raise Unknown(f"it has no graph '{key}'")
    return graph


def placed(graph, label, prefix, names, tensors):
    """The nodes of a graph with unique names, processed one after another. `names`: the outer names of its values; a
    value that it does not define belongs to the outer graph. Its weights are the same each time."""
    for name, tensor in graph.tensors.items():
        if name not in names and tensor.weight:
            names[name] = f"{label}/{name}"
            tensors.setdefault(names[name], tensor)
    for inner in graph.nodes:
        one = Node(inner.op, prefix + inner.label, [names.get(name, name) for name in inner.inputs], [],
                   inner.attributes, inner.number, inner.domain)
        for name in inner.outputs:
            names[name] = prefix + name if name else ""
        one.outputs = [names[name] for name in inner.outputs]
        yield one


def renamed(source, target, number):
    return Node("Identity", f"{target}_is", [source], [target], {}, number)


def of_if(node, tensors, count):
    branch = "then_branch" if number_of(node, tensors, 0, "which branch it takes") else "else_branch"
    graph, names = graph_of(node, branch), {}
    yield from placed(graph, node.label, f"{node.label}/", names, tensors)
    for inner, outer in zip(graph.outputs, node.outputs):
        if outer:
            yield renamed(names.get(inner, inner), outer, node.number)


def of_loop(node, tensors, count):
    graph = graph_of(node, "body")
    trips = number_of(node, tensors, 0, "how often it runs")
    if len(node.inputs) > 1 and node.inputs[1] and not number_of(node, tensors, 1, "whether it runs"):
        trips = 0
    if trips * max(1, len(graph.nodes)) + count > MAX_NODES:
        raise Unknown(f"it runs {trips} times and comes to more than {MAX_NODES} nodes")
    carried = list(node.inputs[2:])
    if len(graph.inputs) != 2 + len(carried) or len(graph.outputs) < 1 + len(carried):
        raise Unknown(f"its body has {len(graph.inputs)} inputs and {len(graph.outputs)} outputs; expected "
                      f"{2 + len(carried)} and {1 + len(carried)} or more")
    scans = [[] for _ in graph.outputs[1 + len(carried):]]
    for trip in range(max(0, trips)):
        prefix, names = f"{node.label}/{trip}/", {}
        for name, value in ((graph.inputs[0], trip), (graph.inputs[1], 1)):
            names[name] = f"{prefix}{name}"
            tensors[names[name]] = Tensor(7 if name == graph.inputs[0] else 9, (), [value])
        names.update(zip(graph.inputs[2:], carried))
        yield from placed(graph, node.label, prefix, names, tensors)
        results = [names.get(name, name) for name in graph.outputs]
        goes_on = tensors[results[0]].values if results[0] in tensors else None
        if not goes_on:
            raise Unknown(f"how often it runs depends on data: '{graph.outputs[0]}' of its body is not known before it "
                          "runs")
        carried = results[1:1 + len(carried)]
        for scan, name in zip(scans, results[1 + len(carried):]):
            scan.append(name)
        if not goes_on[0]:
            break
    for name, outer in zip(carried, node.outputs):
        if outer:
            yield renamed(name, outer, node.number)
    for scan, outer in zip(scans, node.outputs[len(carried):]):
        if outer:
            yield stacked(scan, outer, tensors, node.number)


def stacked(names, outer, tensors, number):
    """A scanned output: the results of all iterations, side by side."""
    if not names:
        raise Unknown("it runs 0 times, and its scanned outputs have no shape")
    first = tensors[names[0]]
    found = copy.copy(first)
    found.dims, found.values = (len(names), *first.dims), None
    tensors[outer] = found
    return Node("Scanned", f"{outer}_is", list(names), [outer], {}, number)
