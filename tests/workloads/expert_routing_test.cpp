// SPDX-License-Identifier: GPL-2.0-only
// Uneven routing of tokens: sums, capacity, seeds.
#include "workloads/expert_routing.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

namespace weft::test {
namespace {

RoutingCase one_case(std::uint64_t block = 3, std::uint64_t step = 5) {
  RoutingCase one;
  one.ranks = 4;
  one.experts = 16;
  one.copies = 8192;
  one.block = block;
  one.step = step;
  return one;
}

std::int64_t row_sum(const std::vector<std::int64_t>& table, std::uint32_t ranks, std::uint32_t row) {
  return std::accumulate(table.begin() + row * ranks, table.begin() + (row + 1) * ranks, std::int64_t{0});
}

TEST(ExpertRouting, EvenRoutingSharesEvenly) {
  const auto table = routed_copies({0, 1, 0}, one_case());
  ASSERT_EQ(table.size(), 16U);
  for (const std::int64_t copies : table) EXPECT_EQ(copies, 8192 / 4);
}

TEST(ExpertRouting, AllCopiesGoSomewhere) {
  for (const double spread : {0.1, 1.0, 3.0}) {
    const auto table = routed_copies({spread, 7, 0}, one_case());
    for (std::uint32_t row = 0; row < 4; ++row) EXPECT_EQ(row_sum(table, 4, row), 8192);
    EXPECT_NE(*std::min_element(table.begin(), table.end()), *std::max_element(table.begin(), table.end()));
  }
}

TEST(ExpertRouting, CapacityBoundsWhatAnExpertTakes) {
  // 4 experts on each rank take at most ceil(1.25 * 8192 / 16) copies of a sender each.
  const auto table = routed_copies({3, 7, 1.25}, one_case());
  for (const std::int64_t copies : table) EXPECT_LE(copies, 4 * 640);
  EXPECT_LT(row_sum(table, 4, 0), 8192);
}

TEST(ExpertRouting, DrawsGoWithSeedBlockAndStep) {
  const auto table = routed_copies({1, 7, 0}, one_case());
  EXPECT_EQ(table, routed_copies({1, 7, 0}, one_case()));
  EXPECT_NE(table, routed_copies({1, 8, 0}, one_case()));
  EXPECT_NE(table, routed_copies({1, 7, 0}, one_case(4)));
  EXPECT_NE(table, routed_copies({1, 7, 0}, one_case(3, 6)));
}

TEST(ExpertRouting, SpreadIsTheLogarithmsStandardDeviation) {
  // With one expert per rank and many copies, log(share) has the standard deviation `spread`, up to the sampling error
  // of 4096 values, 1/sqrt(2 n) = 1.1 %, of which 4 are allowed.
  RoutingCase one;
  one.ranks = 4096;
  one.experts = 4096;
  one.copies = std::int64_t{1} << 40;
  const auto table = routed_copies({0.5, 3, 0}, one);
  double sum = 0, squares = 0;
  for (std::uint32_t j = 0; j < one.ranks; ++j) {
    const double x = std::log(static_cast<double>(table[j]));
    sum += x;
    squares += x * x;
  }
  const double n = one.ranks;
  EXPECT_NEAR(std::sqrt(squares / n - sum * sum / (n * n)) / 0.5, 1, 4 * 0.011);
}

}  // namespace
}  // namespace weft::test
