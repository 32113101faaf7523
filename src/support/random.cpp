// SPDX-License-Identifier: GPL-2.0-only
// Random variates that need the mathematical library.
#include "support/random.hpp"

#include <cmath>

namespace weft {

double random_exponential(double mean, std::uint64_t seed, std::uint64_t entity, std::uint64_t count) {
  // Inversion: -mean * log(u) for u uniform in (0, 1); random_unit() never gives 0.
  return -mean * std::log(random_unit(seed, entity, count));
}

}  // namespace weft
