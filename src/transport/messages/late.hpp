// SPDX-License-Identifier: GPL-2.0-only
// For how long a receiver was late, in the 32 bits that a credit has for it.
#pragma once

#include <bit>
#include <cstdint>

#include "units/time.hpp"

namespace weft {

/// A float: 24 bits of any time, and never longer than that was, so that parts of times do not exceed their sum.
constexpr std::uint32_t late_to_bits(Time late) {
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(late.ps()));
  const bool rounded_up = static_cast<double>(std::bit_cast<float>(bits)) > static_cast<double>(late.ps());
  return rounded_up ? bits - 1 : bits;
}
constexpr Time late_from_bits(std::uint32_t bits) {
  return Time::from_ps(static_cast<std::int64_t>(std::bit_cast<float>(bits)));
}

}  // namespace weft
