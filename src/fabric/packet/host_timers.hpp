// SPDX-License-Identifier: GPL-2.0-only
// Timers of the software of a host.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "units/time.hpp"

namespace weft {

struct HostTimer {
  Time time;
  std::uint64_t number;  ///< order of setting at this host
  std::uint64_t token;
  bool operator>(const HostTimer& other) const {
    return time != other.time ? time > other.time : number > other.number;
  }
};

/// Timers of one host, the earliest first, and of one time in the order in which they were set.
class HostTimers {
 public:
  static constexpr Time never = Time::max();

  void set(Time time, std::uint64_t token) {
    timers_.push_back({time, set_++, token});
    std::push_heap(timers_.begin(), timers_.end(), std::greater<>());
  }
  /// Time of the first one, or never.
  Time next() const { return timers_.empty() ? never : timers_.front().time; }
  HostTimer take() {
    std::pop_heap(timers_.begin(), timers_.end(), std::greater<>());
    const HostTimer timer = timers_.back();
    timers_.pop_back();
    return timer;
  }
  /// Address of the first timer, for prefetching; null if there is none.
  const void* memory() const { return timers_.empty() ? nullptr : timers_.data(); }

 private:
  std::uint64_t set_ = 0;
  std::vector<HostTimer> timers_;  // binary heap, earliest first
};

}  // namespace weft
