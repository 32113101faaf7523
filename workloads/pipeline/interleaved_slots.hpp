// SPDX-License-Identifier: GPL-2.0-only
// Slots of ranks with several model chunks each, p stages apart, in the order of Megatron-LM
// (megatron/core/pipeline_parallel/schedules.py): groups of p micro-batches go through one chunk after another.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include <fmt/format.h>

#include "workloads/pipeline/pipeline_schedule.hpp"

namespace weft {

inline std::uint64_t passes_of_rank(const PipelineShape& shape) {
  return std::uint64_t{shape.micro_batches} * shape.virtual_stages;
}

/// Forward passes done ahead of the first backward pass: (p - r - 1) * 2 + (v - 1) * p.
inline std::uint64_t passes_ahead(const PipelineShape& shape, std::uint32_t rank) {
  const std::uint64_t ahead =
      (shape.ranks - 1 - rank) * std::uint64_t{2} + std::uint64_t{shape.virtual_stages - 1} * shape.ranks;
  return std::min(passes_of_rank(shape), ahead);
}

inline std::string refuses_groups(const PipelineShape& shape) {
  if (shape.micro_batches % shape.ranks == 0) return {};
  return fmt::format("{} micro-batches are no multiple of {} ranks, in groups of which they are taken",
                     shape.micro_batches, shape.ranks);
}

/// The chunks of a rank are p stages apart.
class InterleavedChunks : public PipelineSchedule {
 public:
  std::uint32_t chunks(const PipelineShape& shape) const override { return shape.virtual_stages; }
  std::uint32_t stages(const PipelineShape& shape) const override { return shape.ranks * shape.virtual_stages; }
  std::uint32_t stage_of(const PipelineShape& shape, std::uint32_t rank, std::uint32_t chunk) const override {
    return chunk * shape.ranks + rank;
  }
  Place place_of(const PipelineShape& shape, std::uint32_t stage, std::uint32_t) const override {
    return {stage % shape.ranks, stage / shape.ranks};
  }
};

/// `ahead` forward passes, then a forward and a backward pass in turn, or `paired`: at the same time.
class InterleavedSlots : public SlotStream {
 public:
  InterleavedSlots(const PipelineShape& shape, std::uint64_t ahead, bool paired)
      : shape_(shape), all_(passes_of_rank(shape)), ahead_(ahead), paired_(paired) {}

  bool next(PipelineSlot& slot) override {
    if (backwards_ == all_) return false;
    const bool forward = forwards_ < all_ && forwards_ <= backwards_ + ahead_;
    const bool first = forward && forwards_ >= ahead_;  // of a pair
    const std::uint64_t number = forward ? forwards_++ : backwards_++;
    const std::uint64_t group = std::uint64_t{shape_.ranks} * shape_.virtual_stages;
    slot = {};
    slot.pass = forward ? PipelineSlot::Pass::forward : PipelineSlot::Pass::backward;
    slot.chunk = static_cast<std::uint32_t>(number % group / shape_.ranks);
    if (!forward) slot.chunk = shape_.virtual_stages - 1 - slot.chunk;
    slot.micro_batch = static_cast<std::uint32_t>(number / group * shape_.ranks + number % shape_.ranks);
    slot.with_next = paired_ && first;
    return true;
  }

 private:
  PipelineShape shape_;
  std::uint64_t all_;
  std::uint64_t ahead_;
  bool paired_;
  std::uint64_t forwards_ = 0;
  std::uint64_t backwards_ = 0;
};

}  // namespace weft
