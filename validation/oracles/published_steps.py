# SPDX-License-Identifier: GPL-2.0-only
"""Published step times of GPT models on A100s, and experiments that predict them. Nothing is fitted to them."""

import dataclasses
import itertools
import json
import pathlib

import yaml

from oracles.gpu_spread import Waiting, slower_device, stages_of

SETS = pathlib.Path(__file__).resolve().parents[1] / "published" / "training"
# GPUs of a DGX A100.
SERVER = 8

# Rates of NCCL 2.27 on A100 SXM4 80 GB, by the number of GPUs: GB/s that a GPU sends, and us of a call before its first
# byte, fitted to all-reduce, all-gather and reduce-scatter of 32 to 512 MiB (ai-dynamo/aiconfigurator, commit 095f58a5,
# Apache-2.0, systems/data/a100_sxm/comm/nccl); mean errors 7.9, 3.6 and 2.9 %.
NCCL = {1: (240, 0), 2: (178, 50), 4: (206, 53), 8: (218, 80)}
# With equal traffic in both directions 8 of 10 flits on the wires are data (topologies/servers/dgx_a100.yaml).
FRAMING = 0.8


@dataclasses.dataclass(frozen=True)
class Published:
    """s = 2048, fp16. `method`: "full" recomputation, or "selective" with sequence parallelism."""

    name: str
    hidden: int
    layers: int
    heads: int
    tensor: int
    pipeline: int
    data: int
    virtual_stages: int
    micro_batch: int
    batch: int
    method: str
    seconds: float
    scatter_gather: bool = False
    overlap_tensor: bool = True
    framework: str = "megatron_2022"
    peer: float = 0  # the peer's error in percent, if it is known for the row
    vocabulary: int = 51200
    gradient_precision: str = "fp16"
    deepspeed: bool = False  # DeepSpeed's pipeline with the framework's kernels
    rounding: float = 0  # the time may be so many seconds more or less, because its source rounds

    @property
    def micro_batches(self):
        return self.batch // (self.data * self.micro_batch)

    @property
    def gpus(self):
        return self.tensor * self.pipeline * self.data


def sc21(name, hidden, layers, heads, tensor, pipeline, data, virtual_stages, micro_batch, batch, teraflops, peer):
    """D. Narayanan et al., SC'21, arXiv:2104.04473, table 1, gives FLOP/s per GPU; the time follows from its formula
    (3): F = 96 B s L h^2 (1 + s/(6h) + V/(16 L h))."""
    s, V = 2048, 51200  # noqa: N806
    flops = 96 * batch * s * layers * hidden**2 * (1 + s / (6 * hidden) + V / (16 * layers * hidden))
    seconds = flops / (tensor * pipeline * data * teraflops * 1e12)
    shape = (hidden, layers, heads, tensor, pipeline, data, virtual_stages, micro_batch, batch)
    # The table has whole TFLOP/s.
    return Published(name, *shape, "full", seconds, scatter_gather=tensor > 1, overlap_tensor=False,
                     framework="megatron_2021", peer=peer, rounding=seconds * 0.5 / teraflops)  # fmt: skip


def korthikanti(name, hidden, layers, heads, pipeline, virtual_stages, micro_batch, batch, full, selective):
    """V. Korthikanti et al., arXiv:2205.05198, tables 3 and 5."""
    shape = (hidden, layers, heads, SERVER, pipeline, 1, virtual_stages, micro_batch, batch)
    # Megatron-LM scatters and gathers unless --no-scatter-gather-tensors-in-pipeline says otherwise; tensors that are
    # split along the sequence are scattered as they are.
    return [Published(name, *shape, "full", full, scatter_gather=True),
            Published(name, *shape, "selective", selective)]  # fmt: skip


def jiang(name, gpus, batch, seconds):
    """Z. Jiang et al., NSDI'24, arXiv:2402.15627, tables 1 and 2. The vocabulary is padded to a multiple of 128 for each
    tensor rank (megatron/tokenizer/tokenizer.py): 64,512."""
    return Published(name, 12288, 96, 128, SERVER, 8, gpus // 64, 6, 1, batch, "selective", seconds, vocabulary=64512)


def smith(name, gpus, seconds):
    """S. Smith et al., arXiv:2201.11990, 2.4. The time has one digit behind the point."""
    return Published(name, 20480, 105, 128, SERVER, 35, gpus // 280, 1, 1, 1920, "full", seconds, scatter_gather=True,
                     overlap_tensor=False, framework="megatron_2021", rounding=0.05, gradient_precision="fp32",
                     deepspeed=True)  # fmt: skip


def rows_of(name):
    """The rows of a set's file."""
    rows = yaml.safe_load((SETS / f"{name}.yaml").read_text())["rows"]
    if name == "jiang_2024":
        return [jiang(model, *row) for model, row in rows.items()]
    if name == "smith_2022":
        return [smith(model, *row) for model, row in rows.items()]
    if name == "narayanan_2021":
        return [sc21(model, *row) for model, row in rows.items()]
    return [one for model, row in rows.items() for one in korthikanti(model, *row)]


NARAYANAN, KORTHIKANTI = rows_of("narayanan_2021"), rows_of("korthikanti_2022")

RINGS = {"algorithm": "ring", "channels": 1, "chunk_size": "64 GiB", "slices_per_chunk": 1}


def with_deepspeed(case, framework):
    """The path of a catalogue with the messages between stages that megatron_deepspeed has."""
    ours, other = (yaml.safe_load((case.root / f"workloads/frameworks/{name}.yaml").read_text()) for name in (framework, "megatron_deepspeed"))
    ours.pop("blocking_messages")
    ours |= {key: other[key] for key in ("messages_in_turn", "gathers_sent")}
    ours["kernels"]["message_gathered"] = other["kernels"]["message_gathered"]
    path = case.scratch / "deepspeed.yaml"
    path.write_text(json.dumps(ours))
    return str(path)


def settings(case, one, micro_batches, copies):
    """Changes of the experiment for a row with the given micro-batches and data-parallel copies."""
    rate, launch = NCCL[one.tensor]
    model = case.scratch / "model.json"
    model.write_text(json.dumps({
        "model_type": "gpt2", "vocab_size": one.vocabulary, "n_positions": 2048,
        "n_embd": one.hidden, "n_layer": one.layers, "n_head": one.heads}))  # fmt: skip
    parallelism = {
        "tensor": one.tensor, "pipeline": one.pipeline, "data": one.data, "virtual_stages": one.virtual_stages,
        "sequence": one.method == "selective", "scatter_gather": one.scatter_gather,
    }  # fmt: skip
    changes = {
        "topology.hosts_per_leaf": -(-one.tensor * one.pipeline * copies // SERVER),
        "workload.model": str(model), "workload.device": str(case.root / "workloads/devices/a100-sxm.yaml"),
        "workload.parallelism": parallelism, "workload.recompute": one.method,
        "workload.overlap_tensor": one.overlap_tensor,
        "workload.framework": str(case.root / "workloads/frameworks" / f"{one.framework}.yaml"),
        "topology.server.nvlink_rate": f"{rate / FRAMING:.1f} GB/s",
        "workload.collectives.tensor": RINGS | {"launch_latency": f"{launch} us"},
        "workload.micro_batch": one.micro_batch, "workload.micro_batches": micro_batches,
    }  # fmt: skip
    if one.deepspeed:
        changes["workload.framework"] = with_deepspeed(case, one.framework)
    if one.gradient_precision != "fp16":
        changes["workload.gradient_precision"] = one.gradient_precision
    if one.pipeline == 1 and one.data > 1:
        # --DDP-impl torch (examples/sc21/run_table_1.sh of release v2.5): buckets beside the backward pass.
        changes["workload.overlap_gradients"] = True
        changes["workload.bucket_size"] = "25 MiB"
    if copies < one.data:
        changes["workload.symmetry"] = {"data": copies}
    elif one.data > 1 and one.tensor < SERVER:
        # Rings through all NICs of a server, as NCCL makes them.
        changes["workload.collectives.data"] = {
            **RINGS,
            "algorithm": "hierarchical", "ranks_per_server": SERVER // one.tensor}  # fmt: skip
    return changes


# For a longer pipeline this number of stages and half of it are simulated.
MAX_STAGES = 8


def of_stages(one, stages, groups):
    """The row with `stages` stages, each with as many blocks as in the row, and `groups` times as many
    micro-batches."""
    return dataclasses.replace(one, pipeline=stages, layers=one.layers // one.pipeline * stages,
                               batch=groups * stages * one.micro_batch * one.data)  # fmt: skip


def with_slower(case, changes, factor):
    """The changes of a row's experiment, with arithmetic that takes `factor` times as long."""
    return changes | {"workload.device": slower_device(changes["workload.device"], factor, case.scratch)}


def copies_of(one):
    """Data-parallel copies of a row that are simulated."""
    return min(one.data, 2) if one.tensor == SERVER else one.data


def waiting_of(case, one):
    def compute(factor):
        return case.compute_of_kinds(with_slower(case, settings(case, one, one.micro_batches, copies_of(one)), factor))

    stages = stages_of(compute) if one.pipeline > 1 else ()
    return Waiting(one.gpus, one.tensor, one.micro_batches * one.virtual_stages, stages)


def line(few, more, steps):
    """The value `steps` steps beyond the second of two."""
    return more + (more - few) * steps


def predict(case, one, most=0, changes=None, **network):
    """Seconds of a step. If the row has `most` micro-batches or more, p and 2p are simulated, and the time is extrapolated
    linearly (in 1F1B, and interleaved in groups of p, each further one adds the same time). With interleaved stages 2p and
    3p are simulated, because messages of forward and backward passes are joined only with more than p. Except for the ends,
    the stages of a pipeline do the same work, so that a step with g groups of micro-batches and p stages takes a + b p + c
    g + d g p: of more than MAX_STAGES stages, this number and half of it are simulated."""
    factor = waiting_of(case, one).factor()

    def seconds(row):
        run, _ = case.run(with_slower(case, settings(case, row, row.micro_batches, copies_of(one)) | (changes or {}) | network, factor))
        return run.time * 1e-12

    def of_groups(stages):
        groups = one.micro_batches / one.pipeline
        few = 1 if one.virtual_stages == 1 else 2
        if not most or (stages == one.pipeline and one.micro_batches <= max(most, (few + 1) * stages)):
            return seconds(one)
        short, long = (seconds(of_stages(one, stages, number)) for number in (few, few + 1))
        return line(short, long, groups - few - 1)

    if not most or one.pipeline <= MAX_STAGES:
        return of_groups(one.pipeline)
    half = MAX_STAGES // 2
    return line(of_groups(half), of_groups(MAX_STAGES), (one.pipeline - MAX_STAGES) / half)


def without(case, part, framework):
    """Changes of a row's experiment that remove one part of the model, or nothing for "all of it"."""
    kernels = yaml.safe_load((case.root / f"workloads/frameworks/{framework}.yaml").read_text())
    device = yaml.safe_load((case.root / "workloads/devices/a100-sxm.yaml").read_text())
    changes = {}
    places = kernels["kernels"]
    if part == "kernels between attention's GEMMs":
        places.pop("attention_core")
    elif part == "kernels of norms, residuals, biases, copies, GELU":
        for place in set(places) - {"attention_core", "embedding", "final_norm", "loss"}:
            places.pop(place)
    elif part == "embedding and loss":
        for place in ("embedding", "final_norm", "loss"):
            places.pop(place)
    elif part == "gradients added up, optimizer of 66 to 72 B per parameter (30 B instead)":
        kernels["step"] = {"optimizer": [{"kernel": "Adam", "per": "parameters", "reads": 16, "writes": 14}]}
    elif part == "messages that block":
        kernels.pop("blocking_messages")
    elif part == "GEMMs by shape (one tile, 0.925 of the peak instead)":
        one = device["gemms"]
        device["sustained"]["gemms"] = {
            "units": one["units"], "bandwidth_fraction": one["bandwidth_fraction"],
            "tiles": [[*one["tile"], one["peak_fraction"]]]}  # fmt: skip
    elif part == "curves of bandwidth (0.66 instead)":
        device["sustained"].pop("memory_kernels")
    elif part == "the clock that lasts (that of single kernels instead)":
        device["sustained"].pop("clock")
    elif part == "what collectives take of the device":
        device["sustained"].pop("collective_units")
        device["sustained"].pop("collective_bandwidth")
    elif part == "the host":
        kernels.pop("host")
    elif part == "launches":
        device["sustained"].pop("launch")
    elif part == "NCCL's rates over NVLink (its wires' instead)":
        changes = {"topology.server.nvlink_rate": "300 GB/s", "workload.collectives.tensor": RINGS}
    for name, content, key in (("kernels", kernels, "framework"), ("device", device, "device")):
        path = case.scratch / f"{name}.yaml"
        path.write_text(json.dumps(content))  # JSON is YAML
        changes[f"workload.{key}"] = str(path)
    return changes


PARTS = [
    "kernels between attention's GEMMs",
    "kernels of norms, residuals, biases, copies, GELU",
    "embedding and loss",
    "gradients added up, optimizer of 66 to 72 B per parameter (30 B instead)",
    "messages that block",
    "GEMMs by shape (one tile, 0.925 of the peak instead)",
    "curves of bandwidth (0.66 instead)",
    "the clock that lasts (that of single kernels instead)",
    "what collectives take of the device",
    "the host",
    "launches",
    "NCCL's rates over NVLink (its wires' instead)",
]


def mean_error(points):
    """Mean of |error| in percent of (published, predicted) pairs."""
    return sum(abs(100 * (predicted / published - 1)) for published, predicted in points) / len(points)


def ordered_pairs(points, roundings=None):
    """Pairs of points (published, predicted) whose order the source shows: their times differ by more than their rounding."""
    rounded = zip(points, roundings or [0] * len(points), strict=True)
    return [(a, b) for (a, da), (b, db) in itertools.combinations(rounded, 2) if abs(a[0] - b[0]) > da + db]


def right_order(points, roundings=None):
    """Percent of ordered_pairs() in which the slower point is predicted to be slower."""
    pairs = ordered_pairs(points, roundings)
    return 100 * sum((a[0] < b[0]) == (a[1] < b[1]) for a, b in pairs) / len(pairs) if pairs else 100.0
