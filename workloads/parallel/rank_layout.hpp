// SPDX-License-Identifier: GPL-2.0-only
// Which ranks form which communicator of a training job.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "schedule/collective/communicator.hpp"
#include "workloads/parallel/training_description.hpp"

namespace weft {

/// Kinds of communicators. Every rank is in one group of each kind (of `embedding`: only those at the pipeline's ends).
enum class GroupKind : std::uint8_t {
  tensor,         ///< shares the matrices of a block
  context,        ///< shares the sequence
  data,           ///< has the same parameters: data- and context-parallel ranks, whose gradients are summed
  expert,         ///< shares out the experts
  expert_tensor,  ///< shares the matrices of one expert
  expert_data,    ///< has the same experts
  shard,          ///< part of `data` that keeps one copy of the parameters together (HSDP); else all of it
  replica,        ///< the ranks of different `shard` groups with the same part
  model,          ///< tensor and pipeline ranks: one copy of the model
  pipeline,       ///< one rank of each pipeline stage
  embedding,      ///< the first rank of a pipeline, and the one with a copy of the embedding, if any; else the last
  mirror,         ///< the two ranks of a pipeline with the same two stages, one from each end (DualPipe)
  world,
  expert_server,   ///< ranks of `expert` in one server
  expert_rail,     ///< the ranks of `expert` with the same place in their servers
  stage,           ///< tensor, context and data ranks of a pipeline rank
  tensor_context,  ///< the tensor and context ranks of one of its copies
  tensor_overlap,  ///< the ranks of `tensor`, for calls beside GEMMs that do not go through NCCL (TensorOverlap)
};
constexpr std::size_t group_kind_count = 18;
std::string_view to_text(GroupKind kind);

/// Position of a rank along each dimension.
struct RankPlace {
  std::uint32_t tensor = 0;
  std::uint32_t context = 0;
  std::uint32_t data = 0;
  std::uint32_t pipeline = 0;
};

/// Ranks are numbered along the dimensions of ParallelPlan::order, the first one fastest. The dense parts of the model
/// see tensor, context, data and pipeline ranks; its experts see expert-tensor, expert, expert-data and pipeline ranks,
/// with the place of `dp` in the order for expert-data, and no context dimension (Megatron-LM,
/// megatron/core/parallel_state.py, RankGenerator). All functions are O(number of dimensions), or O(members) where they
/// list ranks.
class RankLayout {
 public:
  /// A settled plan (settle_description).
  explicit RankLayout(const ParallelPlan& plan);

  std::uint32_t world() const { return world_; }
  RankPlace place(Rank rank) const;
  Rank rank(const RankPlace& place) const;

  /// Groups of a kind, and ranks in each.
  std::uint32_t groups(GroupKind kind) const;
  std::uint32_t size(GroupKind kind) const;
  /// The group of a rank. Groups of one pipeline rank have consecutive numbers, those of the first one the lowest,
  /// unless the kind spans pipeline ranks.
  std::uint32_t group_of(GroupKind kind, Rank rank) const;
  /// Position of a rank in its group.
  std::uint32_t index_of(GroupKind kind, Rank rank) const;
  Rank member(GroupKind kind, std::uint32_t group, std::uint32_t index) const;
  /// The communicator of a group; all kinds' groups have different ids, from 0.
  Communicator communicator(GroupKind kind, std::uint32_t group) const;
  std::uint32_t communicator_id(GroupKind kind, std::uint32_t group) const;
  /// The kind spans pipeline ranks.
  static bool spans_pipeline(GroupKind kind);

 private:
  enum Dimension : std::uint8_t { tensor_dim, context_dim, expert_dim, data_dim, pipeline_dim };
  /// Ranks as digits of mixed radix, the fastest first.
  struct Grid {
    std::vector<Dimension> dimensions;
    std::array<std::uint32_t, 5> sizes{1, 1, 1, 1, 1};
    std::array<std::uint32_t, 5> strides{};
  };
  struct Span {
    const Grid* grid;
    std::array<bool, 5> varies{};
  };
  static Grid make_grid(const std::string& order, const std::array<std::uint32_t, 5>& sizes, Dimension left_out);
  Span span(GroupKind kind) const;
  std::uint32_t digit(const Grid& grid, Dimension dimension, Rank rank) const;
  std::uint32_t whole_index(const Span& span, Rank rank) const;
  std::uint32_t whole_group(const Span& span, Rank rank) const;
  std::uint32_t whole_size(const Span& span) const;
  Rank whole_member(const Span& span, std::uint32_t group, std::uint32_t index) const;

  std::uint32_t world_ = 1;
  std::uint32_t shard_ = 1;
  std::uint32_t server_ = 1;  // expert ranks in one
  std::uint32_t pipeline_ = 1;
  std::uint32_t embedding_copy_ = 0;  // pipeline rank
  Grid dense_, experts_;
};

}  // namespace weft
