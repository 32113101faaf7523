// SPDX-License-Identifier: GPL-2.0-only
// Counts in formulas of real numbers.
#pragma once

#include <cstdint>

namespace weft {

/// The nearest double: exact up to 2^53.
constexpr double real(std::int64_t count) { return static_cast<double>(count); }

}  // namespace weft
