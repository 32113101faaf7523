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
  /// The end of simulated time, 106 days. No experiment names a later time, and a run that comes there ends with an
  /// error. 63 bits of picoseconds hold 18 hours more: whoever is at a time before the end may add a few times
  /// longest_wait() without a look. For everything else there are bounded_sum() and bounded_product().
  static constexpr Time limit() { return from_s(106LL * 24 * 3600); }
  /// The longest delay of a link, time of a packet on it, or timer of the hardware: 1 hour.
  static constexpr Time longest_wait() { return from_s(3600); }
  /// Later than every event: "never".
  static constexpr Time max() { return Time(std::numeric_limits<std::int64_t>::max()); }

  constexpr std::int64_t ps() const { return ps_; }
  constexpr double seconds() const { return static_cast<double>(ps_) * 1e-12; }

  friend constexpr auto operator<=>(Time, Time) = default;
  friend constexpr Time operator+(Time a, Time b) { return Time(a.ps_ + b.ps_); }
  friend constexpr Time operator-(Time a) { return Time(-a.ps_); }
  friend constexpr Time operator-(Time a, Time b) { return Time(a.ps_ - b.ps_); }
  friend constexpr Time operator*(Time a, std::int64_t n) { return Time(a.ps_ * n); }
  friend constexpr Time operator*(std::int64_t n, Time a) { return Time(a.ps_ * n); }
  friend constexpr std::int64_t operator/(Time a, Time b) { return a.ps_ / b.ps_; }
  friend constexpr Time operator/(Time a, std::int64_t n) { return Time(a.ps_ / n); }
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

/// a + b, or n times a; limit() if that is at or beyond it. Nothing here is negative.
constexpr Time bounded_sum(Time a, Time b) {
  if (a >= Time::limit() || b >= Time::limit() - a) return Time::limit();
  return a + b;
}
constexpr Time bounded_product(std::int64_t n, Time a) {
  const auto product = static_cast<unsigned __int128>(n) * static_cast<unsigned __int128>(a.ps());
  if (product >= static_cast<unsigned __int128>(Time::limit().ps())) return Time::limit();
  return Time::from_ps(static_cast<std::int64_t>(product));
}

}  // namespace weft
