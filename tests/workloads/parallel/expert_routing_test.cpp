// SPDX-License-Identifier: GPL-2.0-only
// Uneven routing of tokens: sums, capacity, seeds.
#include "workloads/parallel/expert_routing.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

namespace weft::test::expert_routing_test {
namespace {

RoutingCase one_case(std::uint64_t block = 3, std::uint64_t step = 5) {
  RoutingCase one;
  one.ranks = 4;
  one.experts = 16;
  one.tokens = 4096;
  one.experts_per_token = 2;
  one.block = block;
  one.step = step;
  return one;
}

std::vector<std::int64_t> table_of(const ExpertRouting& routing, const RoutingCase& one) {
  return routed_copies(one, routed_row(routing, one));
}

std::int64_t row_sum(const std::vector<std::int64_t>& table, std::uint32_t ranks, std::uint32_t row) {
  return std::accumulate(table.begin() + row * ranks, table.begin() + (row + 1) * ranks, std::int64_t{0});
}

TEST(ExpertRouting, EvenRoutingSharesEvenly) {
  const auto table = table_of({0, 1, 0}, one_case());
  ASSERT_EQ(table.size(), 16U);
  for (const std::int64_t copies : table) EXPECT_EQ(copies, 8192 / 4);
}

// A rank's copies are those of its experts, consecutive ones, also where some are dropped.
TEST(ExpertRouting, CopiesOfARankAreThoseOfItsExperts) {
  for (const double capacity : {0.0, 1.5}) {
    const RoutedRow row = routed_row({1.0, 1, capacity}, one_case());
    ASSERT_EQ(row.experts.size(), 16U);
    for (std::ptrdiff_t rank = 0; rank < 4; ++rank) {
      const auto first = row.experts.begin() + 4 * rank;
      EXPECT_EQ(row.copies[static_cast<std::size_t>(rank)], std::accumulate(first, first + 4, std::int64_t{0}));
    }
  }
}

TEST(ExpertRouting, AllCopiesGoSomewhere) {
  for (const double spread : {0.1, 1.0, 3.0}) {
    const auto table = table_of({spread, 7, 0}, one_case());
    for (std::uint32_t row = 0; row < 4; ++row) EXPECT_EQ(row_sum(table, 4, row), 8192);
    EXPECT_NE(*std::min_element(table.begin(), table.end()), *std::max_element(table.begin(), table.end()));
  }
}

TEST(ExpertRouting, CapacityBoundsWhatAnExpertTakes) {
  // 4 experts on each rank take at most ceil(1.25 * 8192 / 16) copies of a sender each.
  const auto table = table_of({3, 7, 1.25}, one_case());
  for (const std::int64_t copies : table) EXPECT_LE(copies, 4 * 640);
  EXPECT_LT(row_sum(table, 4, 0), 8192);
}

TEST(ExpertRouting, DrawsGoWithSeedBlockAndStep) {
  const auto table = table_of({1, 7, 0}, one_case());
  EXPECT_EQ(table, table_of({1, 7, 0}, one_case()));
  EXPECT_NE(table, table_of({1, 8, 0}, one_case()));
  EXPECT_NE(table, table_of({1, 7, 0}, one_case(4)));
  EXPECT_NE(table, table_of({1, 7, 0}, one_case(3, 6)));
}

TEST(ExpertRouting, SpreadIsTheLogarithmsStandardDeviation) {
  // With one expert per rank and many copies, log(share) has the standard deviation `spread`, up to the sampling error
  // of 4096 values, 1/sqrt(2 n) = 1.1 %, of which 4 are allowed.
  RoutingCase one;
  one.ranks = 4096;
  one.experts = 4096;
  one.tokens = std::int64_t{1} << 40;
  const auto table = table_of({0.5, 3, 0}, one);
  double sum = 0, squares = 0;
  for (std::uint32_t j = 0; j < one.ranks; ++j) {
    const double x = std::log(static_cast<double>(table[j]));
    sum += x;
    squares += x * x;
  }
  const double n = one.ranks;
  EXPECT_NEAR(std::sqrt(squares / n - sum * sum / (n * n)) / 0.5, 1, 4 * 0.011);
}

// The most popular of 4 experts would have nearly all copies.
TEST(ExpertRouting, AnExpertTakesATokenOnce) {
  RoutingCase one = one_case();
  one.experts = 4;
  const auto row = routed_row({5, 7, 0}, one);
  EXPECT_EQ(*std::max_element(row.copies.begin(), row.copies.end()), one.tokens);
  EXPECT_EQ(std::accumulate(row.copies.begin(), row.copies.end(), std::int64_t{0}), one.copies());
}

std::int64_t sum(const std::vector<std::int64_t>& values) {
  return std::accumulate(values.begin(), values.end(), std::int64_t{0});
}

/// 32 experts on 16 ranks of 4 servers, 6 of them for each of 1024 tokens, on at most so many servers.
RoutingCase over_servers(std::int64_t servers_per_token, std::uint64_t step) {
  RoutingCase one;
  one.ranks = 16;
  one.experts = 32;
  one.tokens = 1024;
  one.experts_per_token = 6;
  one.servers = 4;
  one.servers_per_token = servers_per_token;
  one.step = step;
  return one;
}

TEST(ExpertRouting, EvenRoutingSendsToAllServersAlike) {
  for (const std::int64_t max : {1, 2, 4})
    EXPECT_EQ(routed_row({0, 1, 0}, over_servers(max, 0)).tokens, std::vector<std::int64_t>(4, 1024 * max / 4));
}

// A server gets each token once, as often as there are copies for it, and no more copies of a token than it has experts
// or the token takes.
TEST(ExpertRouting, TokensOfServersFollowTheirCopies) {
  for (const double spread : {0.3, 1.0, 4.0})
    for (const double capacity : {0.0, 1.5})
      for (const std::int64_t max : {1, 2, 4})
        for (std::uint64_t step = 0; step < 20; ++step) {
          const RoutingCase one = over_servers(max, step);
          const RoutedRow row = routed_row({spread, 7, capacity}, one);
          std::vector<std::int64_t> copies(4);
          for (std::uint32_t rank = 0; rank < 16; ++rank) copies[rank / 4] += row.copies[rank];
          std::int64_t limit = 0;
          for (std::uint32_t s = 0; s < 4; ++s) {
            const std::int64_t at_most = std::min<std::int64_t>(copies[s], 1024);
            EXPECT_LE(row.tokens[s], at_most);
            EXPECT_GE(row.tokens[s], (copies[s] + 5) / 6);
            limit += at_most;
          }
          if (capacity > 0) continue;
          // With all copies of a token on one server, counts of copies that are no multiple of 6 need a token more
          // each.
          EXPECT_GE(sum(row.tokens), std::min(1024 * max, limit));
          EXPECT_LE(sum(row.tokens), std::min(1024 * max, limit) + (max == 1 ? 4 : 0));
        }
}

// With one expert per token, or a spread that fills no server, the tokens are the copies' share of servers_per_token.
TEST(ExpertRouting, TokensOfServersInProportion) {
  RoutingCase one = over_servers(1, 3);
  one.experts_per_token = 1;
  const RoutedRow single = routed_row({1, 7, 0}, one);
  for (std::uint32_t s = 0; s < 4; ++s)
    EXPECT_EQ(single.tokens[s],
              std::accumulate(single.copies.begin() + 4 * s, single.copies.begin() + 4 * s + 4, std::int64_t{0}));
  const RoutedRow six = routed_row({0.2, 7, 0}, over_servers(2, 3));
  for (std::uint32_t s = 0; s < 4; ++s) {
    const auto copies = std::accumulate(six.copies.begin() + 4 * s, six.copies.begin() + 4 * s + 4, std::int64_t{0});
    EXPECT_NEAR(static_cast<double>(six.tokens[s]), static_cast<double>(copies) * 2 / 6, 1);
  }
}

// What the ranks of a server get over their rails and send on is what all senders have for it, pair by pair: rank l' of
// server s gets from each of its neighbours l the copies that the N ranks in place l send it straight.
TEST(ExpertRouting, LegsCarryWhatGoesStraight) {
  for (std::uint64_t step = 0; step < 10; ++step) {
    const RoutingCase one = over_servers(2, step);
    const RoutedRow row = routed_row({1.5, 7, 0}, one);
    const auto straight = routed_copies(one, row);
    const auto rail = rail_tokens(one, row);
    ASSERT_EQ(rail.size(), 16U);
    for (std::uint32_t s = 0; s < 4; ++s) {
      const auto inside = server_copies(one, row, s);
      ASSERT_EQ(inside.size(), 16U);
      for (std::uint32_t l = 0; l < 4; ++l) {
        for (std::uint32_t to = 0; to < 4; ++to) {
          std::int64_t due = 0;
          for (std::uint32_t a = 0; a < 4; ++a) due += straight[(a * 4 + l) * 16 + s * 4 + to];
          EXPECT_EQ(inside[l * 4 + to], due);
        }
        EXPECT_EQ(rail[l * 4 + s], row.tokens[s]);
      }
    }
  }
}

}  // namespace
}  // namespace weft::test::expert_routing_test
