// SPDX-License-Identifier: GPL-2.0-only
// The core of attention, softmax(Q K^T) V, and how context parallelism shares out its sequence.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "workloads/pass/pass_builder.hpp"

namespace weft {

class AttentionCore : protected PassBuilder {
 public:
  explicit AttentionCore(const PassSetup& setup) : PassBuilder(setup) {}

  /// With the exchanges among context ranks.
  void add_core(std::vector<Segment>& to, const AttentionShape& a, bool backward) const;
  /// Forward once more, with what lies between the core and the GEMM behind it, since that GEMM's input is not kept
  /// either.
  void core_again(const AttentionShape& a, std::vector<Segment>& to) const;
  /// `scores`: elements of Q K^T that small kernels work on; 0 where a fused kernel keeps them.
  KernelUnits units_of(const AttentionShape& a, std::int64_t scores = 0) const;

 protected:
  // Of one tensor rank.
  std::int64_t kv_heads(const AttentionShape& a) const { return share_of(a.kv_heads, t_); }
  std::int64_t heads(const AttentionShape& a) const { return share_of(a.heads, t_); }

 private:
  /// Queries and keys of a fused kernel: of each head, heads of both, and whether a causal mask hides half of the
  /// scores.
  struct Extent {
    std::int64_t rows, columns, heads, kv_heads;
    bool causal;
  };
  Kernel fused(const AttentionShape& a, const Extent& extent, bool backward) const;
  Segment core(const AttentionShape& a, std::string_view what, bool backward) const;

  std::int64_t exchanged_heads(const AttentionShape& a) const;
  Bytes kv_bytes(const AttentionShape& a) const;
  Segment context_collective(std::string_view what, CollectiveKind kind, Bytes size) const;
  void exchange_heads(std::vector<Segment>& to, const AttentionShape& a, bool inputs) const;
  Segment gathered_block(const AttentionShape& a, bool first, bool backward) const;
  void gathered_ring(std::vector<Segment>& to, const AttentionShape& a, bool backward) const;
  bool has_blocks() const;
  Segment rotation(std::string_view what, Bytes size, bool beside) const;
  void ring_forward(std::vector<Segment>& to, const AttentionShape& a) const;
  void ring_backward(std::vector<Segment>& to, const AttentionShape& a) const;
};

}  // namespace weft
