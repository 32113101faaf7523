# SPDX-License-Identifier: GPL-2.0-only
"""Published training steps, a file for each set under validation/published/training, and experiments that predict them.
Nothing is fitted to them."""

import collections
import copy
import dataclasses
import json
import math
import pathlib

import yaml

from oracles import published_steps
from oracles.gpu_spread import Waiting, slow_down, stages_of
from oracles.published_steps import FRAMING, RINGS, SERVER, mean_error, predict, right_order, rows_of

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "published" / "training"
# Simulated ranks of those that share out parameters, as a multiple of servers: all ranks send and receive the same.
MAX_SHARDS = 16
# Sets of GPT models on A100s whose rows published_steps.py has.
OF_A100S = ("narayanan_2021", "korthikanti_2022", "smith_2022", "jiang_2024")
# Channels of NCCL on servers of eight devices and eight NICs: eight rings, each twice (src/graph/connect.cc).
CHANNELS_ACROSS = 16
MAX_MICRO_BATCHES = 3  # without a pipeline each further micro-batch adds the same time


@dataclasses.dataclass
class Row:
    """A row of a set, its time as published and as predicted."""

    name: str
    published: float
    run: object  # (case) -> seconds
    short: bool
    gpus: int
    waiting: object  # (case) -> Waiting
    peer: str = ""
    rounding: float = 0  # seconds
    # (case) -> seconds with the collectives of an experiment that says nothing about them; None if that takes minutes
    run_by_default: object = None


def sets():
    return sorted(path.stem for path in FOLDER.glob("*.yaml") if "rows" in yaml.safe_load(path.read_text()))


def read(name):
    return yaml.safe_load((FOLDER / f"{name}.yaml").read_text())


def table_of(name):
    """(facts, rows)"""
    facts = read(name)
    if name in OF_A100S:
        small = {"1.7B", "3.6B", "7.5B", "18B", "39B", "76B", "22B", "175B", "530B", "1T"}
        return facts, [Row(f"{one.name}, {one.method}", one.seconds, lambda case, one=one: predict(case, one, most=28),
                           one.name in small, one.gpus, lambda case, one=one: published_steps.waiting_of(case, one),
                           f"{one.peer:+.1f} %" if one.peer else "", one.rounding)
                       for one in rows_of(name)]  # fmt: skip
    rows = []
    for row in rows_of_plans(facts):
        by_default = lambda case, row=row: step(case, facts, row, without_collectives(facts))  # noqa: E731
        rows.append(Row(row["name"], seconds_of(row, facts), lambda case, row=row: step(case, facts, row),
                        row.get("short", False), row["gpus"], lambda case, row=row: waiting_of(case, facts, row),
                        run_by_default=by_default if facts.get("by_default", True) else None))
    return facts, rows


def rows_of_plans(facts):
    """The rows of a set as maps with all keys. A row may be a list with a value for each of `columns`, of which `options` names
    further keys; such rows are named by what they have."""
    rows, names = [], collections.Counter()
    for one in facts["rows"]:
        if isinstance(one, list):
            one = dict(zip(facts["columns"], one, strict=True))
            name = (f"{one['shape']} {one['options']}: data {one['data']}, tensor {one['tensor']}, pipeline {one['pipeline']}, "
                    f"{one['batch']} sequences by {one['micro_batch']}")  # fmt: skip
            names[name] += 1
            again = f", again ({names[name]})" if names[name] > 1 else ""
            one = {"name": name + again, **facts["options"][one["options"]], **one}
        row = {**facts["defaults"], **one}
        if "workload" in row:
            row["workload"] = merged(facts["defaults"].get("workload", {}), row["workload"])
        rows.append(row)
    return rows


def waiting_of(case, facts, row):
    """Who waits for whom; a pipeline's stages are those of the largest job that is simulated for the row."""

    def compute(factor):
        counted = copy.copy(case)
        counted.experiment = experiment(case, facts, row, simulated_micro_batches(row), factor)
        return counted.compute_of_kinds()

    together = max(row.get("tensor", 1) * row.get("context", 1), row.get("expert", 1) * row.get("expert_tensor", 1))
    passes = micro_batches_of(row) * row.get("virtual_stages", 1)
    return Waiting(row["gpus"], together, passes, stages_of(compute) if row.get("pipeline", 1) > 1 else ())


def batch_of(row):
    data = row["gpus"] // (row.get("tensor", 1) * row.get("pipeline", 1) * row.get("context", 1))
    return row.get("batch", row["micro_batch"] * row.get("micro_batches", 1) * data)


def seconds_of(row, facts=None):
    """Seconds of a step, as published or from tokens/s per GPU, or from FLOP/s per GPU (`mfu` in percent of `peak`)."""
    if "seconds" in row:
        return row["seconds"]
    tokens = batch_of(row) * row["sequence"] / row["gpus"]
    if "tokens" in row:
        return tokens / row["tokens"]
    rate = row["teraflops"] * 1e12 if "teraflops" in row else row["mfu"] / 100 * float(facts["peak"])
    return tokens * flops_of_token(facts["configurations"][row["model"]], row["sequence"], row["tensor"]) / rate


def flops_of_token(model, sequence, tensor):
    """FLOPs of a token's forward and backward pass as Megatron-LM counted them until 2025 (megatron/training/training.py,
    num_floating_point_operations): 12 L h^2 (1 + k/a + s/h + 3/2 inner/h + V/(2 L h)), with the vocabulary padded to a multiple
    of 128 for each tensor rank, and as `inner` all that a token's experts have."""
    hidden = model["hidden_size"]
    layers = model["num_hidden_layers"]
    inner = model["num_experts_per_tok"] * model.get("moe_intermediate_size", model["intermediate_size"])
    inner += model.get("shared_expert_intermediate_size", 0)
    vocabulary = -(-model["vocab_size"] // (128 * tensor)) * 128 * tensor
    return 12 * layers * hidden**2 * (1 + model["num_key_value_heads"] / model["num_attention_heads"] + sequence / hidden
                                      + 1.5 * inner / hidden + vocabulary / (2 * layers * hidden))  # fmt: skip


def of_gpu(facts, row, key, otherwise=None):
    value = facts.get(key, otherwise)
    return value[row["gpu"]] if isinstance(value, dict) and row.get("gpu") in value else value


def nvlinks_of(facts, row):
    """(of all groups, of tensor ranks): rates over NVLink and the times of calls at no bytes."""
    tensor = row.get("tensor", 1)
    mixture = "nvlink_of_mixtures" if "nvlink_of_mixtures" in facts and row.get("expert", 1) > 1 else "nvlink"
    nvlink = of_gpu(facts, row, mixture)
    by_size = of_gpu(facts, row, "nvlink_of_tensor", {}).get(tensor)
    said = facts.get("tensor_nvlink", {})
    alone = said if "rate" in said else said.get(row.get("gpu"), nvlink)
    return nvlink, row.get("tensor_nvlink", by_size or alone)


def exchange_launch(facts, row, nvlink):
    """us of an all-to-all at no bytes: by the number of expert ranks, or that of the set's calls."""
    return facts.get("exchange_launch", {}).get(row.get("expert", 1), nvlink["launch"])


def ring_latency(facts, ranks):
    """us that a ring among all data-parallel ranks takes beside the bytes: `ring_step` us of a set for each of its steps, also of
    those ranks that are not simulated."""
    return facts.get("ring_step", 0) * (ranks - 1)


def model_of(case, facts, row):
    """The path or name of the row's model."""
    if row.get("model") in facts.get("configurations", {}):
        path = case.scratch / f"{row['model']}.json"
        layers = {"num_hidden_layers": row["layers"]} if "layers" in row else {}
        path.write_text(json.dumps({**facts["configurations"][row["model"]], **layers}))
        return str(path)
    if "shape" not in row:
        return ready_made(case, row)
    layers, hidden, heads = shape_of(facts, row)
    path = case.scratch / f"{row['shape']}.json"
    path.write_text(json.dumps({"model_type": "gpt2", "vocab_size": facts.get("vocabulary", 50368), "n_positions": row["sequence"],
                                "n_embd": hidden, "n_layer": layers, "n_head": heads}))  # fmt: skip
    return str(path)


def shape_of(facts, row):
    """Blocks, hidden size and heads of a GPT model, by name or as 70x14336x112."""
    return facts.get("models", {}).get(row["shape"]) or [int(number) for number in row["shape"].split("x")]


def ready_made(case, row):
    """The ready-made model; with as many blocks and tokens as the row says, and if it has fewer positions than the row has
    tokens, with as many as tokens."""
    model = json.loads((case.root / "workloads/models" / f"{row['model']}.json").read_text())
    positions = "n_positions" if "n_positions" in model else "max_position_embeddings"
    changes = {key: row[ours] for key, ours in (("num_hidden_layers", "layers"), ("vocab_size", "vocabulary")) if ours in row}
    if model[positions] < row["sequence"]:
        changes[positions] = row["sequence"]
    if not changes:
        return row["model"]
    path = case.scratch / f"{row['model']}-changed.json"
    path.write_text(json.dumps({**model, **changes}))
    return str(path)


def layers_of(case, facts, row):
    model = model_of(case, facts, row)
    path = pathlib.Path(model) if "/" in model else case.root / "workloads/models" / f"{model}.json"
    return json.loads(path.read_text())["num_hidden_layers"]


def merged(into, values):
    """The first map with the values of the second one, which may have maps for some keys."""
    return into | {key: merged(into[key], value) if isinstance(value, dict) and key in into else value
                   for key, value in values.items()}  # fmt: skip


def device_of(case, facts, row, factor):
    """A device whose arithmetic takes `factor` times as long as on a ready-made one, or on one with other figures: `base`, `clock` (of
    its arithmetic) and keys of its file."""
    said = of_gpu(facts, row, "device")
    across = row["gpus"] > of_gpu(facts, row, "gpus_per_server", SERVER) and row.get("tensor", 1) == 1
    if isinstance(said, str):
        said = {"base": said}
    data = yaml.safe_load((case.root / "workloads/devices" / f"{said['base']}.yaml").read_text())
    if across and "collective_units" in data["sustained"]:
        data["sustained"]["collective_units"] = CHANNELS_ACROSS
    slow_down(data, factor / said.get("clock", 1))
    data |= {key: value for key, value in said.items() if key not in ("base", "clock", "sustained")}
    data["sustained"] = merged(data.get("sustained", {}), said.get("sustained", {}))
    path = case.scratch / f"{data['name'].replace(' ', '_')}.yaml"
    path.write_text(json.dumps(data))  # JSON is YAML
    return str(path)


def framework_of(case, facts, row):
    """A catalogue of kernels, with the row's library of attention and streams of experts if it names them, and in mixtures with the
    times of the set's hosts."""
    path = case.root / "workloads/frameworks" / f"{row['framework']}.yaml"
    said = {key: row[key] for key in ("attention_library", "expert_streams") if key in row}
    hosts = facts.get("hosts_of_mixtures", {}).get(row.get("gpu"), {}) if row.get("expert", 1) > 1 else {}
    if not said and not hosts:
        return str(path)
    kernels = yaml.safe_load(path.read_text()) | said
    if hosts:
        kernels["host"] |= hosts
    changed = case.scratch / f"{row['framework']}-{'-'.join(map(str, said.values()))}{'-host' if hosts else ''}.yaml"
    changed.write_text(json.dumps(kernels))  # JSON is YAML
    return str(changed)


def deepspeed_stages(blocks, stages, with_embeddings):
    """Blocks on each stage as DeepSpeed's partition_balanced (runtime/utils.py) puts them: the largest number is as small as it can
    be, and the last stages have what is left. Both embeddings may count as a block of the stages at the ends."""
    slots = blocks + (2 if with_embeddings else 0)
    most = -(-slots // stages)
    numbers = [min(most, max(0, slots - most * stage)) for stage in range(stages)]
    if with_embeddings:
        numbers[0] -= 1
        numbers[-1] -= 1
    return numbers


def apart_of_data(row):
    """From a data-parallel rank to the next one: the ranks of the dimensions that stand before the data-parallel one in `order`."""
    before = row.get("order", "tp-cp-ep-dp-pp").partition("dp")[0].split("-")
    return math.prod(row.get(name, 1) for name, short in (("tensor", "tp"), ("context", "cp"), ("pipeline", "pp")) if short in before)


def experiment(case, facts, row, micro_batches, factor):
    tensor, context, pipeline = (row.get(key, 1) for key in ("tensor", "context", "pipeline"))
    data = row["gpus"] // (tensor * context * pipeline)
    copies = min(data, max(1, MAX_SHARDS // (tensor * context)), data)
    if copies < data:
        sharing = row.get("expert", 1) * row.get("expert_tensor", 1)
        copies = max(copies, 2, sharing // (tensor * context), row.get("copies", 1))
    simulated = tensor * context * pipeline * copies
    server = of_gpu(facts, row, "gpus_per_server", SERVER)
    nvlink, alone = nvlinks_of(facts, row)
    inside = nvlink if tensor == 1 else alone
    design = of_gpu(facts, row, "server")
    group = {**RINGS, "launch_latency": f"{nvlink['launch']} us"}
    shard = {**group, "launch_latency": f"{nvlink['launch'] + ring_latency(facts, data * context):g} us"}
    apart = apart_of_data(row)
    if simulated > server and apart < server:
        shard |= {"algorithm": "hierarchical", "ranks_per_server": server // apart}
    # Some kilobytes: the time at no bytes. All ranks end at once, as those of rings do; a tree's would begin the next exchange
    # one after the other, and exchanges in rounds would then disturb each other.
    magnitudes = {**group, "algorithm": "recursive_doubling", "launch_latency": f"{alone['launch']} us"}
    parallelism = {
        "tensor": tensor, "context": context, "data": data, "pipeline": pipeline, "sequence": tensor > 1,
        "sharding": row["sharding"], "virtual_stages": row.get("virtual_stages", 1), "expert": row.get("expert", 1),
    }  # fmt: skip
    for key in ("expert_tensor", "order", "schedule"):
        if key in row:
            parallelism[key] = row[key]
    if "layers_at_ends" in row:
        stages = pipeline * row["virtual_stages"]
        ends = row["layers_at_ends"]
        each = (layers_of(case, facts, row) - 2 * ends) // (stages - 2)
        parallelism["stage_layers"] = [ends, *[each] * (stages - 2), ends]
    if "shape" in row and pipeline > 1:
        parallelism["stage_layers"] = deepspeed_stages(shape_of(facts, row)[0], pipeline, row.get("embeddings_as_blocks", False))
    if context > 1:
        # Megatron-Core's default (core/transformer/transformer_config.py, cp_comm_type) is a ring.
        parallelism["context_kind"] = "gathered_ring" if row["framework"].startswith("pytorch") else row.get("context_kind", "ring")
    if row.get("gather_once"):
        parallelism["reshard_after_forward"] = False
    workload = {
        "kind": "training", "model": model_of(case, facts, row), "device": device_of(case, facts, row, factor),
        "framework": framework_of(case, facts, row), "precision": row["precision"],
        "micro_batch": row["micro_batch"], "micro_batches": micro_batches, "sequence_length": row["sequence"],
        "recompute": row["recompute"], "parallelism": parallelism, **RINGS,
        "collectives": {"tensor": {**group, "launch_latency": f"{alone['launch']} us"}, "shard": shard, "data": shard,
                        "context": group, "stage": magnitudes, "expert_tensor": {**group, "launch_latency": f"{alone['launch']} us"}},
    }  # fmt: skip
    if row.get("expert", 1) > 1:
        exchange = {**group, "launch_latency": f"{exchange_launch(facts, row, nvlink)} us"}
        workload["collectives"]["expert"] = exchange  # in two legs they are not NCCL's
    if "expert_tensor" in row:
        # NCCL's own rounds on one channel would wait for its one thread block, and on more have 24 times as many messages.
        workload["collectives"]["expert"] = {**exchange, "algorithm": "pairwise"}
    for key in ("parameter_precision", "gradient_precision", "overlap_tensor", "fused_router", "fused_permutation",
                "padded_copies", "fused_loss", "fp8_scaling", "amax_ranks", "cuda_graphs", "capacity_factor", "pad_to_capacity"):
        if key in row:
            workload[key] = row[key]
    if "overlap" in row:
        workload["tensor_overlap"] = facts["tensor_overlaps"][row["overlap"]]
    if row.get("amax_ranks") == "tensor":
        workload["collectives"]["tensor_context"] = magnitudes
    if copies < data:
        workload["symmetry"] = {"data": copies}
    workload = merged(workload, row.get("workload", {}))  # keys of the experiment as they are
    return {
        "topology": {
            "kind": "leaf_spine", "leaves": server, "hosts_per_leaf": max(1, -(-simulated // server)), "spines": 1,
            "link_rate": row.get("link_rate", of_gpu(facts, row, "link_rate")), "link_delay": "500 ns",
            "server": {**(design if isinstance(design, dict) else {"design": design}), "wiring": "rail",
                       "nvlink_rate": f"{inside['rate'] / FRAMING:.1f} GB/s"},
        },
        "network": {"fidelity": "ideal"}, "workload": workload, "output": {"messages": "none"},
    }  # fmt: skip


def without_collectives(facts):
    """A change of experiments: what runs by default on the ready-made server (`default_server`, if rings at a rate need another
    one) instead of rings at sustained rates."""

    def change(experiment):
        workload = experiment["workload"]
        server = {key: value for key, value in experiment["topology"]["server"].items() if key != "nvlink_rate"}
        if "default_server" in facts:
            server["design"] = facts["default_server"]
        return experiment | {
            "topology": experiment["topology"] | {"server": server},
            "workload": {key: value for key, value in workload.items() if key != "collectives" and key not in RINGS},
        }

    return change


def micro_batches_of(row):
    """Number of micro-batches of the row's size: a batch that is no multiple of them has a fraction."""
    data = row["gpus"] // (row.get("tensor", 1) * row.get("pipeline", 1) * row.get("context", 1))
    return batch_of(row) / (row["micro_batch"] * data)


def simulated_micro_batches(row):
    """Interleaved, in groups of as many as stages; messages are joined only with more than one group."""
    many, most = micro_batches_of(row), MAX_MICRO_BATCHES * row.get("pipeline", 1)
    return int(many) if many <= most and many == int(many) else most


def step(case, facts, row, change=lambda experiment: experiment):
    """Seconds of a step. Times of more than three micro-batches are extrapolated linearly from two and three."""

    factor = waiting_of(case, facts, row).factor()

    def seconds(micro_batches):
        changed = copy.copy(case)
        changed.experiment = change(experiment(case, facts, row, micro_batches, factor))
        return changed.run()[0].time * 1e-12

    many, most, group = micro_batches_of(row), simulated_micro_batches(row), row.get("pipeline", 1)
    if most == many:
        return seconds(most)
    few, more = seconds(most - group), seconds(most)
    return more + (more - few) * (many - most) / group


def summary(points, roundings=None):
    """Mean absolute error in percent, largest error, and percent of pairs in the right order, as in right_order()."""
    errors = [100 * (predicted / published - 1) for published, predicted in points]
    return mean_error(points), max(errors, key=abs), right_order(points, roundings)
