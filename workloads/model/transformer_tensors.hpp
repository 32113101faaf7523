// SPDX-License-Identifier: GPL-2.0-only
// Code shared by the families of transformers: how fields become shapes, and which tensors their parts have.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workloads/model/model_config.hpp"

namespace weft {

/// The weight (in x out) of a GEMM whose result is cut over the tensor-parallel ranks, and its bias, cut with it
/// (Megatron's ColumnParallelLinear; Shoeybi et al., arXiv:1909.08053, 3).
void add_columns(std::vector<Tensor>& tensors, const std::string& name, std::int64_t in, std::int64_t out, bool bias);
/// The same of a GEMM that is cut along its inner dimension (RowParallelLinear): the results are summed before the
/// bias comes, so that each rank has all of it.
void add_rows(std::vector<Tensor>& tensors, const std::string& name, std::int64_t in, std::int64_t out, bool bias);
/// The same of a GEMM that every rank computes alone.
void add_whole(std::vector<Tensor>& tensors, const std::string& name, std::int64_t in, std::int64_t out, bool bias);
/// Scale and shift of a layer norm; RMS norms have no shift.
void add_norm(std::vector<Tensor>& tensors, const std::string& name, std::int64_t size, bool shift);
/// Matrices of `experts` experts (in x out each) as one tensor.
void add_experts(std::vector<Tensor>& tensors, const std::string& name, std::int64_t experts, std::int64_t in,
                 std::int64_t out);

/// Biases of the GEMMs of a block, and norms of the queries and keys of each head.
struct BlockOptions {
  bool query_bias = false;  ///< queries, keys and values
  bool output_bias = false;
  bool mlp_bias = false;
  bool head_norms = false;
};

/// hidden_size, vocab_size, max_position_embeddings and tie_word_embeddings, with embedding and head (an RMS norm and
/// the logits) of models like Llama. Blocks are to follow.
ModelConfig read_llama_frame(const JsonConfig& config, bool tied_unless_said);
/// The same fields of models with learned positions; tied unless said. Embedding and head are to follow.
ModelConfig read_learned_frame(const JsonConfig& config);
/// num_attention_heads, num_key_value_heads and head_dim.
AttentionShape read_grouped_attention(const JsonConfig& config, std::int64_t hidden);
/// A block like Llama's with a dense gated MLP of intermediate_size.
BlockShape read_llama_block(const JsonConfig& config, std::int64_t hidden, const BlockOptions& options);

void add_grouped_attention(std::vector<Tensor>& tensors, std::int64_t hidden, const AttentionShape& attention,
                           const BlockOptions& options);
/// gate, up and down projection.
void add_gated_mlp(std::vector<Tensor>& tensors, const std::string& name, std::int64_t hidden, std::int64_t inner,
                   bool bias);
/// Router and gated experts of block.mlp, without the shared ones.
void add_gated_experts(std::vector<Tensor>& tensors, const std::string& name, std::int64_t hidden, const MlpShape& mlp);
/// The two norms of a block, registered behind its GEMMs.
void add_block_norms(std::vector<Tensor>& tensors, std::int64_t hidden);

/// Number of blocks, at most 65,536.
std::int64_t read_layers(const JsonConfig& config, const std::string& key);
/// Checks the experts of a mixture as the file gives them: `per_token` of `experts` with inner width `inner`.
void read_experts(const JsonConfig& config, MlpShape& mlp, const std::string& experts, const std::string& per_token,
                  const std::string& inner);
/// Throws InputError at `key` if `factor` * `size` is wider than 2^24.
void require_width(const JsonConfig& config, const std::string& key, std::int64_t factor, std::int64_t size);
/// sliding_window where it is in use: 0 if it is absent or not below the model's positions.
std::int64_t read_window(const JsonConfig& config, bool used);

}  // namespace weft
