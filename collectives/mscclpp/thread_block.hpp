// SPDX-License-Identifier: GPL-2.0-only
// A thread block of an MSCCL++ plan during its execution: the steps that represent its operations.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>

#include "collectives/mscclpp/plan.hpp"

namespace weft {

/// A step of a GPU that has been written.
struct PlanStep {
  std::uint32_t lane = 0;
  std::uint32_t step = 0;
  auto operator<=>(const PlanStep&) const = default;
};
using PlanSteps = std::set<PlanStep>;  ///< of one GPU

/// What of a thread block happens at another GPU: a channel that no other thread block of both GPUs has, with a lane at
/// both ends.
struct PlanPeer {
  std::uint32_t channel = 0;
  std::uint32_t own_lane = 0;
  std::uint32_t lane_there = 0;
  std::optional<PlanStep> last_there;
  PlanSteps waits_there;  ///< that the next step there has to wait for
};

/// Its progress.
struct ThreadBlock {
  const PlanBlock* plan = nullptr;
  std::size_t next = 0;  ///< of its operations
  std::optional<std::uint32_t> local_lane;
  std::map<std::uint32_t, PlanPeer> peers;  ///< by GPU
  std::optional<PlanStep> last;
  PlanSteps waits;  ///< that its next step has to wait for, besides `last`
  bool in_barrier = false;

  std::uint32_t gpu() const { return plan->gpu; }
  std::uint32_t id() const { return plan->id; }
  /// What has to be done before whoever it signals goes on.
  PlanSteps done() const {
    PlanSteps steps = waits;
    if (last) steps.insert(*last);
    return steps;
  }
};

}  // namespace weft
