// SPDX-License-Identifier: GPL-2.0-only
// ZBV (Qi et al., arXiv:2401.10241, section 6, and arXiv:2405.15362): two chunks on each rank, the stages going down
// the ranks and up again, and backward passes split in two. For equal times of forward pass, input gradient and weight
// gradient no rank is idle between its first and its last slot.
#include <algorithm>

#include <fmt/format.h>

#include "workloads/pipeline/slot_phases.hpp"

namespace weft {
namespace {

class Zbv : public PipelineSchedule {
 public:
  std::string refuses(const PipelineShape& shape) const override {
    if (shape.virtual_stages <= 2) return {};
    return fmt::format("{} virtual stages: it has 2 on each rank", shape.virtual_stages);
  }
  std::uint32_t chunks(const PipelineShape&) const override { return 2; }
  std::uint32_t stages(const PipelineShape& shape) const override { return 2 * shape.ranks; }
  std::uint32_t stage_of(const PipelineShape& shape, std::uint32_t rank, std::uint32_t chunk) const override {
    return chunk == 0 ? rank : 2 * shape.ranks - 1 - rank;
  }
  Place place_of(const PipelineShape& shape, std::uint32_t stage, std::uint32_t) const override {
    return stage < shape.ranks ? Place{stage, 0} : Place{2 * shape.ranks - 1 - stage, 1};
  }
  std::unique_ptr<SlotStream> slots(const PipelineShape& shape, std::uint32_t rank) const override {
    // The schedule has all its phases from 2p - 1 micro-batches on; with fewer, the others' slots are left out.
    const std::uint32_t m = std::max(shape.micro_batches, 2 * shape.ranks - 1);
    return std::make_unique<PhasedSlots>(phases(shape.ranks, m, rank),
                                         MicroBatchNumbers{{}, shape.micro_batches, false});
  }
  /// For F = I = W only; there is no closed form for other times.
  std::optional<double> idle_time(const PipelineShape&, const PipelineTimes&) const override { return std::nullopt; }
  std::uint32_t peak_activations(const PipelineShape& shape, std::uint32_t rank) const override {
    return count_activations(*this, shape, rank);
  }

 private:
  static std::vector<SlotPhase> phases(std::uint32_t p, std::uint32_t m, std::uint32_t r) {
    using Pass = PipelineSlot::Pass;
    const PhaseStep f0{Pass::forward, 0};
    const PhaseStep f1{Pass::forward, 1};
    const PhaseStep i0{Pass::input_gradient, 0};
    const PhaseStep i1{Pass::input_gradient, 1};
    const PhaseStep w0{Pass::weight_gradient, 0};
    const PhaseStep w1{Pass::weight_gradient, 1};
    const std::uint32_t down = 2 * (p - r) - 1;  // until the first micro-batch returns on its way up
    const std::uint32_t left = m - down - r;     // first passes of chunk 0 that remain for the steady state
    const std::uint32_t steady = m - p;          // second passes of chunk 1 that remain for it and the phases after it
    return {{down, {f0}},
            {r, {f1, f0}},
            {p - r, {f1, i1, w1}},
            {left, {f0, i0, w0, f1, i1, w1}},
            {steady - left, {i0, w0, f1, i1, w1}},
            {r, {i0, i1}},
            {p - r, {i0, w0}},
            {r, {w1}},
            {r, {w0}}};
  }
};

const Registration<PipelineSchedule, Zbv> schedule_zbv_registration(
    "zbv", "zero bubble V: two chunks per rank, down the ranks and up again, weight gradients put off");

}  // namespace
}  // namespace weft
