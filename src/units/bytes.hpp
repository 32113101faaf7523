// SPDX-License-Identifier: GPL-2.0-only
// Amounts of data in integer bytes.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>

namespace weft {

/// An amount of data. Unit: bytes, signed 64 bit.
class Bytes {
 public:
  constexpr Bytes() = default;
  constexpr explicit Bytes(std::int64_t count) : count_(count) {}
  static constexpr Bytes kib(std::int64_t n) { return Bytes(n << 10); }
  static constexpr Bytes mib(std::int64_t n) { return Bytes(n << 20); }

  /// More than there is: "no limit".
  static constexpr Bytes max() { return Bytes(std::numeric_limits<std::int64_t>::max()); }

  constexpr std::int64_t count() const { return count_; }

  friend constexpr auto operator<=>(Bytes, Bytes) = default;
  friend constexpr Bytes operator+(Bytes a, Bytes b) { return Bytes(a.count_ + b.count_); }
  friend constexpr Bytes operator-(Bytes a, Bytes b) { return Bytes(a.count_ - b.count_); }
  friend constexpr Bytes operator*(Bytes a, std::int64_t n) { return Bytes(a.count_ * n); }
  friend constexpr Bytes operator*(std::int64_t n, Bytes a) { return Bytes(a.count_ * n); }
  friend constexpr std::int64_t operator/(Bytes a, Bytes b) { return a.count_ / b.count_; }
  friend constexpr Bytes operator/(Bytes a, std::int64_t n) { return Bytes(a.count_ / n); }
  constexpr Bytes& operator+=(Bytes b) {
    count_ += b.count_;
    return *this;
  }
  constexpr Bytes& operator-=(Bytes b) {
    count_ -= b.count_;
    return *this;
  }

 private:
  std::int64_t count_ = 0;
};

}  // namespace weft
