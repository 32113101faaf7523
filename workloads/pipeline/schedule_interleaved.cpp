// SPDX-License-Identifier: GPL-2.0-only
// Interleaved 1F1B (Narayanan et al., arXiv:2104.04473, section 2.2) in Megatron-LM's order
// (megatron/core/pipeline_parallel/schedules.py): each rank has v chunks of the model, p stages apart, and takes groups
// of p micro-batches through one chunk after another.
#include <algorithm>

#include <fmt/format.h>

#include "workloads/pipeline/interleaved_slots.hpp"

namespace weft {
namespace {

class Interleaved : public InterleavedChunks {
 public:
  std::string refuses(const PipelineShape& shape) const override {
    if (shape.virtual_stages < 2)
      return fmt::format("{} virtual stage: it needs at least 2 on each rank; '1f1b' has 1", shape.virtual_stages);
    return refuses_groups(shape);
  }
  std::unique_ptr<SlotStream> slots(const PipelineShape& shape, std::uint32_t rank) const override {
    return std::make_unique<InterleavedSlots>(shape, passes_ahead(shape, rank), false);
  }
  // With Korthikanti et al. (arXiv:2205.05198, 4.2.3): on rank 0 1 + (p - 1) / (p v) models.
  std::optional<double> idle_time(const PipelineShape& shape, const PipelineTimes& times) const override {
    return (shape.ranks - 1) * (times.forward + times.backward) / shape.virtual_stages;
  }
  std::uint32_t peak_activations(const PipelineShape& shape, std::uint32_t rank) const override {
    return static_cast<std::uint32_t>(std::min(passes_of_rank(shape), passes_ahead(shape, rank) + 1));
  }
};

const Registration<PipelineSchedule, Interleaved> schedule_interleaved_registration(
    "interleaved", "1F1B over several model chunks of each rank, in Megatron-LM's order");

}  // namespace
}  // namespace weft
