// SPDX-License-Identifier: GPL-2.0-only
// Compute operations of a rank that are slower while the rank communicates, to the picosecond.
#pragma once

#include <cmath>
#include <cstdint>
#include <map>

#include "support/contract.hpp"
#include "units/time.hpp"

namespace weft {

/// Kernels of collectives take multiprocessors and memory bandwidth from the compute kernels beside them. An operation
/// of duration d has d * full units of work, of which a picosecond does `full`, or `slow` while the rank communicates;
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

  void start(Time now, std::uint64_t operation, Time duration) {
    advance(now);
    left_.emplace(operation, static_cast<Work>(duration.ps()) * full_);
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
    if (at->second > 0) return Time::from_ps(static_cast<std::int64_t>((at->second + full_ - 1) / full_));
    left_.erase(at);
    return {};
  }

 private:
  __extension__ using Work = __int128;
  static constexpr std::int64_t slow = 1'000'000;

  void advance(Time now) {
    const Work done = static_cast<Work>((now - last_).ps()) * (communicating_ > 0 ? slow : full_);
    last_ = now;
    if (done != 0)
      for (auto& [operation, work] : left_) work -= done;
  }

  std::int64_t full_;
  std::uint32_t communicating_ = 0;
  Time last_;
  std::map<std::uint64_t, Work> left_;  // of operations under way
};

}  // namespace weft
