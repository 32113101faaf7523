// SPDX-License-Identifier: GPL-2.0-only
// DualPipe (DeepSeek-V3, arXiv:2412.19437, 3.2.1; steps as in github.com/deepseek-ai/DualPipe): two copies of the model
// in opposite directions, the first half of the micro-batches down the ranks, the second half up. Forward passes of one
// direction are worked on together with backward passes of the other.
#include <algorithm>

#include <fmt/format.h>

#include "workloads/pipeline/slot_phases.hpp"

namespace weft {
namespace {

class DualPipe : public PipelineSchedule {
 public:
  std::string refuses(const PipelineShape& shape) const override {
    if (shape.virtual_stages != 1)
      return fmt::format("{} virtual stages: it has 1 per direction on each rank", shape.virtual_stages);
    if (shape.ranks % 2 != 0) return fmt::format("{} ranks: their number is even", shape.ranks);
    if (shape.micro_batches % 2 != 0)
      return fmt::format("{} micro-batches: their number is even, half of them go each way", shape.micro_batches);
    if (shape.micro_batches >= 2 * shape.ranks) return {};
    return fmt::format("{} micro-batches: {} ranks need at least {}", shape.micro_batches, shape.ranks,
                       2 * shape.ranks);
  }
  std::uint32_t chunks(const PipelineShape&) const override { return 2; }
  std::uint32_t stages(const PipelineShape& shape) const override { return shape.ranks; }
  std::uint32_t stage_of(const PipelineShape& shape, std::uint32_t rank, std::uint32_t chunk) const override {
    return chunk == 0 ? rank : shape.ranks - 1 - rank;
  }
  Place place_of(const PipelineShape& shape, std::uint32_t stage, std::uint32_t micro_batch) const override {
    return micro_batch < shape.micro_batches / 2 ? Place{stage, 0} : Place{shape.ranks - 1 - stage, 1};
  }
  std::unique_ptr<SlotStream> slots(const PipelineShape& shape, std::uint32_t rank) const override {
    const std::uint32_t half = shape.micro_batches / 2;
    return std::make_unique<PhasedSlots>(phases(shape.ranks, half, rank), MicroBatchNumbers{{0, half}, half, false});
  }
  /// F&B is F + B here: nothing of a pair's computation runs at the same time.
  std::optional<double> idle_time(const PipelineShape& shape, const PipelineTimes& times) const override {
    if (times.weight_gradient > times.input_gradient || times.input_gradient > times.forward) return std::nullopt;
    return (shape.ranks / 2.0 - 1) * (2 * times.forward + times.backward - 2 * times.weight_gradient);
  }
  std::uint32_t peak_activations(const PipelineShape& shape, std::uint32_t rank) const override {
    return count_activations(*this, shape, rank);
  }

 private:
  static std::vector<SlotPhase> phases(std::uint32_t p, std::uint32_t half, std::uint32_t rank) {
    using Pass = PipelineSlot::Pass;
    const std::uint32_t inward = std::min(rank, p - 1 - rank);  // from the nearer end of the pipeline
    const std::uint32_t outside = p / 2 - 1 - inward;           // from the middle
    const std::uint32_t near = rank < p / 2 ? 0 : 1;            // direction that enters at the nearer end
    const std::uint32_t far = 1 - near;
    const auto together = [](std::uint32_t forward, std::uint32_t backward) {
      return std::vector<PhaseStep>{{Pass::forward, forward, true}, {Pass::backward, backward}};
    };
    const auto joined = [](std::vector<PhaseStep> one, const std::vector<PhaseStep>& other) {
      one.insert(one.end(), other.begin(), other.end());
      return one;
    };
    const PhaseStep weight{Pass::weight_gradient, PhasedSlots::oldest};
    const std::uint32_t main = half + inward + 1 - p;
    // The middle ranks do not begin the main phase with a pair: their backward pass waits for their forward pass less.
    const std::uint32_t apart = outside == 0 ? 1 : 0;
    const auto last = [&](Pass first_pass, Pass second_pass) {
      return std::vector<PhaseStep>{{first_pass, far}, {second_pass, near}};
    };
    const std::uint32_t ends = inward + 1;  // of 2 * ends backward passes the second half is split
    return {{2 * outside, {{Pass::forward, near}}},
            {ends, {{Pass::forward, near}, {Pass::forward, far}}},
            {outside, {{Pass::input_gradient, far}, weight, {Pass::forward, far}}},
            {apart, joined({{Pass::forward, near}, {Pass::backward, far}}, together(far, near))},
            {main - apart, joined(together(near, far), together(far, near))},
            {outside, joined({{Pass::backward, far}}, together(far, near))},
            {ends / 2, last(Pass::backward, Pass::backward)},
            {ends % 2, last(Pass::backward, Pass::input_gradient)},
            {ends / 2, last(Pass::input_gradient, Pass::input_gradient)},
            {outside, {weight, {Pass::input_gradient, near}}},
            {ends, {weight}}};
  }
};

const Registration<PipelineSchedule, DualPipe> schedule_dualpipe_registration(
    "dualpipe", "DeepSeek-V3's: both directions at once, forward and backward passes overlapped in pairs");

}  // namespace
}  // namespace weft
