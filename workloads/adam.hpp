// SPDX-License-Identifier: GPL-2.0-only
// What the optimizer reads, writes and keeps.
#pragma once

#include <cstdint>

namespace weft {

/// Bytes of optimizer state per parameter: the 32-bit parameter and both moments, K of Rajbhandari et al.,
/// arXiv:1910.02054, 3.1.
constexpr std::int64_t adam_kept = 12;

/// Memory traffic of one step of mixed-precision Adam on one parameter: reads the gradient and the state, writes the
/// state and the parameter in training precision.
constexpr std::int64_t adam_traffic(std::int64_t gradient_bytes, std::int64_t parameter_bytes) {
  return gradient_bytes + adam_kept + adam_kept + parameter_bytes;
}

}  // namespace weft
