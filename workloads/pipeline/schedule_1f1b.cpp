// SPDX-License-Identifier: GPL-2.0-only
// One forward, one backward: PipeDream-Flush (Narayanan et al., arXiv:2006.09503, figure 2), Megatron-LM's default.
#include <algorithm>

#include "workloads/pipeline/one_chunk_schedule.hpp"
#include "workloads/pipeline/slot_phases.hpp"

namespace weft {
namespace {

class OneForwardOneBackward : public OneChunkSchedule {
 public:
  std::unique_ptr<SlotStream> slots(const PipelineShape& shape, std::uint32_t rank) const override {
    const std::uint32_t m = shape.micro_batches;
    const std::uint32_t ahead = std::min(m, shape.ranks - 1 - rank);  // until the first backward pass
    const PhaseStep forward{PipelineSlot::Pass::forward};
    const PhaseStep backward{PipelineSlot::Pass::backward};
    return std::make_unique<PhasedSlots>(
        std::vector<SlotPhase>{{ahead, {forward}}, {m - ahead, {forward, backward}}, {ahead, {backward}}},
        MicroBatchNumbers{{}, m, false});
  }
  std::optional<double> idle_time(const PipelineShape& shape, const PipelineTimes& times) const override {
    return (shape.ranks - 1) * (times.forward + times.backward);
  }
  std::uint32_t peak_activations(const PipelineShape& shape, std::uint32_t rank) const override {
    return std::min(shape.micro_batches, shape.ranks - rank);
  }
};

const Registration<PipelineSchedule, OneForwardOneBackward> schedule_1f1b_registration(
    "1f1b", "one forward, one backward in turn");

}  // namespace
}  // namespace weft
