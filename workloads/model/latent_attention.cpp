// SPDX-License-Identifier: GPL-2.0-only
// Multi-head latent attention: DeepSeek-AI 2024, "DeepSeek-V2", arXiv:2405.04434, 2.1.
#include "workloads/model/latent_attention.hpp"

namespace weft {

void add_latent_attention(std::vector<Tensor>& tensors, std::int64_t hidden, const AttentionShape& attention, bool bias,
                          bool norms) {
  const std::int64_t queries = attention.heads * attention.head_size;
  const std::int64_t unrotated = attention.head_size - attention.rope_size;
  if (attention.query_rank > 0) {
    add_whole(tensors, "self_attn.q_a_proj", hidden, attention.query_rank, bias);
    if (norms) add_norm(tensors, "self_attn.q_a_layernorm", attention.query_rank, false);
    add_columns(tensors, "self_attn.q_b_proj", attention.query_rank, queries, false);
  } else {
    add_columns(tensors, "self_attn.q_proj", hidden, queries, false);
  }
  add_whole(tensors, "self_attn.kv_a_proj_with_mqa", hidden, attention.kv_rank + attention.rope_size, bias);
  if (norms) add_norm(tensors, "self_attn.kv_a_layernorm", attention.kv_rank, false);
  add_columns(tensors, "self_attn.kv_b_proj", attention.kv_rank, attention.heads * (unrotated + attention.value_size),
              false);
  add_rows(tensors, "self_attn.o_proj", attention.heads * attention.value_size, hidden, bias);
}

}  // namespace weft
