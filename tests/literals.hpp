// SPDX-License-Identifier: GPL-2.0-only
// Amounts as tests write them: 5_us, 4096_B.
#pragma once

#include <cstdint>

#include "units/bytes.hpp"
#include "units/time.hpp"

namespace weft::literals {

constexpr Time operator""_ps(unsigned long long n) { return Time::from_ps(static_cast<std::int64_t>(n)); }
constexpr Time operator""_ns(unsigned long long n) { return Time::from_ns(static_cast<std::int64_t>(n)); }
constexpr Time operator""_us(unsigned long long n) { return Time::from_us(static_cast<std::int64_t>(n)); }
constexpr Bytes operator""_B(unsigned long long n) { return Bytes(static_cast<std::int64_t>(n)); }

}  // namespace weft::literals
