// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/parallel/expert_routing.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "support/basics/random.hpp"

namespace weft {
namespace {

/// Shares `whole` out in proportion to `weights`, the remainders to the largest fractions, lower numbers first.
std::vector<std::int64_t> in_proportion(std::int64_t whole, const std::vector<double>& weights) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<std::int64_t> parts(weights.size());
  std::vector<std::pair<double, std::size_t>> rests;
  std::int64_t given = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] == 0) continue;
    const double exact = static_cast<double>(whole) * weights[i] / sum;
    parts[i] = static_cast<std::int64_t>(std::floor(exact));
    given += parts[i];
    rests.emplace_back(static_cast<double>(parts[i]) - exact, i);
  }
  std::sort(rests.begin(), rests.end());
  for (std::size_t i = 0; given < whole; ++i, ++given) ++parts[rests[i % rests.size()].second];
  return parts;
}

/// The same with at most `max` for each: the excess of full experts goes to the others.
std::vector<std::int64_t> share_out(std::int64_t whole, std::vector<double> weights,
                                    const std::vector<std::int64_t>& max) {
  std::vector<std::int64_t> full(weights.size());
  std::int64_t left = std::min(whole, std::accumulate(max.begin(), max.end(), std::int64_t{0}));
  for (;;) {
    std::vector<std::int64_t> parts = in_proportion(left, weights);
    bool over = false;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (weights[i] == 0 || parts[i] <= max[i]) continue;
      over = true;
      full[i] = max[i];
      left -= max[i];
      weights[i] = 0;
    }
    if (over) continue;
    for (std::size_t i = 0; i < parts.size(); ++i) parts[i] += full[i];
    return parts;
  }
}

/// Raises parts that are less than `min`, at the cost of those that have most to spare.
void raise_to(const std::vector<std::int64_t>& min, std::vector<std::int64_t>& parts) {
  std::int64_t owed = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    owed += std::max<std::int64_t>(0, min[i] - parts[i]);
    parts[i] = std::max(parts[i], min[i]);
  }
  for (; owed > 0; --owed) {
    std::size_t richest = 0;
    for (std::size_t i = 1; i < parts.size(); ++i)
      if (parts[i] - min[i] > parts[richest] - min[richest]) richest = i;
    if (parts[richest] == min[richest]) return;
    --parts[richest];
  }
}

/// Copies for each expert before any overflows.
std::vector<std::int64_t> wanted_copies(const ExpertRouting& routing, const RoutingCase& one) {
  const auto experts = static_cast<std::size_t>(one.experts);
  const std::uint64_t entity = one.step << 32 | one.block;
  std::vector<double> weights(experts);
  for (std::size_t j = 0; j < experts; ++j)
    weights[j] = std::exp(routing.spread * random_normal(routing.seed, entity, j));
  return share_out(one.copies(), std::move(weights), std::vector<std::int64_t>(experts, one.tokens));
}

/// Sums of consecutive entries, as many for each part.
std::vector<std::int64_t> summed(const std::vector<std::int64_t>& entries, std::uint32_t parts) {
  std::vector<std::int64_t> sums(parts);
  const std::size_t of_each = entries.size() / parts;
  for (std::size_t i = 0; i < of_each * parts; ++i) sums[i / of_each] += entries[i];
  return sums;
}

std::vector<std::int64_t> tokens_of_servers(const RoutingCase& one, const std::vector<std::int64_t>& copies) {
  const std::int64_t together = std::min(one.experts_per_token, one.experts / one.servers);
  std::vector<double> weights;
  std::vector<std::int64_t> min, max;
  for (const std::int64_t count : copies) {
    weights.push_back(static_cast<double>(count));
    min.push_back((count + together - 1) / together);
    max.push_back(std::min(count, one.tokens));
  }
  std::vector<std::int64_t> tokens = share_out(one.tokens * one.servers_per_token, std::move(weights), max);
  raise_to(min, tokens);
  return tokens;
}

}  // namespace

RoutedRow routed_row(const ExpertRouting& routing, const RoutingCase& one) {
  std::vector<std::int64_t> copies = wanted_copies(routing, one);
  RoutedRow row;
  row.tokens = tokens_of_servers(one, summed(copies, one.servers));
  if (routing.capacity_factor > 0) {
    const auto max = static_cast<std::int64_t>(
        std::ceil(routing.capacity_factor * static_cast<double>(one.copies()) / static_cast<double>(one.experts)));
    for (std::int64_t& count : copies) count = routing.pad_to_capacity ? max : std::min(count, max);
  }
  row.copies = summed(copies, one.ranks);
  const std::vector<std::int64_t> kept = summed(copies, one.servers);
  for (std::uint32_t s = 0; s < one.servers; ++s) row.tokens[s] = std::min(row.tokens[s], kept[s]);
  row.experts = std::move(copies);
  return row;
}

std::vector<std::int64_t> routed_copies(const RoutingCase& one, const RoutedRow& row) {
  std::vector<std::int64_t> table;
  for (std::uint32_t sender = 0; sender < one.ranks; ++sender)
    table.insert(table.end(), row.copies.begin(), row.copies.end());
  return table;
}

std::vector<std::int64_t> rail_tokens(const RoutingCase& one, const RoutedRow& row) {
  std::vector<std::int64_t> table;
  for (std::uint32_t sender = 0; sender < one.servers; ++sender)
    table.insert(table.end(), row.tokens.begin(), row.tokens.end());
  return table;
}

std::vector<std::int64_t> server_copies(const RoutingCase& one, const RoutedRow& row, std::uint32_t server) {
  const std::uint32_t ranks = one.ranks / one.servers;
  std::vector<std::int64_t> table;
  for (std::uint32_t from = 0; from < ranks; ++from)
    for (std::uint32_t to = 0; to < ranks; ++to)
      table.push_back(std::int64_t{one.servers} * row.copies[server * ranks + to]);
  return table;
}

}  // namespace weft
