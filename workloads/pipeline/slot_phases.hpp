// SPDX-License-Identifier: GPL-2.0-only
// Slots of a rank as phases: a few passes, repeated. Most pipeline schedules are a handful of phases.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "workloads/pipeline/pipeline_schedule.hpp"

namespace weft {

struct PhaseStep {
  PipelineSlot::Pass pass = PipelineSlot::Pass::forward;
  std::uint32_t chunk = 0;
  bool with_next = false;
};

struct SlotPhase {
  std::uint32_t times = 0;
  std::vector<PhaseStep> steps;
};

/// Numbers of micro-batches: the n-th forward pass of a chunk is of the n-th of `micro_batches` from first[chunk] on,
/// the n-th backward pass (or input gradient) too, or from the last one down.
struct MicroBatchNumbers {
  std::array<std::uint32_t, 2> first{};  ///< by chunk
  std::uint32_t micro_batches = 0;       ///< slots of further ones are left out
  bool backward_descends = false;
};

/// Slots of ranks with one or two chunks. State: the phases, and the weight gradients that are due.
class PhasedSlots : public SlotStream {
 public:
  /// Chunk of a weight gradient: that of the oldest input gradient that still lacks it.
  static constexpr std::uint32_t oldest = 2;

  PhasedSlots(std::vector<SlotPhase> phases, MicroBatchNumbers numbers)
      : phases_(std::move(phases)), numbers_(numbers) {}

  bool next(PipelineSlot& slot) override;

 private:
  const PhaseStep* advance();
  PipelineSlot number(const PhaseStep& step);
  std::pair<std::uint32_t, std::uint32_t> due_weight_gradient(std::uint32_t chunk);

  std::vector<SlotPhase> phases_;
  MicroBatchNumbers numbers_;
  std::size_t phase_ = 0;
  std::uint32_t time_ = 0;
  std::size_t step_ = 0;
  std::array<std::uint32_t, 2> forwards_{};
  std::array<std::uint32_t, 2> backwards_{};
  std::deque<std::pair<std::uint32_t, std::uint32_t>> due_;  // (chunk, number) of weight gradients
};

/// The most chunks' activations that a rank holds at once: from the beginning of a forward pass to the end of the
/// backward pass or, if that is split, of the weight gradient. Goes through all slots of the rank.
std::uint32_t count_activations(const PipelineSchedule& schedule, const PipelineShape& shape, std::uint32_t rank);

}  // namespace weft
