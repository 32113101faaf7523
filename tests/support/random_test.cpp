// SPDX-License-Identifier: GPL-2.0-only
// Tests of the counter-based random numbers.
#include "support/basics/random.hpp"

#include <bit>
#include <cmath>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace weft::random_test {
namespace {

constexpr std::uint64_t golden = 0x9e3779b97f4a7c15U;

/// The inverse of x ^ (x >> shift).
std::uint64_t unshift(std::uint64_t x, int shift) {
  std::uint64_t result = x;
  for (int done = shift; done < 64; done += shift) result = x ^ (result >> shift);
  return result;
}

/// The inverse of an odd factor modulo 2^64, by Newton's iteration.
std::uint64_t inverse(std::uint64_t odd) {
  std::uint64_t result = odd;
  for (int i = 0; i < 6; ++i) result *= 2 - odd * result;
  return result;
}

/// The inverse of mix64().
std::uint64_t unmix64(std::uint64_t x) {
  x = unshift(x, 31) * inverse(0x94d049bb133111ebU);
  x = unshift(x, 27) * inverse(0xbf58476d1ce4e5b9U);
  return unshift(x, 30);
}

/// The draw of (seed, entity) that has these 64 bits.
std::uint64_t count_with_bits(std::uint64_t bits, std::uint64_t seed, std::uint64_t entity) {
  return (unmix64(bits) ^ mix64(mix64(seed + golden) ^ (entity + golden))) - golden;
}

TEST(Random, MixerIsABijection) {
  for (std::uint64_t x : {std::uint64_t{0}, std::uint64_t{1}, golden, ~std::uint64_t{0}})
    EXPECT_EQ(unmix64(mix64(x)), x);
}

TEST(Random, MixerIsSplitMix64) {
  // The published generator is mix64 of multiples of the golden constant; its first output for seed 0 is well known.
  EXPECT_EQ(mix64(golden), 0xe220a8397b1dcdafU);
  EXPECT_EQ(mix64(2 * golden), 0x6e789e6aa1b965f4U);
}

TEST(Random, AFunctionOfItsArgumentsAlone) {
  static_assert(random_bits(1, 2, 3) == random_bits(1, 2, 3));
  EXPECT_EQ(random_exponential(5.0, 1, 2, 3), random_exponential(5.0, 1, 2, 3));
  std::set<std::uint64_t> seen;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    for (std::uint64_t entity = 0; entity < 10; ++entity) {
      for (std::uint64_t count = 0; count < 100; ++count) seen.insert(random_bits(seed, entity, count));
    }
  }
  EXPECT_EQ(seen.size(), 10U * 10U * 100U);
}

TEST(Random, EveryBitOfEveryArgumentMatters) {
  // Flipping one bit of one argument flips each output bit with probability 1/2: of 64 in the mean 32, and the mean of
  // n such numbers has a standard deviation of sqrt(64 / 4 / n).
  const int trials = 2000;
  double flipped = 0;
  for (int i = 0; i < trials; ++i) {
    const auto n = static_cast<std::uint64_t>(i);
    const std::uint64_t bit = std::uint64_t{1} << (i % 64);
    const std::uint64_t base = random_bits(n, 2 * n, 3 * n);
    const std::uint64_t other = i % 3 == 0   ? random_bits(n ^ bit, 2 * n, 3 * n)
                                : i % 3 == 1 ? random_bits(n, (2 * n) ^ bit, 3 * n)
                                             : random_bits(n, 2 * n, (3 * n) ^ bit);
    flipped += std::popcount(base ^ other);
  }
  EXPECT_NEAR(flipped / trials, 32.0, 4 * std::sqrt(64 / 4.0 / trials));
}

TEST(Random, UnitIsNeverZeroOrOne) {
  const std::uint64_t seed = 11;
  const std::uint64_t entity = 12;
  const std::uint64_t all_ones = count_with_bits(~std::uint64_t{0}, seed, entity);
  const std::uint64_t all_zeros = count_with_bits(0, seed, entity);
  ASSERT_EQ(random_bits(seed, entity, all_ones), ~std::uint64_t{0});
  ASSERT_EQ(random_bits(seed, entity, all_zeros), 0U);
  EXPECT_LT(random_unit(seed, entity, all_ones), 1.0);
  EXPECT_GT(random_unit(seed, entity, all_zeros), 0.0);
  EXPECT_GT(random_exponential(1.0, seed, entity, all_ones), 0.0);
  EXPECT_TRUE(std::isfinite(random_exponential(1.0, seed, entity, all_zeros)));
  EXPECT_EQ(random_below(10, seed, entity, all_ones), 9U);
  EXPECT_EQ(random_below(10, seed, entity, all_zeros), 0U);
}

/// Sample mean and variance of n draws.
template <class Draw>
std::pair<double, double> moments(std::uint64_t n, Draw&& draw) {
  double sum = 0;
  double squares = 0;
  for (std::uint64_t i = 0; i < n; ++i) {
    const double x = draw(i);
    sum += x;
    squares += x * x;
  }
  const auto count = static_cast<double>(n);
  const double mean = sum / count;
  return {mean, squares / count - mean * mean};
}

constexpr std::uint64_t draws = 200'000;

TEST(Random, UniformMoments) {
  // Mean 1/2, variance 1/12; the variance of the squared deviation is 1/80 - 1/144.
  const auto [mean, variance] = moments(draws, [](std::uint64_t i) { return random_unit(1, 2, i); });
  EXPECT_NEAR(mean, 0.5, 4 * std::sqrt(1.0 / 12 / draws));
  EXPECT_NEAR(variance, 1.0 / 12, 4 * std::sqrt((1.0 / 80 - 1.0 / 144) / draws));
}

TEST(Random, UniformOverEntities) {
  const auto [mean, variance] = moments(draws, [](std::uint64_t i) { return random_unit(1, i, 0); });
  EXPECT_NEAR(mean, 0.5, 4 * std::sqrt(1.0 / 12 / draws));
  EXPECT_NEAR(variance, 1.0 / 12, 4 * std::sqrt((1.0 / 80 - 1.0 / 144) / draws));
}

TEST(Random, ExponentialMoments) {
  // Mean m, variance m^2; the fourth central moment is 9 m^4, so the squared deviation has variance 8 m^4.
  const double m = 3.5;
  const auto [mean, variance] = moments(draws, [m](std::uint64_t i) { return random_exponential(m, 1, 2, i); });
  EXPECT_NEAR(mean, m, 4 * m / std::sqrt(draws));
  EXPECT_NEAR(variance, m * m, 4 * std::sqrt(8.0 / draws) * m * m);
}

TEST(Random, BelowHitsEveryValueEquallyOften) {
  // Chi-squared with n - 1 degrees of freedom: mean n - 1, variance 2 (n - 1).
  const std::uint64_t n = 10;
  std::vector<double> hits(n);
  for (std::uint64_t i = 0; i < draws; ++i) ++hits.at(random_below(n, 5, 6, i));
  const double expected = static_cast<double>(draws) / static_cast<double>(n);
  double chi_squared = 0;
  for (const double hit : hits) chi_squared += (hit - expected) * (hit - expected) / expected;
  EXPECT_LT(chi_squared, (n - 1) + 4 * std::sqrt(2.0 * (n - 1)));
}

}  // namespace
}  // namespace weft::random_test
