// SPDX-License-Identifier: GPL-2.0-only
// Attention of a block: norm, GEMMs for queries, keys and values, the core, the GEMM behind it, and the residual.
#pragma once

#include <vector>

#include "workloads/pass/attention_core.hpp"

namespace weft {

class AttentionPasses : public AttentionCore {
 public:
  explicit AttentionPasses(const PassSetup& setup) : AttentionCore(setup) {}

  void forward(const AttentionShape& a, std::vector<Segment>& to) const;
  /// Backward through a row-parallel GEMM, the core, and a column-parallel GEMM: what comes in is gathered, the
  /// gradient of the input is summed beside the GEMMs for the gradients of weights. `inputs_too`, `weights_too`:
  /// gradients of inputs, of weights.
  void backward(const AttentionShape& a, std::vector<Segment>& to, bool inputs_too, bool weights_too) const;
  /// Gathers compressed vectors for queries, keys and values, where they are gathered.
  void gather_compressed(const AttentionShape& a, std::vector<Segment>& to) const;
  /// What is computed again where every second GEMM and all small kernels are (block_passes.cpp).
  void operators_again(const AttentionShape& a, std::vector<Segment>& to) const;

 private:
  std::vector<Gemm> inputs(const AttentionShape& a) const;
  /// Of latent attention: hidden vectors become compressed ones, whole on each rank or of its part of the sequence,
  /// from which queries, keys and values are made, by heads.
  std::vector<Gemm> compressions(const AttentionShape& a) const;
  /// Compressed vectors are gathered, and their gradients summed, instead of hidden ones (Megatron-LM,
  /// megatron/core/transformer/multi_latent_attention.py, get_query_key_value_tensors).
  bool gathers_compressed(const AttentionShape& a) const { return a.latent() && t_ > 1; }
  /// Their widths: of queries (hidden ones if they are not compressed), and of keys and values.
  std::int64_t query_width(const AttentionShape& a) const { return a.query_rank > 0 ? a.query_rank : h_; }
};

}  // namespace weft
