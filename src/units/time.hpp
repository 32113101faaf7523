// SPDX-License-Identifier: GPL-2.0-only
// Simulated time in integer picoseconds.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>

namespace weft {

/// A point in, or a span of, simulated time. Unit: picoseconds, signed 64 bit (about 106 days).
class Time {
 public:
  constexpr Time() = default;
  static constexpr Time from_ps(std::int64_t ps) { return Time(ps); }
  static constexpr Time from_ns(std::int64_t ns) { return Time(ns * 1'000); }
  static constexpr Time from_us(std::int64_t us) { return Time(us * 1'000'000); }
  static constexpr Time from_ms(std::int64_t ms) { return Time(ms * 1'000'000'000); }
  static constexpr Time from_s(std::int64_t s) { return Time(s * 1'000'000'000'000); }
  /// Later than every event: "never".
  static constexpr Time max() { return Time(std::numeric_limits<std::int64_t>::max()); }

  constexpr std::int64_t ps() const { return ps_; }
  constexpr double seconds() const { return static_cast<double>(ps_) * 1e-12; }

  friend constexpr auto operator<=>(Time, Time) = default;
  friend constexpr Time operator+(Time a, Time b) { return Time(a.ps_ + b.ps_); }
  friend constexpr Time operator-(Time a, Time b) { return Time(a.ps_ - b.ps_); }
  friend constexpr Time operator*(Time a, std::int64_t n) { return Time(a.ps_ * n); }
  friend constexpr Time operator*(std::int64_t n, Time a) { return Time(a.ps_ * n); }
  friend constexpr std::int64_t operator/(Time a, Time b) { return a.ps_ / b.ps_; }
  constexpr Time& operator+=(Time b) {
    ps_ += b.ps_;
    return *this;
  }
  constexpr Time& operator-=(Time b) {
    ps_ -= b.ps_;
    return *this;
  }

 private:
  constexpr explicit Time(std::int64_t ps) : ps_(ps) {}
  std::int64_t ps_ = 0;
};

}  // namespace weft
