// SPDX-License-Identifier: GPL-2.0-only
// The MLP of a block: two GEMMs with an activation between them.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "workloads/pass/pass_builder.hpp"

namespace weft {

/// GEMMs of an MLP or of a rank's experts.
struct FeedForward {
  Gemm up, down;
  bool gated;  ///< `up` makes two factors
};

class MlpPasses : protected PassBuilder {
 public:
  /// Not `in_buffers`: calls of tensor ranks do not overlap with GEMMs in parts, whatever the job says.
  explicit MlpPasses(const PassSetup& setup, bool in_buffers = true) : PassBuilder(setup), in_buffers_(in_buffers) {}

  /// Of all tokens of a rank; `inner`: width of the hidden layer, of all tensor ranks.
  FeedForward shape(std::int64_t inner, bool gated) const { return feed_forward(tokens_, inner, gated, t_); }
  /// `needed_only`: what a backward pass needs, which the last GEMM's result is not.
  void forward(const FeedForward& mlp, std::string_view what, std::vector<Segment>& to, bool needed_only = false) const;
  /// `inputs_too`, `weights_too`: gradients of inputs, of weights.
  void backward(const FeedForward& mlp, std::vector<Segment>& to, bool inputs_too, bool weights_too) const;
  /// What is computed again where every second GEMM and all small kernels are (block_passes.cpp).
  void operators_again(const FeedForward& mlp, std::vector<Segment>& to) const;

 protected:
  /// `count` of them, each over `rows` tokens, whose hidden layers `ranks` share.
  FeedForward feed_forward(std::int64_t rows, std::int64_t inner, bool gated, std::int64_t ranks,
                           std::int64_t count = 1) const;
  KernelUnits units_of(const FeedForward& mlp) const;

 private:
  bool cuts(OverlappedGemm gemm) const { return in_buffers_ && overlaps(gemm); }
  bool in_buffers_;
};

}  // namespace weft
