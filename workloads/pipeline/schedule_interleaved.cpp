// SPDX-License-Identifier: GPL-2.0-only
// Interleaved 1F1B (Narayanan et al., arXiv:2104.04473, section 2.2) in Megatron-LM's order
// (megatron/core/pipeline_parallel/schedules.py): each rank has v chunks of the model, p stages apart, and takes groups
// of p micro-batches through one chunk after another.
#include <algorithm>

#include <fmt/format.h>

#include "workloads/pipeline/pipeline_schedule.hpp"

namespace weft {
namespace {

/// Forward passes done ahead of the first backward pass: (p - r - 1) * 2 + (v - 1) * p.
std::uint64_t passes_ahead(const PipelineShape& shape, std::uint32_t rank) {
  const std::uint64_t all = std::uint64_t{shape.micro_batches} * shape.virtual_stages;
  const std::uint64_t ahead =
      (shape.ranks - 1 - rank) * std::uint64_t{2} + std::uint64_t{shape.virtual_stages - 1} * shape.ranks;
  return std::min(all, ahead);
}

class InterleavedSlots : public SlotStream {
 public:
  InterleavedSlots(const PipelineShape& shape, std::uint32_t rank)
      : shape_(shape),
        all_(std::uint64_t{shape.micro_batches} * shape.virtual_stages),
        ahead_(passes_ahead(shape, rank)) {}

  bool next(PipelineSlot& slot) override {
    if (backwards_ == all_) return false;
    const bool forward = forwards_ < all_ && forwards_ <= backwards_ + ahead_;
    const std::uint64_t number = forward ? forwards_++ : backwards_++;
    const std::uint64_t group = std::uint64_t{shape_.ranks} * shape_.virtual_stages;
    slot = {};
    slot.pass = forward ? PipelineSlot::Pass::forward : PipelineSlot::Pass::backward;
    slot.chunk = static_cast<std::uint32_t>(number % group / shape_.ranks);
    if (!forward) slot.chunk = shape_.virtual_stages - 1 - slot.chunk;
    slot.micro_batch = static_cast<std::uint32_t>(number / group * shape_.ranks + number % shape_.ranks);
    return true;
  }

 private:
  PipelineShape shape_;
  std::uint64_t all_;
  std::uint64_t ahead_;
  std::uint64_t forwards_ = 0;
  std::uint64_t backwards_ = 0;
};

class Interleaved : public PipelineSchedule {
 public:
  std::string refuses(const PipelineShape& shape) const override {
    if (shape.virtual_stages < 2)
      return fmt::format("{} virtual stage: it needs at least 2 on each rank; '1f1b' has 1", shape.virtual_stages);
    if (shape.micro_batches % shape.ranks == 0) return {};
    return fmt::format("{} micro-batches are no multiple of {} ranks, in groups of which they are taken",
                       shape.micro_batches, shape.ranks);
  }
  std::uint32_t chunks(const PipelineShape& shape) const override { return shape.virtual_stages; }
  std::uint32_t stages(const PipelineShape& shape) const override { return shape.ranks * shape.virtual_stages; }
  std::uint32_t stage_of(const PipelineShape& shape, std::uint32_t rank, std::uint32_t chunk) const override {
    return chunk * shape.ranks + rank;
  }
  Place place_of(const PipelineShape& shape, std::uint32_t stage, std::uint32_t) const override {
    return {stage % shape.ranks, stage / shape.ranks};
  }
  std::unique_ptr<SlotStream> slots(const PipelineShape& shape, std::uint32_t rank) const override {
    return std::make_unique<InterleavedSlots>(shape, rank);
  }
  // With Korthikanti et al. (arXiv:2205.05198, 4.2.3): on rank 0 1 + (p - 1) / (p v) models.
  std::optional<double> idle_time(const PipelineShape& shape, const PipelineTimes& times) const override {
    return (shape.ranks - 1) * (times.forward + times.backward) / shape.virtual_stages;
  }
  std::uint32_t peak_activations(const PipelineShape& shape, std::uint32_t rank) const override {
    const std::uint64_t all = std::uint64_t{shape.micro_batches} * shape.virtual_stages;
    return static_cast<std::uint32_t>(std::min(all, passes_ahead(shape, rank) + 1));
  }
};

const Registration<PipelineSchedule, Interleaved> schedule_interleaved_registration(
    "interleaved", "1F1B over several model chunks of each rank, in Megatron-LM's order");

}  // namespace
}  // namespace weft
