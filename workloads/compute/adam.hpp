// SPDX-License-Identifier: GPL-2.0-only
// What the optimizer reads, writes and keeps.
#pragma once

#include <cstdint>

namespace weft {

/// Bytes of optimizer state per parameter: both moments, and the 32-bit parameter if training has it in fewer bits: K =
/// 12 of Rajbhandari et al., arXiv:1910.02054, 3.1, for moments of 32 bits.
constexpr std::int64_t adam_kept(std::int64_t parameter_bytes, std::int64_t moment_bytes) {
  return (parameter_bytes < 4 ? 4 : 0) + 2 * moment_bytes;
}

/// Memory traffic of one step of Adam on one parameter: reads the gradient and the state, writes the state and the
/// parameter in training precision; 32-bit parameters are read as well.
constexpr std::int64_t adam_traffic(std::int64_t gradient_bytes, std::int64_t parameter_bytes,
                                    std::int64_t moment_bytes) {
  return gradient_bytes + 2 * adam_kept(parameter_bytes, moment_bytes) +
         parameter_bytes * (parameter_bytes < 4 ? 1 : 2);
}

}  // namespace weft
