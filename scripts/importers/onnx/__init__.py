# SPDX-License-Identifier: GPL-2.0-only
"""ONNX models: a training step or one inference, with degrees of parallelism given beside them. For other files that
users may have instead, a message says what to do."""

import argparse
import zipfile

from frameworks.devices import Device
from frameworks.rank_files import GroupNames, chakra_workload
from frameworks.wire import Part, WireError
from importing.errors import InputError, StudyError, did_you_mean, read_bytes
from importing.imported import Imported
from support.console import natural

from .model import looks_like, read_model
from .plan import Planner, crossing, stages_of
from .shapes import Inference
from .step import Layout, StepWriter

SUMMARY = "an ONNX model: a step with --data, --tensor and --pipeline ways of parallelism"
TORCHSCRIPT = ("it is a TorchScript archive, whose program is Python and has no shapes; export the module in PyTorch: "
               "torch.onnx.export(module, inputs, 'model.onnx') and `weft import onnx`, or "
               "scripts/export_torch.py beside torch.export")
CHECKPOINT = ("it is a checkpoint of PyTorch: weights without the program; export the module: "
              "torch.onnx.export(module, inputs, 'model.onnx')")
SAVED = ("it is a GraphDef or SavedModel of TensorFlow; `python -m tf2onnx.convert --graphdef FILE --output "
         "model.onnx` (or --saved-model) makes an ONNX model of it")


def dimension(text):
    name, _, size = text.partition("=")
    if not name or not size.isdecimal() or int(size) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is no NAME=SIZE")
    return name, int(size)


def add_arguments(parser):
    parser.add_argument("input", metavar="MODEL.onnx")
    for name, text in (("data", "replicas, each with a batch of its own"), ("tensor", "ranks that share each GEMM"),
                       ("pipeline", "stages, one after the other")):
        parser.add_argument(f"--{name}", metavar="N", type=natural, default=1, help=f"{text} (1)")
    parser.add_argument("--batch", metavar="N", type=natural, help="samples of a replica in a step, if the model's "
                        "inputs leave it open (1 for each micro-batch)")
    parser.add_argument("--micro-batches", metavar="N", type=natural, help="of a replica in a step (as many as stages)")
    parser.add_argument("--dim", metavar="NAME=SIZE", type=dimension, action="append", default=[],
                        help="of another open dimension")
    parser.add_argument("--inference", action="store_true", help="the forward pass alone")
    parser.add_argument("--device", metavar="NAME", default="h100", help="whose times operators take (h100; "
                        "workloads/devices)")
    parser.add_argument("--precision", metavar="NAME", help="of all GEMMs (that of their tensors)")


def other_kind(path):
    """Advice for a file of another kind; empty if it may be ONNX."""
    start = read_bytes(path, 16)
    if start[:4] == b"PK\x03\x04":
        try:
            with zipfile.ZipFile(path) as archive:
                names = archive.namelist()
        except (zipfile.BadZipFile, OSError):
            return "it is a damaged archive; expected an ONNX model"
        if any("/code/" in name or name.endswith("constants.pkl") for name in names):
            return TORCHSCRIPT
        return CHECKPOINT if any(name.endswith("data.pkl")
                                 for name in names) else "it is an archive; expected an ONNX model"
    return SAVED if looks_like_graph_def(path) else ""


def looks_like_graph_def(path):
    """GraphDef: nodes as field 1, each with a name and an operator (tensorflow/core/framework/graph.proto). SavedModel:
    a schema's version and meta graphs (saved_model.proto)."""
    try:
        with open(path, "rb") as file:
            size, kinds, first = file.seek(0, 2), set(), None
            for number, value in Part(file, 0, size).fields():
                kinds.add(number)
                first = value if first is None and number == 1 else first
            if isinstance(first, Part):
                named = {number for number, value in first.fields() if isinstance(value, Part)}
                return kinds <= {1, 2, 3, 4, 5} and {1, 2} <= named
            return kinds == {1, 2} and first is not None
    except (OSError, WireError):
        return False


def matches(path):
    try:
        return looks_like(path) or other_kind(path) in (TORCHSCRIPT, CHECKPOINT, SAVED)
    except InputError:
        return False


def names_of(graph, values):
    """The names of dimensions that are open."""
    return {one for name in values for one in graph.tensors[name].dims or () if isinstance(one, str)}


def check_dimensions(graph, options, each):
    """Refuses options that the model's inputs do not leave open. `each`: samples of a micro-batch."""
    named = names_of(graph, graph.inputs)
    for name, _ in options.dim:
        if name not in names_of(graph, graph.tensors):
            raise InputError(options.input, None, f"--dim {name}: no dimension has this name"
                             f"{did_you_mean(name, named)}; expected "
                             f"{' or '.join(sorted(named)) or 'no --dim: its inputs have fixed dimensions'}")
    given = dict(options.dim)
    first = {name: given.get(dims[0], dims[0]) for name in graph.inputs if (dims := graph.tensors[name].dims)}
    if options.batch and not any(isinstance(one, str) or one == each for one in first.values()):
        found = ", ".join(f"{one} of '{name}'" for name, one in first.items()) or "no inputs"
        name = next(iter(first), "x")
        raise InputError(options.input, None, f"--batch {options.batch}: the first dimensions of its inputs are fixed "
                         f"({found}); expected one that is open: torch.onnx.export(..., dynamic_axes={{'{name}': "
                         "{0: 'batch'}})")


def report_whole(imported, planner, path):
    """Says which matrix products --tensor does not divide; refuses it if it divides none."""
    ways, whole = planner.ways, planner.whole
    if ways == 1 or planner.multiplying > len(whole):
        for reason in dict.fromkeys(whole.values()):
            labels = [f"'{label}'" for label, why in whole.items() if why == reason]
            more = f" and {len(labels) - 3} others" if len(labels) > 3 else ""
            imported.refuse(path, f"--tensor {ways} does not divide {', '.join(labels[:3])}{more} ({reason}): each of "
                                  "the ranks computes the whole")
        return
    found = "; ".join(f"'{label}': {why}" for label, why in list(whole.items())[:3])
    raise InputError(path, None, f"--tensor {ways}: none of its {planner.multiplying} matrix products can be divided "
                     f"among {ways} ranks{f' ({found})' if found else ''}; expected weights whose columns divide")


def read(options):
    told = other_kind(options.input)
    if told:
        raise InputError(options.input, None, told)
    layout = Layout(options.data, options.tensor, options.pipeline)
    count = options.micro_batches or layout.pipeline
    batch = options.batch or count
    if batch % count:
        raise StudyError(f"--batch {batch} in {count} micro-batches; expected a multiple (--micro-batches)")
    graph = read_model(options.input)
    check_dimensions(graph, options, batch // count)
    inference = Inference(graph, options.input, batch // count, options.dim)
    inference.run()
    device = Device(options.device)
    planner = Planner(graph, options.input, device, layout.tensor, options.precision)
    works = planner.plan()
    stages = stages_of(works, layout.pipeline, options.input)
    cuts = crossing(planner, works, [begin for begin, _ in stages[1:]])
    samples = f"{batch // count} sample(s)" if inference.batch_names or options.batch else "inputs of fixed sizes"
    imported = Imported([options.input], layout.ranks, [
        f"{options.input}: {planner.parameters:,} parameters, {planner.flops / 1e9:.6g} GFLOP in a forward pass of "
        f"{samples}; {layout.data} x {layout.tensor} x {layout.pipeline} ranks (data, tensor, "
        f"pipeline), {count} micro-batches, on {device.name}."])
    report_whole(imported, planner, options.input)
    names = GroupNames(layout.ranks)
    for rank in range(layout.ranks):
        for name, ranks in layout.groups(rank).items():
            names.of(name, ranks)

    def write(rank, file):
        own = [work for _, work in works[slice(*stages[layout.place(rank)[0]])]]
        StepWriter(file, rank, layout, names, own, cuts, count, device, not options.inference).write()

    chakra_workload(imported, layout.ranks, names, write)
    imported.counts = {"parameters": planner.parameters, "parameter_bytes": planner.parameter_bytes,
                       "forward_flops": planner.flops}
    return imported
