// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/expert_routing.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "support/random.hpp"

namespace weft {
namespace {

/// Box and Muller, "A note on the generation of random normal deviates", doi:10.1214/aoms/1177706645.
double standard_normal(std::uint64_t seed, std::uint64_t entity, std::uint64_t count) {
  const double u = random_unit(seed, entity, 2 * count);
  const double v = random_unit(seed, entity, 2 * count + 1);
  return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
}

/// Shares `whole` out in proportion to `weights`, the remainders to the largest fractions, lower numbers first.
std::vector<std::int64_t> share_out(std::int64_t whole, const std::vector<double>& weights) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<std::int64_t> parts(weights.size());
  std::vector<std::pair<double, std::size_t>> rests;
  std::int64_t given = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const double exact = static_cast<double>(whole) * weights[i] / sum;
    parts[i] = static_cast<std::int64_t>(std::floor(exact));
    given += parts[i];
    rests.emplace_back(static_cast<double>(parts[i]) - exact, i);
  }
  std::sort(rests.begin(), rests.end());
  for (std::size_t i = 0; given < whole; ++i, ++given) ++parts[rests[i % rests.size()].second];
  return parts;
}

}  // namespace

std::vector<std::int64_t> routed_copies(const ExpertRouting& routing, const RoutingCase& one) {
  const auto experts = static_cast<std::size_t>(one.experts);
  const std::uint64_t entity = one.step << 32 | one.block;
  std::vector<double> weights(experts);
  for (std::size_t j = 0; j < experts; ++j)
    weights[j] = std::exp(routing.spread * standard_normal(routing.seed, entity, j));
  std::vector<std::int64_t> copies = share_out(one.copies, weights);
  if (routing.capacity_factor > 0) {
    const auto most = static_cast<std::int64_t>(
        std::ceil(routing.capacity_factor * static_cast<double>(one.copies) / static_cast<double>(one.experts)));
    for (std::int64_t& count : copies) count = std::min(count, most);
  }
  std::vector<std::int64_t> row(one.ranks);
  const std::size_t here = experts / one.ranks;
  for (std::size_t j = 0; j < experts; ++j) row[std::min<std::size_t>(j / here, one.ranks - 1)] += copies[j];
  std::vector<std::int64_t> table;
  for (std::uint32_t sender = 0; sender < one.ranks; ++sender) table.insert(table.end(), row.begin(), row.end());
  return table;
}

}  // namespace weft
