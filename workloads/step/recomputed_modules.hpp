// SPDX-License-Identifier: GPL-2.0-only
// Modules of a block that selective recomputation computes again, and what comes back from experts in another
// precision.
#pragma once

#include <string>
#include <vector>

#include "workloads/pass/block_passes.hpp"

namespace weft {

/// core_attn, layernorm, mla_up_proj, moe_act, mlp, moe, shared_experts: Megatron-LM's --recompute-modules.
std::vector<std::string> recomputed_module_names();
/// Sets `recompute` (selective with core_attn, else none) and `recompute_modules`. Names are known ones.
void recompute_modules(const std::vector<std::string>& names, TrainingDescription& description);

/// block_passes(), with the computations that recompute_modules add to the backward pass, and with sizes of combine
/// calls in combine_precision. Again are computed (b s tokens of a rank, c = 1):
/// - mla_up_proj, before the gradient of attention: queries from their compression, keys and values from theirs, 2 b s
///   (a d q_lora_rank + a (d - rope + d_v) kv_lora_rank) / t FLOPs (DeepSeek-AI, arXiv:2412.19437, 3.2.3);
/// - layernorm, before gradients of weights: a read and a write of b s h for both norms, with latent attention also of
///   b s (q_lora_rank + kv_lora_rank);
/// - moe_act, before gradients of weights: the activation function of the routed experts, by their load.
/// mlp, moe and shared_experts are in block_passes(): their whole forward pass, with what it sends, before their
/// backward pass; only their input is kept (Megatron-LM, megatron/core/transformer/transformer_config.py,
/// recompute_modules: "normal checkpointing").
PartPasses passes_of_block(const PassSetup& setup, const BlockShape& block);

}  // namespace weft
