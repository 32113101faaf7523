// SPDX-License-Identifier: GPL-2.0-only
// Timers of the lanes of a rank's collectives.
#pragma once

#include <cstdint>
#include <vector>

#include "transport/messages/message.hpp"

namespace weft {

/// The purpose of a timer.
struct LaneTimer {
  std::uint64_t operation = 0;
  std::uint32_t lane = 0;  ///< no_lane: the launch of the collective is over
  std::uint64_t cause = no_message;
};

/// The timers that are set, by reusable slots.
class LaneTimers {
 public:
  /// Its slot.
  std::uint32_t add(const LaneTimer& timer) {
    if (free_.empty()) {
      free_.push_back(static_cast<std::uint32_t>(timers_.size()));
      timers_.emplace_back();
    }
    const std::uint32_t slot = free_.back();
    free_.pop_back();
    timers_[slot] = timer;
    return slot;
  }
  LaneTimer take(std::uint32_t slot) {
    free_.push_back(slot);
    return timers_[slot];
  }

 private:
  std::vector<LaneTimer> timers_;
  std::vector<std::uint32_t> free_;
};

}  // namespace weft
