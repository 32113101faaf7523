// SPDX-License-Identifier: GPL-2.0-only
// GPipe (Huang et al., arXiv:1811.06965, figure 2c): all forward passes, then all backward passes, the last micro-batch
// first.
#include "workloads/pipeline/one_chunk_schedule.hpp"
#include "workloads/pipeline/slot_phases.hpp"

namespace weft {
namespace {

class Gpipe : public OneChunkSchedule {
 public:
  std::unique_ptr<SlotStream> slots(const PipelineShape& shape, std::uint32_t) const override {
    const std::uint32_t m = shape.micro_batches;
    return std::make_unique<PhasedSlots>(
        std::vector<SlotPhase>{{m, {{PipelineSlot::Pass::forward}}}, {m, {{PipelineSlot::Pass::backward}}}},
        MicroBatchNumbers{{}, m, true});
  }
  std::optional<double> idle_time(const PipelineShape& shape, const PipelineTimes& times) const override {
    return (shape.ranks - 1) * (times.forward + times.backward);
  }
  std::uint32_t peak_activations(const PipelineShape& shape, std::uint32_t) const override {
    return shape.micro_batches;
  }
};

const Registration<PipelineSchedule, Gpipe> schedule_gpipe_registration("gpipe",
                                                                        "all forward passes, then all backward passes");

}  // namespace
}  // namespace weft
