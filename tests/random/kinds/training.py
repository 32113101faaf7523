# SPDX-License-Identifier: GPL-2.0-only
"""Random workloads `training`: small models, parallelism, files of other programs, storage and failures."""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import names  # noqa: E402
from draw import MS, US  # noqa: E402
from kinds.parts import collective_options, device, noise, spread, stored  # noqa: E402
from weft_testing import SOURCE  # noqa: E402

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
GATHERED, SUMMED, IN_BULK = ["ring_exchange", "none"], ["pipeline", "ring_exchange", "none"], ["bulk", "none"]
OVERLAPS = {"qkv_fprop": GATHERED, "fc1_fprop": GATHERED, "proj_dgrad": GATHERED, "fc2_dgrad": GATHERED, "proj_fprop": SUMMED,
            "fc2_fprop": SUMMED, "qkv_dgrad": IN_BULK, "qkv_wgrad": IN_BULK, "fc1_dgrad": IN_BULK, "fc1_wgrad": IN_BULK}  # fmt: skip
EXPERT_FLAGS = ["fused_loss", "fused_router", "fused_permutation", "padded_copies"]


def tensor_overlap(d):
    """GEMMs beside calls of tensor ranks, some of them with keys of their own."""
    result = {}
    for gemm in d.some(list(OVERLAPS), 4):
        method = d.pick(OVERLAPS[gemm])
        result[gemm] = method
        if method == "none" or d.chance(0.5):
            continue
        result[gemm] = {"method": method, "num_sm": d.count(0, 40), "set_sm_margin": d.flag()}
        if method == "pipeline":
            result[gemm]["num_splits"] = d.pick([1, 2, 4])
        if method == "ring_exchange" and OVERLAPS[gemm] is GATHERED:
            result[gemm]["aggregate"] = d.flag()
        if OVERLAPS[gemm] is SUMMED:
            result[gemm]["fp8_buf"] = d.flag()
    return result


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
    plan = result.get("parallelism", {})
    if d.chance(0.5 if plan.get("schedule") == "interleaved" and plan.get("sharding") != "parameters" else 0.02):
        result["align_gradients"] = d.flag()
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
    if d.chance(0.2):
        result["amax_ranks"] = d.pick(["stage", "tensor", "none"])
    if d.chance(0.1):
        result["fp8_scaling"] = d.pick(["delayed", "current"])
    if d.chance(0.1) and result.get("parallelism", {}).get("sequence"):
        result["tensor_overlap"] = tensor_overlap(d)
    for flag in EXPERT_FLAGS:
        if d.chance(0.06):
            result[flag] = d.flag()
    if d.chance(0.08):
        result["prediction_blocks"] = d.count(0, 2)
        if d.chance(0.5):
            result.setdefault("parallelism", {})["prediction_stage"] = d.count(0, 1)
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
