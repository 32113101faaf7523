// SPDX-License-Identifier: GPL-2.0-only
// Mixtures of experts as Qwen2 and Qwen3 configure them.
#pragma once

#include "workloads/model/transformer_tensors.hpp"

namespace weft {

/// Dense and sparse blocks by num_experts, decoder_sparse_step and mlp_only_layers: block i (from 0) has experts if
/// i + 1 is a multiple of the step and i is not in the list. `shared`: a shared expert of
/// shared_expert_intermediate_size, with a gate of its own.
ModelConfig read_qwen_mixture(const JsonConfig& config, const BlockOptions& options, bool shared);

}  // namespace weft
