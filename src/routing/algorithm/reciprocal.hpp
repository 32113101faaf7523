// SPDX-License-Identifier: GPL-2.0-only
// Division by a number that is known beforehand, without dividing.
#pragma once

#include <bit>
#include <cstdint>

namespace weft {

/// Exact quotients n / d of n < 2^31 by one multiplication and one shift: floor(n * m / 2^(31+s)) with s = ceil(log2 d)
/// and m = ceil(2^(31+s) / d). Exact because m * d exceeds 2^(31+s) by less than 2^s (Granlund and Montgomery,
/// "Division by invariant integers using multiplication", PLDI 1994, theorem 4.2, doi:10.1145/178243.178249). m <=
/// 2^32, so that the product fits into 64 bits.
class Reciprocal {
 public:
  static constexpr std::uint32_t numerators = 1U << 31;  ///< n must be below

  constexpr Reciprocal() = default;
  /// 1 <= divisor < 2^31.
  constexpr explicit Reciprocal(std::uint32_t divisor)
      : shift_(31 + static_cast<unsigned>(std::bit_width(divisor - 1))),
        multiplier_(((std::uint64_t{1} << shift_) + divisor - 1) / divisor) {}

  constexpr std::uint32_t quotient(std::uint32_t n) const {
    return static_cast<std::uint32_t>((n * multiplier_) >> shift_);
  }

 private:
  unsigned shift_ = 31;
  std::uint64_t multiplier_ = std::uint64_t{1} << 31;
};

}  // namespace weft
