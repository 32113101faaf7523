// SPDX-License-Identifier: GPL-2.0-only
// Multi-head latent attention: DeepSeek-AI 2024, "DeepSeek-V2", arXiv:2405.04434, 2.1.
#pragma once

#include "workloads/model/transformer_tensors.hpp"

namespace weft {

/// Compressed queries (or whole ones, if attention.query_rank is 0), compressed keys and values beside the rotary key,
/// and the output GEMM; with `norms` behind the compressions. The compressions are whole on every rank, what comes
/// after them is cut by heads.
void add_latent_attention(std::vector<Tensor>& tensors, std::int64_t hidden, const AttentionShape& attention, bool bias,
                          bool norms = true);

}  // namespace weft
