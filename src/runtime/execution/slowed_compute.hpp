// SPDX-License-Identifier: GPL-2.0-only
// Compute operations of a rank that are slower while the rank communicates, to the picosecond.
#pragma once

#include <cmath>
#include <cstdint>
#include <map>

#include "support/basics/contract.hpp"
#include "units/time.hpp"

namespace weft {

/// Kernels of collectives take multiprocessors and memory bandwidth from the compute kernels beside them. An operation
/// of duration d has d * full units of work, of which a picosecond does `full`, or `slow` while the rank communicates:
/// `full` goes with the operation, which has a factor of its own or the rank's;
/// it is complete at the first whole picosecond at which all are done. All integers: the order of events at one time
/// changes nothing.
class SlowedCompute {
 public:
  /// `factor`: by how much longer operations take while the rank communicates; at least 1, which costs nothing. Rounded
  /// to millionths.
  explicit SlowedCompute(double factor) : full_(std::llround(factor * slow)) {
    WEFT_EXPECT(factor >= 1 && factor <= 1e6, "compute is slowed by {}", factor);
  }
  bool active() const { return full_ != slow; }

  /// `factor`: of this operation; 0: the rank's.
  void start(Time now, std::uint64_t operation, Time duration, double factor = 0) {
    advance(now);
    WEFT_EXPECT(factor == 0 || (factor >= 1 && factor <= 1e6), "an operation is slowed by {}", factor);
    const std::int64_t full = factor == 0 ? full_ : std::llround(factor * slow);
    left_.emplace(operation, Left{static_cast<Work>(duration.ps()) * full, full});
  }
  void begin_communication(Time now) {
    advance(now);
    ++communicating_;
  }
  void end_communication(Time now) {
    advance(now);
    --communicating_;
  }
  /// Zero if the operation is complete, which forgets it; otherwise the least time until it can be.
  Time left(Time now, std::uint64_t operation) {
    advance(now);
    const auto at = left_.find(operation);
    if (at == left_.end()) return {};  // one that communication does not slow
    const auto& [work, full] = at->second;
    if (work > 0) return Time::from_ps(static_cast<std::int64_t>((work + full - 1) / full));
    left_.erase(at);
    return {};
  }

 private:
  __extension__ using Work = __int128;
  static constexpr std::int64_t slow = 1'000'000;
  struct Left {
    Work work;
    std::int64_t full;
  };

  void advance(Time now) {
    const auto passed = static_cast<Work>((now - last_).ps());
    last_ = now;
    if (passed != 0)
      for (auto& [operation, left] : left_) left.work -= passed * (communicating_ > 0 ? slow : left.full);
  }

  std::int64_t full_;
  std::uint32_t communicating_ = 0;
  Time last_;
  std::map<std::uint64_t, Left> left_;  // of operations under way
};

}  // namespace weft
