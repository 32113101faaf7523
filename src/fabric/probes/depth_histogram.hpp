// SPDX-License-Identifier: GPL-2.0-only
// Time of a queue by its depth in logarithmic steps, for percentiles without keeping a series.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "units/bytes.hpp"
#include "units/time.hpp"

namespace weft {

/// Time by depth of one queue. Depths are bytes; below 2 KiB a step is 64 B wide, above it is a sixteenth of its power
/// of two, so that a percentile is at most 1/16 or 63 B above the true one. Memory grows with the logarithm of the
/// deepest queue: 128 B per power of two.
class DepthHistogram {
 public:
  /// The queue has held `depth` bytes from the time of the last call (at first 0) until `now`.
  void hold(Bytes depth, Time now) {
    const Time span = now - since_;
    since_ = now;
    if (depth == Bytes() || span == Time()) return;  // the rest of the time is that of the empty queue
    const std::size_t step = step_of(depth);
    if (step >= times_.size()) times_.resize((step / steps + 1) * steps);
    times_[step] += span;
    occupied_ += span;
    area_ += static_cast<unsigned __int128>(static_cast<std::uint64_t>(depth.count())) *
             static_cast<std::uint64_t>(span.ps());
    deepest_ = std::max(deepest_, depth);
  }

  /// The least depth that the queue has not exceeded for `share` (0 to 1) of the time until `end`: exact if
  /// it is 0 or the deepest, else the upper end of its step. Requires hold() up to `end`.
  Bytes percentile(double share, Time end) const {
    const auto wanted = Time::from_ps(static_cast<std::int64_t>(share * static_cast<double>(end.ps())));
    Time passed = end - occupied_;
    if (passed >= wanted) return Bytes();
    for (std::size_t step = 0; step < times_.size(); ++step) {
      passed += times_[step];
      if (passed >= wanted) return std::min(deepest_, last_of(step));
    }
    return deepest_;
  }
  /// Bytes on average until `end`.
  double mean(Time end) const { return end > Time() ? static_cast<double>(area_) / static_cast<double>(end.ps()) : 0; }
  Time occupied() const { return occupied_; }  ///< time during which the queue was not empty
  Bytes deepest() const { return deepest_; }   ///< a depth that lasted no time does not count
  std::uint64_t memory_bytes() const { return times_.capacity() * sizeof(Time); }

 private:
  static constexpr unsigned unit_bits = 6;  // 64 B
  static constexpr unsigned step_bits = 4;
  static constexpr std::size_t steps = std::size_t{1} << step_bits;  // of a power of two

  // Steps 0 to 15 are units; then each power of two of units has 16.
  static std::size_t step_of(Bytes depth) {
    const auto units = static_cast<std::uint64_t>(depth.count()) >> unit_bits;
    const auto width = static_cast<unsigned>(std::bit_width(units));
    if (width <= step_bits) return units;
    const unsigned shift = width - step_bits - 1;
    return (shift << step_bits) + (units >> shift);
  }
  static Bytes last_of(std::size_t step) {
    if (step < 2 * steps) return Bytes(static_cast<std::int64_t>((step + 1) << unit_bits) - 1);
    const std::size_t shift = (step >> step_bits) - 1;
    const std::size_t next = (step & (steps - 1)) + steps + 1;
    return Bytes(static_cast<std::int64_t>(next << (shift + unit_bits)) - 1);
  }

  std::vector<Time> times_;
  Time since_;
  Time occupied_;
  Bytes deepest_;
  unsigned __int128 area_ = 0;  // B ps
};

}  // namespace weft
