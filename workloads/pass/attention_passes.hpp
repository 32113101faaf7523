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
  /// What is computed again where every second GEMM and all small kernels are (block_passes.cpp).
  void operators_again(const AttentionShape& a, std::vector<Segment>& to) const;

 private:
  std::vector<Gemm> inputs(const AttentionShape& a) const;
};

}  // namespace weft
