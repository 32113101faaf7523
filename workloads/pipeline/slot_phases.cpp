// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/pipeline/slot_phases.hpp"

#include <algorithm>

#include "support/basics/contract.hpp"

namespace weft {

const PhaseStep* PhasedSlots::advance() {
  while (phase_ < phases_.size()) {
    const SlotPhase& phase = phases_[phase_];
    if (time_ < phase.times && step_ < phase.steps.size()) return &phase.steps[step_++];
    step_ = 0;
    if (++time_ < phase.times) continue;
    time_ = 0;
    ++phase_;
  }
  return nullptr;
}

std::pair<std::uint32_t, std::uint32_t> PhasedSlots::due_weight_gradient(std::uint32_t chunk) {
  const auto due =
      std::find_if(due_.begin(), due_.end(), [&](const auto& one) { return chunk == oldest || one.first == chunk; });
  WEFT_EXPECT(due != due_.end(), "a weight gradient before its input gradient, chunk {}", chunk);
  const auto result = *due;
  due_.erase(due);
  return result;
}

PipelineSlot PhasedSlots::number(const PhaseStep& step) {
  using Pass = PipelineSlot::Pass;
  if (step.pass == Pass::weight_gradient) {
    const auto [chunk, number] = due_weight_gradient(step.chunk);
    return {step.pass, chunk, number, step.with_next};
  }
  if (step.pass == Pass::forward) return {step.pass, step.chunk, forwards_[step.chunk]++, step.with_next};
  std::uint32_t number = backwards_[step.chunk]++;
  if (numbers_.backward_descends) number = numbers_.micro_batches - 1 - number;
  if (step.pass == Pass::input_gradient) due_.emplace_back(step.chunk, number);
  return {step.pass, step.chunk, number, step.with_next};
}

bool PhasedSlots::next(PipelineSlot& slot) {
  while (const PhaseStep* step = advance()) {
    slot = number(*step);
    if (slot.micro_batch >= numbers_.micro_batches) continue;
    slot.micro_batch += numbers_.first[slot.chunk];
    return true;
  }
  return false;
}

std::uint32_t count_activations(const PipelineSchedule& schedule, const PipelineShape& shape, std::uint32_t rank) {
  const auto slots = schedule.slots(shape, rank);
  std::uint32_t held = 0;
  std::uint32_t max = 0;
  PipelineSlot slot;
  while (slots->next(slot)) {
    if (slot.pass == PipelineSlot::Pass::forward) max = std::max(max, ++held);
    if (slot.pass == PipelineSlot::Pass::backward || slot.pass == PipelineSlot::Pass::weight_gradient) --held;
  }
  return max;
}

}  // namespace weft
