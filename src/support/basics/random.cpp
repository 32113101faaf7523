// SPDX-License-Identifier: GPL-2.0-only
// Random variates that need the mathematical library.
#include "support/basics/random.hpp"

#include <cmath>
#include <numbers>

namespace weft {

double random_exponential(double mean, std::uint64_t seed, std::uint64_t entity, std::uint64_t count) {
  // Inversion: -mean * log(u) for u uniform in (0, 1); random_unit() never gives 0.
  return -mean * std::log(random_unit(seed, entity, count));
}

double random_normal(std::uint64_t seed, std::uint64_t entity, std::uint64_t count) {
  const double radius = std::sqrt(-2 * std::log(random_unit(seed, entity, 2 * count)));
  return radius * std::cos(2 * std::numbers::pi * random_unit(seed, entity, 2 * count + 1));
}

}  // namespace weft
