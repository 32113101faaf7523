# SPDX-License-Identifier: GPL-2.0-only
"""Random workloads: the map `workload`, of every kind, and where its ranks run."""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import names  # noqa: E402
from draw import MS, NS, US  # noqa: E402
from weft_testing import SOURCE  # noqa: E402

ROOTED = ("broadcast", "reduce", "gather", "scatter")
BLOCKS = ("all_gather", "reduce_scatter", "all_to_all", "gather", "scatter")


def ranks_of(d, hosts):
    """Mostly all of the first 16 hosts, sometimes an odd number of them."""
    most = min(hosts, 16)
    return most if d.chance(0.4) else d.between(min(2, most), most)


def collective_options(d, files, ranks, facts):
    """The keys that all collectives of a workload may have."""
    result = {}
    if d.chance(0.75):
        result["algorithm"] = d.word(names.algorithms())
    if d.chance(0.02):
        kept = sorted((SOURCE / "tests/fuzz/corpus/schedule_text").glob("*.schedule"))
        path = d.pick(kept)
        files[path.name] = path.read_text()
        result["algorithm"] = path.name
    if d.chance(0.3):
        result["channels"] = d.count(1, 4)
    if d.chance(0.3):
        result["chunk_size"] = d.size(512, 300_000)
    if d.chance(0.2):
        result["slices_per_chunk"] = d.count(1, 4)
    if d.chance(0.2):
        result["credits"] = d.count(1, 8)
    if d.chance(0.2):
        result["protocol"] = d.word(names.words("workload.protocol"))
    divisors = [n for n in range(1, ranks + 1) if ranks % n == 0]
    if d.chance(0.25):
        result["ranks_per_server"] = d.pick(divisors) if d.chance(0.8) else d.count(1, ranks)
    if d.chance(0.1):
        result["ranks_per_leaf"] = d.pick(divisors)
    if d.chance(0.1):
        result["kernel_device"] = d.pick(names.folder_names("workloads/devices", ".yaml"))
        device(d, files, result, "kernel_device")
    if d.chance(0.1):
        result["latencies"] = d.word(names.words("workload.latencies"))
    if d.chance(0.1):
        result["collective_kernel"] = d.word([*names.folder_names("collectives/kernels", ".yaml"), "none"])
    if d.chance(0.2):
        first = d.pick(divisors)
        result["dimensions"] = [first, ranks // first]
    if d.chance(0.15):
        result["launch_latency"] = d.time(0, 5 * US)
    if d.chance(0.15):
        result["step_latency"] = d.time(0, 2 * US)
    if d.chance(0.1):
        result["reduce_rate"] = d.rate(10**10, 10**12)
    if d.chance(0.1):
        result["copy_rate"] = d.rate(10**10, 10**12)
    return result


def device(d, files, result, key):
    """The device file beside the experiment, so that it can be carried elsewhere."""
    name = result[key]
    files[f"{name}.yaml"] = (SOURCE / "workloads/devices" / f"{name}.yaml").read_text()
    result[key] = f"{name}.yaml"


def collective(d, files, facts):
    ranks = ranks_of(d, facts.computing)
    kind = d.word(names.words("workload.collective"))
    result = {"kind": "collective", "collective": kind, "size": d.size(0 if d.chance(0.05) else 1, 400_000)}
    if d.chance(0.8):
        result["ranks"] = d.count(ranks, ranks)
    else:
        ranks = facts.computing
    if kind in ROOTED and d.chance(0.5):
        result["root"] = d.count(0, ranks - 1)
    if kind in BLOCKS and d.chance(0.15):
        blocks = [[d.between(0, 20_000) for _ in range(ranks)] for _ in range(ranks if kind == "all_to_all" else 1)]
        total = sum(map(sum, blocks))
        listed = [[f"{size} B" for size in row] for row in blocks]
        result.update(size=f"{total} B", block_sizes=listed if kind == "all_to_all" else listed[0])
    if d.chance(0.4):
        result["iterations"] = d.count(1, 4)
    if d.chance(0.2):
        result["gap"] = d.time(0, 20 * US)
    result.update(collective_options(d, files, ranks, facts))
    return result


def process(d, kind, endless):
    result = {"process": kind}
    if endless or d.chance(0.5):  # a load of tiny messages without an end would be all that is simulated
        result["interval"] = d.time(5 * US if endless else 500 * NS, 50 * US)
    else:
        result["load"] = d.number(0.05, 1.5)
    if not endless:
        if d.chance(0.7):
            result["count"] = d.count(1, 10)
        if "count" not in result or d.chance(0.2):
            result["stop"] = d.time(US, 100 * US)
    if kind == "on_off":
        result.update(on=d.time(2 * US, 50 * US), off=d.time(2 * US, 50 * US))
        if d.chance(0.6):
            result["law"] = d.word(names.words("workload.start.law"))
        if result.get("law") == "pareto" and d.chance(0.5):
            result["shape"] = d.number(1.1, 3)
    return result


def traffic(d, files, facts, endless=None):
    ranks = max(2, ranks_of(d, facts.computing))
    pattern = d.word(names.words("workload.pattern"))
    result = {"kind": "traffic", "pattern": pattern,
              "size": d.size(0, 100_000 if endless or pattern == "all_to_all" else 400_000)}
    if d.chance(0.8):
        result["ranks"] = d.count(ranks, ranks)
    else:
        ranks = max(2, facts.computing)
    if d.chance(0.3):
        result["queue_pairs"] = d.count(1, 4)
    if endless:
        result["start"] = process(d, endless, True)
    elif d.chance(0.5):
        choice = d.random.random()
        if choice < 0.25:
            result["start"] = d.time(0, 50 * US)
        elif choice < 0.4:
            result["start"] = [d.time(0, 50 * US) for _ in range(d.between(1, 4))]
        else:
            result["start"] = process(d, d.word(names.words("workload.start.process")), False)
    if pattern in ("permutation", "uniform") and d.chance(0.5):
        result["shift"] = d.count(1, max(1, ranks - 1))
    if pattern == "uniform" and (d.chance(0.4) or "shift" in result):
        result["group"] = d.pick([n for n in range(1, ranks + 1) if ranks % n == 0])
    if pattern == "incast":
        if d.chance(0.5):
            result["destination"] = d.count(0, ranks - 1)
        if d.chance(0.5):
            result["sources"] = d.count(1, max(1, ranks - 1))
    if pattern == "pairs":
        result["pairs"] = [d.random.sample(range(ranks), 2) for _ in range(d.between(1, 10))]
    return result


def checkpoint(d, files, facts):
    targets = facts.storage or d.between(1, max(1, min(4, facts.computing // 2)))
    ranks = max(targets, d.between(1, max(1, min(12, facts.computing - (0 if facts.storage else targets)))))
    result = {"kind": "checkpoint", "size": d.size(1, 400_000), "ranks": d.count(ranks, ranks)}
    if not facts.storage or d.chance(0.3):
        result["targets"] = d.count(targets, targets)
    if d.chance(0.6):
        result["operation"] = d.word(names.words("workload.operation"))
    if d.chance(0.6):
        result["piece"] = d.size(1000, 300_000)
    if d.chance(0.4):
        result["device_rate"] = d.rate(10**9, 10**11)
    if d.chance(0.4):
        result["device_latency"] = d.time(0, 20 * US)
    if d.chance(0.4):
        result["count"] = d.count(1, 4)
        if d.chance(0.5):
            result["interval"] = d.time(0, 100 * US)
    return result


# Names of a configuration's numbers, and their values for a model that is sent in about a second.
SMALL_MODEL = {
    "vocab_size": 512, "max_position_embeddings": 128, "n_positions": 128, "n_ctx": 128, "hidden_size": 128,
    "n_embd": 128, "d_model": 128, "intermediate_size": 256, "ffn_dim": 256, "d_ff": 256, "moe_intermediate_size": 64,
    "shared_expert_intermediate_size": 64, "num_hidden_layers": 4, "n_layer": 4, "num_layers": 4,
    "num_decoder_layers": 4, "num_sparse_encoder_layers": 2, "num_sparse_decoder_layers": 2, "num_attention_heads": 8,
    "n_head": 8, "num_heads": 8, "num_key_value_heads": 4, "head_dim": 16, "d_kv": 16, "kv_lora_rank": 16,
    "q_lora_rank": 32, "qk_nope_head_dim": 16, "qk_rope_head_dim": 8, "v_head_dim": 16, "num_local_experts": 4,
    "num_experts": 4, "n_routed_experts": 8, "n_group": 2, "topk_group": 1, "num_experts_per_tok": 2,
    "word_embed_proj_dim": 128, "first_k_dense_replace": 1, "embedding_size": 16, "num_labels": 10,
    "max_window_layers": 4, "decoder_sparse_step": 1,
}


def small_model(d, files):
    """One of the shipped models, with the same structure and small numbers."""
    name = d.pick(names.folder_names("workloads/models", ".json"))
    model = json.loads((SOURCE / "workloads/models" / f"{name}.json").read_text())
    for key, value in SMALL_MODEL.items():
        if isinstance(model.get(key), int):
            model[key] = min(value, model[key])
    for key, values in {"hidden_sizes": [16, 32, 64, 64], "depths": [1, 1, 2, 1]}.items():
        if key in model:
            model[key] = values[: len(model[key])]
    files["model.json"] = json.dumps(model)
    return "model.json"


def stage_layers(d, stages):
    """Shares of the blocks of a small model: four, unless it has fewer."""
    cuts = sorted(d.between(0, 4) for _ in range(stages - 1))
    return [d.count(b - a, b - a) for a, b in zip([0, *cuts], [*cuts, 4])]


def parallelism(d, ranks):
    """Dimensions whose product is a divisor of the ranks."""
    result, left = {}, ranks
    for key in d.some(["tensor", "pipeline", "context", "data"], 3):
        divisors = [n for n in (1, 2, 3, 4, 8) if left % n == 0]
        result[key] = d.pick(divisors)
        left //= result[key]
    if "data" not in result and left > 1 and d.chance(0.3):
        result["data"] = left
    if d.chance(0.25):
        result["expert"] = d.pick([2, 4])
        if d.chance(0.4):
            result["expert_tensor"] = 1
        if d.chance(0.3):
            result.update(expert_server=2, servers_per_token=d.pick([1, 2]))
            if d.chance(0.4):
                result["expert_forwarding"] = d.word(["whole", "parts"])
    if result.get("tensor", 1) > 1 and ("expert" in result or d.chance(0.4)):
        result["sequence"] = True if "expert" in result else d.flag()
    if d.chance(0.15):
        result["scatter_gather"] = d.flag()
    if result.get("context", 1) > 1 or d.chance(0.1):
        result["context_kind"] = d.word(names.words("workload.parallelism.context_kind"))
    if d.chance(0.15):
        dimensions = ["tp", "cp", "ep", "dp", "pp"]
        d.random.shuffle(dimensions)
        result["order"] = d.word(["-".join(dimensions)])
    if d.chance(0.15):
        result["stage_layers"] = stage_layers(d, result.get("pipeline", 1))
    if result.get("pipeline", 1) > 1 and d.chance(0.6):
        result["schedule"] = d.word(names.words("workload.parallelism.schedule"))
        if result["schedule"] in ("interleaved", "zbv", "dualpipe") or d.chance(0.1):
            result["virtual_stages"] = 2
    if d.chance(0.4):
        result["sharding"] = d.word(names.words("workload.parallelism.sharding"))
        if result["sharding"] == "parameters":
            if d.chance(0.3):
                result["reshard_after_forward"] = d.flag()
            if d.chance(0.3):
                result["prefetch"] = d.count(0, 3)
        if d.chance(0.2):
            result["shard_group"] = 2
    return result


TRAINING_FLAGS = ["overlap_tensor", "overlap_gradients", "overlap_parameters", "clip_gradients", "offload_optimizer",
                  "offload_parameters", "overlap_offload", "reduce_every_micro_batch"]
EXPERT_FLAGS = ["fused_router", "fused_permutation", "padded_copies"]


def configuration(d, files, result):
    """Files of other programs, which replace keys."""
    kind = d.pick(["deepspeed", "trainer", "megatron"])
    if kind == "deepspeed":
        files["deepspeed.json"] = json.dumps({
            "train_micro_batch_size_per_gpu": d.count(1, 2), "gradient_accumulation_steps": d.count(1, 3),
            "zero_optimization": {"stage": d.count(0, 3), "overlap_comm": d.flag(),
                                  "reduce_bucket_size": d.count(10**4, 10**6)},
            "bf16": {"enabled": d.flag()}})
        result[kind] = "deepspeed.json"
    elif kind == "trainer":
        lines = {"per_device_train_batch_size": d.count(1, 2), "gradient_accumulation_steps": d.count(1, 3),
                 "bf16": d.flag(), "gradient_checkpointing": d.flag(), "ddp_bucket_cap_mb": d.count(1, 25)}
        files["trainer.yaml"] = "".join(f"{key}: {json.dumps(value)}\n" for key, value in lines.items())
        result[kind] = "trainer.yaml"
    else:
        options = {"tensor-model-parallel-size": d.pick([1, 2]), "pipeline-model-parallel-size": d.pick([1, 2]),
                   "num-layers": 4, "hidden-size": 128, "num-attention-heads": 8, "seq-length": 32,
                   "max-position-embeddings": 128, "micro-batch-size": d.count(1, 2),
                   "global-batch-size": d.pick([8, 16]), "vocab-size": 512}
        flags = d.some(["sequence-parallel", "use-distributed-optimizer", "recompute-activations", "bf16",
                        "overlap-grad-reduce", "swiglu", "untie-embeddings-and-output-weights"])
        words = [f"--{key} {value}" for key, value in options.items()] + [f"--{flag}" for flag in flags]
        files["pretrain.sh"] = "torchrun pretrain_gpt.py \\\n  " + " \\\n  ".join(words) + "\n"
        result[kind] = "pretrain.sh"
        for key in ("model", "parallelism", "micro_batch", "micro_batches", "sequence_length"):
            result.pop(key, None)
        files.pop("model.json")


def training(d, files, facts):
    ranks = max(1, min(16, facts.computing))
    result = {"kind": "training", "model": small_model(d, files),
              "device": d.pick(names.folder_names("workloads/devices", ".yaml")), "sequence_length": d.pick([16, 32, 64])}
    device(d, files, result, "device")
    if "resnet" in files["model.json"]:
        del result["sequence_length"]
    if d.chance(0.9):
        result["parallelism"] = parallelism(d, ranks if d.chance(0.5) else d.pick([1, 2, 4, 8]))
    if d.chance(0.3):
        result["micro_batch"] = d.count(1, 3)
    if d.chance(0.5):
        result["micro_batches"] = d.count(1, 4) if "dualpipe" not in str(result) else 8
    if d.chance(0.4):
        result["steps"] = d.count(1, 3)
    for flag in TRAINING_FLAGS:
        if d.chance(0.06):
            result[flag] = d.flag()
    for key in ("attention", "recompute", "precision"):
        if d.chance(0.2):
            result[key] = d.word(names.words(f"workload.{key}"))
    if d.chance(0.3):
        result["bucket_size"] = d.size(10_000, 1_000_000)
    if d.chance(0.2):
        result["first_bucket_size"] = d.size(10_000, 1_000_000)
    if d.chance(0.2):
        result["efficiency"] = d.number(0.01, 1)
    if d.chance(0.2):
        result["compute_noise"] = noise(d, ranks)
    if d.chance(0.2):
        result["routing"] = {"spread": d.number(0, 2), **({"seed": d.count(0, 99)} if d.chance(0.5) else {})}
    if d.chance(0.1):
        result["capacity_factor"] = d.number(1, 3)
        if d.chance(0.3):
            result["pad_to_capacity"] = True
    if d.chance(0.06):
        result["symmetry"] = {"data": d.count(2, 3)}
    storage(d, result, facts)
    if d.chance(0.4):
        result.update(collective_options(d, files, ranks, facts))
        if d.chance(0.7):
            for key in ("dimensions", "ranks_per_server", "ranks_per_leaf"):
                result.pop(key, None)  # groups of all sizes have to fit
    if d.chance(0.15):
        kinds = names.keys("workload.collectives", {"workload": {**names.TRAINING, "collectives": {}}})
        result["collectives"] = {kind: collective_options(d, files, 2, facts) for kind in d.some(kinds, 2)}
    further_training(d, result)
    if d.chance(0.1):
        configuration(d, files, result)
    for flag in EXPERT_FLAGS:
        if d.chance(0.06):
            result[flag] = d.flag()
    if d.chance(0.08):
        result["prediction_blocks"] = d.count(0, 2)
        if d.chance(0.5):
            result.setdefault("parallelism", {})["prediction_stage"] = d.count(0, 1)
    spread(d, result)
    return result


def further_training(d, result):
    for key in names.TRAINING_WORDS:
        if d.chance(0.05):
            result[key] = d.word(names.words(f"workload.{key}"))
    if d.chance(0.1):
        result["framework"] = d.word(names.folder_names("workloads/frameworks", ".yaml"))
    if d.chance(0.15):
        result.pop("micro_batches", None)
        result["global_batch"] = d.pick([1, 2, 4, 8, 16, 24])
    if d.chance(0.1):
        result.update(recompute="full", recompute_layers=d.count(1, 4))
    elif d.chance(0.1):
        modules = ["core_attn", "layernorm", "mlp", "moe_act", "moe"]
        result.update(recompute="selective", recompute_modules=d.some(modules, 2))


def storage(d, result, facts):
    targets = {} if facts.storage else {"targets": 1}
    if d.chance(0.12):
        result["data_loading"] = {"bytes_per_sample": d.size(1000, 100_000), **targets, **stored(d)}
        if d.chance(0.5):
            result["data_loading"]["prefetch"] = d.count(0, 3)
    if d.chance(0.12):
        result["checkpoint"] = {"every": d.count(1, 2), **targets, **stored(d)}
        if d.chance(0.4):
            result["checkpoint"]["asynchronous"] = d.flag()
        if d.chance(0.4):
            result["checkpoint"]["size"] = d.size(1000, 300_000)
        if d.chance(0.6):
            result["failures"] = {"mean_time": d.time(MS, 20 * MS)} if d.chance(0.5) else {"times": [d.time(100 * US, 5 * MS)]}
            if d.chance(0.3):
                result["failures"]["seed"] = d.count(0, 99)
            if d.chance(0.5):
                result["failures"]["step_time"] = d.time(100 * US, 2 * MS)
            if d.chance(0.5):
                result["failures"]["detection"] = d.time(0, MS)
            if d.chance(0.5):
                result["failures"]["restart"] = d.time(0, MS)


def stored(d):
    """How targets store."""
    result = {}
    if d.chance(0.3):
        result["piece"] = d.size(1000, 300_000)
    if d.chance(0.3):
        result["device_rate"] = d.rate(10**9, 10**11)
    if d.chance(0.3):
        result["device_latency"] = d.time(0, 20 * US)
    return result


def noise(d, ranks):
    result = {}
    if d.chance(0.7):
        result["jitter"] = d.pick(["2 %", "0.1", "30 %"])
    if d.chance(0.4):
        result["distribution"] = d.word(names.words("workload.compute_noise.distribution"))
    if d.chance(0.4):
        result["slow_ranks"] = [{"ranks": [d.count(0, max(0, ranks - 1))], "factor": d.number(0.5, 3)}]
    if d.chance(0.4):
        result["stragglers"] = {"probability": d.number(0, 1), "factor": d.number(1, 5), "interval": d.time(US, 100 * US)}
    return result


def spread(d, result):
    """Of `compute_noise`, if there is any."""
    if "compute_noise" in result and d.chance(0.4):
        result["compute_noise"]["spread"] = d.pick(["1.5 %", "0.04", "20 %"])


def recommendation(d, files, facts):
    ranks = ranks_of(d, facts.computing)
    dimension, tables = d.between(1, 16), d.between(1, 20)
    vectors = tables + 1
    result = {"kind": "recommendation", "device": d.pick(names.folder_names("workloads/devices", ".yaml")),
              "ranks": d.count(ranks, ranks), "batch": d.count(1, 32), "dimension": dimension,
              "tables": [d.count(1, 10**6) for _ in range(tables)],
              "bottom_mlp": [d.count(1, 20), d.count(1, 32), dimension],
              "top_mlp": [vectors * (vectors - 1) // 2 + dimension, d.count(1, 32), 1]}
    device(d, files, result, "device")
    if d.chance(0.4):
        result["pooling"] = d.count(1, 4)
    if d.chance(0.4):
        result["precision"] = d.word(["fp32", "tf32", "bf16", "fp16"])
    if d.chance(0.3):
        result["exchange_algorithm"] = d.word(names.algorithms())
    if d.chance(0.4):
        result["steps"] = d.count(1, 3)
    if d.chance(0.3):
        result["channels"] = d.count(1, 3)
    return result


STREAMS = ["compute", "communication", "parameters", "tensor", "context", "expert", "storage", "none"]


class Program:
    """Operations in an order in which all can be executed, so that dependencies upwards never wait for each other."""

    def __init__(self, d, ranks):
        self.d, self.ranks = d, ranks
        self.ids = {rank: [] for rank in range(ranks)}
        self.operations = []
        self.communicators = {}
        self.calls = 0 if d.chance(0.1) else None  # all collectives have the number of their call, or none does
        if ranks > 1 and d.chance(0.5):
            for number in range(d.between(1, 2)):
                self.communicators[f"group{number}"] = d.random.sample(range(ranks), d.between(1, ranks))

    def common(self, operation, ranks):
        d = self.d
        known = set(self.ids[ranks[0]]).intersection(*(self.ids[rank] for rank in ranks)) if ranks else set()
        if known and d.chance(0.6):
            operation["after"] = d.some(sorted(known), 2)
        if d.chance(0.7):
            operation["id"] = f"o{len(self.operations)}"
            for rank in ranks:
                self.ids[rank].append(operation["id"])
        if d.chance(0.1):
            operation["not_before"] = d.time(0, 50 * US)
        if d.chance(0.1):
            operation["label"] = "a label"
        self.operations.append(operation)

    def compute(self):
        d = self.d
        ranks = sorted(d.some(range(self.ranks)))
        operation = {"rank": "all" if len(ranks) == self.ranks else ranks, "compute": d.time(0, 20 * US)}
        if d.chance(0.2):
            operation["stream"] = d.word(STREAMS)
        self.common(operation, ranks)

    def collective(self):
        d = self.d
        name = d.pick([*self.communicators, "all"])
        members = self.communicators.get(name, list(range(self.ranks)))
        kind = d.pick(["all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all", "barrier"])
        operation = {"collective": kind, "size": d.size(1, 200_000)}
        if kind in BLOCKS and d.chance(0.15):
            del operation["size"]
            rows = [[d.size(1, 20_000) for _ in members] for _ in (members if kind == "all_to_all" else [0])]
            operation["blocks"] = rows if kind == "all_to_all" else rows[0]
        if self.calls is not None:
            operation["call"] = d.count(self.calls, self.calls)
            self.calls += 1
        elif d.chance(0.1):
            operation["tuning"] = d.word(["own"])
        if name != "all":
            operation["communicator"] = name
        if kind == "broadcast" and d.chance(0.5):
            operation["root"] = d.count(0, len(members) - 1)
        if d.chance(0.3) or kind in ("all_to_all", "barrier"):
            suit = {"all_to_all": ["pairwise", "linear", "nccl_p2p"], "barrier": ["linear", "binomial", "bruck"]}
            operation["algorithm"] = d.word(suit.get(kind, ["ring", "nccl", "best"]))
        self.common(operation, members)

    def message(self):
        d = self.d
        a, b = d.random.sample(range(self.ranks), 2)
        size = d.size(0, 100_000)
        tag = {"tag": d.count(0, 3)} if d.chance(0.3) else {}
        queue_pair = {"queue_pair": d.count(0, 3)} if d.chance(0.2) else {}
        self.common({"rank": a, "send": size, "to": b, **tag, **queue_pair}, [a])
        self.common({"rank": b, "recv": size, "from": a, **tag}, [b])


def program(d, files, facts):
    ranks = ranks_of(d, facts.computing)
    made = Program(d, ranks)
    for _ in range(d.between(1, 15)):
        d.pick([made.compute, made.collective, *([made.message] * 2 if ranks > 1 else [])])()
    result = {"kind": "program", "ranks": d.count(ranks, ranks), "operations": made.operations}
    if made.communicators:
        result["communicators"] = made.communicators
    if "tuning" in str(made.operations):
        result["tunings"] = {"own": collective_options(d, files, 2, facts)}
    if d.chance(0.2):
        result["read_ahead"] = d.count(1, 8)
    if d.chance(0.2):
        result["compute_noise"] = noise(d, ranks)
    if d.chance(0.1):
        result["compute_slowdown_while_communicating"] = d.number(1, 2)
    for key, value in collective_options(d, files, ranks, facts).items():
        if key in ("channels", "chunk_size", "slices_per_chunk", "credits") and d.chance(0.3):
            result[key] = value
    spread(d, result)
    return result


def placement(d, hosts, ranks, first=None):
    choice = d.random.random()
    if choice < 0.15:
        return d.word(["packed", "random", "by_rail"])
    if choice < 0.4:
        keys = {"kind": "random", **({"seed": d.count(0, 99)} if d.chance(0.5) else {})}
        if d.chance(0.3):
            keys["first"] = d.count(0, 1)
            keys["count"] = d.count(max(1, hosts - 1), max(1, hosts - 1))
        return keys
    if choice < 0.7 and isinstance(ranks, int) and 0 < ranks <= hosts:
        return {"hosts": d.random.sample(range(hosts), ranks)}
    room = max(0, hosts - (ranks if isinstance(ranks, int) and ranks > 0 else 1))
    keys = {"first": d.count(0, room)}
    if d.chance(0.3):
        keys["stride"] = d.count(1, 2)
    return keys


def jobs(d, files, facts):
    """Two or three jobs: side by side, or with shared hosts, or one in the background of the others."""
    count = d.between(2, 3)
    result, used = [], 0
    room = max(1, facts.computing // count)
    for number in range(count):
        background = number > 0 and d.chance(0.35)
        part = type(facts)(max(2, room) + facts.storage, facts.storage, facts.switches, facts.classes, facts.units,
                           facts.server)
        if background and d.chance(0.9):
            kind = d.pick([name for name in names.background_jobs() if name != "training"] or ["periodic"])
            work = traffic(d, files, part, endless=kind)
        else:
            kind = d.pick([name for name in names.workloads() if name != "jobs"])
            work = MAKERS[kind](d, files, part) if kind in MAKERS else {"kind": kind}
        if work.get("kind") == "collective" and d.chance(0.7):
            work.pop("algorithm", None)  # that of one of them is refused for all
        job = {"workload": work}
        if background:
            job["background"] = True
        if d.chance(0.4):
            job["name"] = f"work{number}"
        if "size" in work and d.chance(0.15):
            job["set"] = [f"size={d.size(1, 100_000)}"]
        if d.chance(0.4):
            job["start"] = d.time(0, 50 * US)
        if d.chance(0.6) and ("ranks" not in work or d.chance(0.1)):
            job["ranks"] = max(2, room)
        if d.chance(0.25):
            job["share"] = True
            job["placement"] = {"first": d.count(0, max(0, facts.computing - room))}
        elif d.chance(0.4):
            job["placement"] = {"first": d.count(used, used)}
        used += room
        result.append(job)
    keys = {"kind": "jobs", "jobs": result}
    if d.chance(0.15):
        keys["background_check"] = d.time(US, 200 * US)
    if d.chance(0.05):
        keys["only"] = [d.pick([job.get("name", f"job{i}") for i, job in enumerate(result)])]
    return keys


def goal(d, files, facts):
    """Messages in rings and between pairs, with computation in between."""
    ranks = ranks_of(d, facts.computing)
    lines = {rank: [] for rank in range(ranks)}
    waits = {rank: [] for rank in range(ranks)}

    def add(rank, text):
        number = len(lines[rank]) + 1
        lines[rank].append(f"l{number}: {text}")
        if number > 1 and d.chance(0.6):
            waits[rank].append(f"l{number} requires l{d.between(1, number - 1)}")

    for _ in range(d.between(1, 6)):
        size, tag = d.between(0, 100_000), d.between(0, 9)
        if ranks == 1 or d.chance(0.3):
            add(d.between(0, ranks - 1), f"calc {d.between(0, 50_000)}")
            continue
        shift = d.between(1, ranks - 1)
        for rank in range(ranks):
            add(rank, f"send {size}b to {(rank + shift) % ranks} tag {tag}")
        for rank in range(ranks):
            add(rank, f"recv {size}b from {(rank - shift) % ranks} tag {tag}")
    text = f"num_ranks {ranks}\n"
    for rank in range(ranks):
        text += f"rank {rank} {{\n" + "".join(f"{line}\n" for line in lines[rank] + waits[rank]) + "}\n"
    files["ring.goal"] = text
    return {"kind": "goal", "file": "ring.goal"}


def layer_table(d, files, facts):
    """Layers of ASTRA-sim 1.0: a data-parallel pass, or one with two ranks of a model."""
    ranks = ranks_of(d, facts.computing)
    model = 2 if ranks % 2 == 0 and d.chance(0.5) else 1
    policy = "DATA" if model == 1 else "HYBRID_TRANSFORMER"
    head = policy if model == 1 else f"{policy} model_parallel_NPU_group: {model}"
    layers = []
    for number in range(d.between(1, 4)):
        columns = [f"layer{number}", "-1"]
        for kind in ["NONE" if model == 1 else d.pick(["NONE", "ALLREDUCE", "ALLGATHER"])] * 2 + ["ALLREDUCE"]:
            columns += [str(d.between(0, 50_000)), kind, str(d.between(1, 300) * 1024 if kind != "NONE" else 0)]
        layers.append("\t".join([*columns, str(d.between(0, 1000))]))
    files["layers.txt"] = "\n".join([head, str(len(layers)), *layers]) + "\n"
    result = {"kind": "astra_sim_text", "file": "layers.txt", "ranks": ranks}
    if d.chance(0.4):
        result["passes"] = d.count(1, 2)
    return result


def chakra(d, files, facts):
    """JSON nodes: the same collectives on all ranks, and computations before them."""
    ranks = ranks_of(d, facts.computing)
    calls = [(d.pick(["ALL_REDUCE", "ALL_GATHER", "REDUCE_SCATTER", "ALL_TO_ALL"]), d.between(1, 100) * 1024)
             for _ in range(d.between(1, 4))]
    for rank in range(ranks):
        nodes = []
        for kind, size in calls:
            nodes.append({"id": str(len(nodes) + 1), "name": f"work{len(nodes)}", "type": "COMP_NODE",
                          "durationMicros": str(d.between(0, 20)), "dataDeps": [str(len(nodes))] if nodes else []})
            nodes.append({"id": str(len(nodes) + 1), "name": kind.lower(), "type": "COMM_COLL_NODE",
                          "dataDeps": [str(len(nodes))],
                          "attr": [{"name": "comm_type", "int64Val": str(CHAKRA_KINDS[kind])},
                                   {"name": "comm_size", "int64Val": str(size)}, {"name": "is_cpu_op", "boolVal": False}]})
        files[f"trace.{rank}.json"] = json.dumps(nodes)
    result = {"kind": "chakra", "file": "trace.{rank}.json"}
    if d.chance(0.5):
        result["issue"] = d.pick(["astra_sim", "streams"])
    return result


# CollectiveCommType of schema/protobuf/et_def.proto (github.com/mlcommons/chakra).
CHAKRA_KINDS = {"ALL_REDUCE": 0, "ALL_GATHER": 2, "ALL_TO_ALL": 6, "REDUCE_SCATTER": 7}

MAKERS = {"goal": goal, "astra_sim_text": layer_table, "chakra": chakra, "collective": collective, "traffic": traffic,
          "checkpoint": checkpoint, "training": training, "recommendation": recommendation, "program": program,
          "jobs": jobs}

WEIGHTS = {"collective": 5, "traffic": 5, "program": 3, "jobs": 2, "training": 2}


def workload(d, files, facts):
    known = list(names.workloads())
    kind = d.random.choices(known, [WEIGHTS.get(name, 1) for name in known])[0]
    result = MAKERS[kind](d, files, facts) if kind in MAKERS else {"kind": kind}
    if kind != "jobs" and d.chance(0.25):
        result["placement"] = placement(d, facts.computing, result.get("ranks", facts.computing))
    return result
