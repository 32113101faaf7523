// SPDX-License-Identifier: GPL-2.0-only
// ZB-H1 (Qi et al., arXiv:2401.10241, section 2.1): 1F1B with backward passes split in two. Rank r keeps r weight
// gradients back, so that all ranks hold as much as the first does in 1F1B, and fills the idle time at the end with
// them.
#include <algorithm>

#include "workloads/pipeline/one_chunk_schedule.hpp"
#include "workloads/pipeline/slot_phases.hpp"

namespace weft {
namespace {

class ZbH1 : public OneChunkSchedule {
 public:
  std::unique_ptr<SlotStream> slots(const PipelineShape& shape, std::uint32_t rank) const override {
    const std::uint32_t m = shape.micro_batches;
    const std::uint32_t ahead = std::min(m, shape.ranks - 1 - rank);
    const std::uint32_t kept = std::min(m - ahead, rank);
    const PhaseStep forward{PipelineSlot::Pass::forward};
    const PhaseStep input{PipelineSlot::Pass::input_gradient};
    const PhaseStep weight{PipelineSlot::Pass::weight_gradient};
    return std::make_unique<PhasedSlots>(std::vector<SlotPhase>{{ahead, {forward}},
                                                                {kept, {forward, input}},
                                                                {m - ahead - kept, {forward, input, weight}},
                                                                {ahead, {input, weight}},
                                                                {kept, {weight}}},
                                         MicroBatchNumbers{{}, m, false});
  }
  // Before the n-th weight gradient of rank r, n + r + (p - r - 1) forward passes have begun.
  std::optional<double> idle_time(const PipelineShape& shape, const PipelineTimes& times) const override {
    const double hidden = std::min({times.weight_gradient, times.forward, times.input_gradient});
    return (shape.ranks - 1) * (times.forward + times.input_gradient - hidden);
  }
  std::uint32_t peak_activations(const PipelineShape& shape, std::uint32_t) const override {
    return std::min(shape.micro_batches, shape.ranks);
  }
};

const Registration<PipelineSchedule, ZbH1> schedule_zb_h1_registration(
    "zb_h1", "zero bubble H1: 1F1B with weight gradients put off, as much memory as 1F1B");

}  // namespace
}  // namespace weft
