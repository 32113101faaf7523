// SPDX-License-Identifier: GPL-2.0-only
// Noise of compute times: moments of the distributions, slow ranks, stragglers, and that nothing depends on order.
#include "workloads/compute/compute_noise.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <utility>

#include <gtest/gtest.h>

#include "tests/workloads/workload_under_test.hpp"

namespace weft::test::compute_noise_test {
namespace {

ComputeNoise noise(const std::string& text, std::uint64_t seed = 1, double copies = 1) {
  return {Spec::parse(text, "x.yaml"), 8, seed, copies};
}
Time stretched(const ComputeNoise& what, std::uint32_t rank, std::uint64_t operation, Time now = {}) {
  return what.stretched(Rank(rank), operation, Time::from_us(1000), now);
}

struct Moments {
  double mean = 0;
  double deviation = 0;
  double min = 1e300;
  double max = 0;
};
Moments moments(const ComputeNoise& what, int draws) {
  Moments result;
  double squares = 0;
  for (int i = 0; i < draws; ++i) {
    const double x = static_cast<double>(
                         stretched(what, static_cast<std::uint32_t>(i % 8), static_cast<std::uint64_t>(i / 8)).ps()) /
                     1e9;
    result.mean += x / draws;
    squares += x * x / draws;
    result.min = std::min(result.min, x);
    result.max = std::max(result.max, x);
  }
  result.deviation = std::sqrt(squares - result.mean * result.mean);
  return result;
}

// Means of n draws are within 5 standard errors s / sqrt(n); the standard deviation's own is about s / sqrt(2 n) for
// nearly normal draws (for the lognormal with s = 0.2 its kurtosis of 3.68 makes that 1.16 times as much).
TEST(ComputeNoise, JitterHasMeanOneAndTheDeviationThatIsAskedFor) {
  constexpr int draws = 80'000;
  for (const std::string distribution : {"lognormal", "normal"})
    for (const double jitter : {0.02, 0.2}) {
      const Moments found =
          moments(noise("{jitter: " + std::to_string(jitter) + ", distribution: " + distribution + "}"), draws);
      EXPECT_NEAR(found.mean, 1, 5 * jitter / std::sqrt(draws)) << distribution;
      // A normal cut to +-3 keeps (2 Phi(3) - 1) - 6 phi(3) + 18 (1 - Phi(3)) = 0.9950 of its variance.
      const double wanted = distribution == "normal" ? jitter * std::sqrt(0.9950) : jitter;
      EXPECT_NEAR(found.deviation, wanted, 6 * jitter / std::sqrt(2.0 * draws)) << distribution;
      if (distribution == "normal") {
        EXPECT_GE(found.min, 1 - 3 * jitter - 1e-9);
        EXPECT_LE(found.max, 1 + 3 * jitter + 1e-9);
      }
    }
}

TEST(ComputeNoise, IsAFunctionOfSeedRankAndOperation) {
  const ComputeNoise one = noise("{jitter: 5 %}", 1);
  const ComputeNoise same = noise("{jitter: 0.05}", 1);
  const ComputeNoise other = noise("{jitter: 5 %}", 2);
  int equal = 0;
  for (std::uint32_t rank = 8; rank-- > 0;)
    for (std::uint64_t operation = 100; operation-- > 0;) {
      EXPECT_EQ(stretched(one, rank, operation), stretched(same, rank, operation));
      if (stretched(one, rank, operation) == stretched(other, rank, operation)) ++equal;
    }
  EXPECT_EQ(equal, 0);
  EXPECT_NE(stretched(one, 0, 1), stretched(one, 1, 0));
}

// A rank's factor, drawn once.
double factor_of_rank(const ComputeNoise& what, std::uint32_t rank) {
  return static_cast<double>(stretched(what, rank, 0).ps()) / 1e9;
}

// The same bounds as for jitter, over 80,000 ranks.
TEST(ComputeNoise, SpreadHasMeanOneAndTheDeviationThatIsAskedFor) {
  constexpr std::uint32_t ranks = 80'000;
  for (const std::string distribution : {"lognormal", "normal"})
    for (const double spread : {0.015, 0.2}) {
      const ComputeNoise what = noise("{spread: " + std::to_string(spread) + ", distribution: " + distribution + "}");
      double mean = 0, squares = 0;
      for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        const double x = factor_of_rank(what, rank);
        mean += x / ranks;
        squares += x * x / ranks;
      }
      EXPECT_NEAR(mean, 1, 5 * spread / std::sqrt(ranks)) << distribution;
      const double wanted = distribution == "normal" ? spread * std::sqrt(0.9950) : spread;
      EXPECT_NEAR(std::sqrt(squares - mean * mean), wanted, 6 * spread / std::sqrt(2.0 * ranks)) << distribution;
    }
}

/// Mean and variance of the largest of n independent draws of g(z), z standard normal and g rising: the integrals of
/// n phi(z) Phi(z)^(n-1) times g(z) and its square (David and Nagaraja, Order Statistics, 3rd edition, Wiley 2003,
/// section 3.1). Simpson's rule over +-12 deviations.
std::pair<double, double> largest_of(int n, const std::function<double(double)>& g) {
  constexpr int parts = 24'000;
  constexpr double step = 24.0 / parts;
  double mean = 0, square = 0;
  for (int i = 0; i <= parts; ++i) {
    const double z = -12 + i * step;
    const double weight = (i == 0 || i == parts ? 1 : i % 2 == 1 ? 4 : 2) * step / 3;
    const double density = n * std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi) *
                           std::pow(0.5 * std::erfc(-z / std::numbers::sqrt2), n - 1);
    mean += weight * density * g(z);
    square += weight * density * g(z) * g(z);
  }
  return {mean, square - mean * mean};
}

TEST(ComputeNoise, IntegralOfTheLargestHasItsClosedForms) {
  const auto itself = [](double z) { return z; };
  // Of two and three standard normal numbers (the same, exercise 3.2.1), and Harter's table of 1961 for eight.
  EXPECT_NEAR(largest_of(2, itself).first, 1 / std::sqrt(std::numbers::pi), 1e-9);
  EXPECT_NEAR(largest_of(3, itself).first, 1.5 / std::sqrt(std::numbers::pi), 1e-9);
  EXPECT_NEAR(largest_of(8, itself).first, 1.42360, 5e-6);
}

// The slowest of n ranks, over as many groups of n as 160,000 ranks make: within five standard errors of the mean.
TEST(ComputeNoise, SlowestOfManyRanksIsTheLargestOfAsManyDraws) {
  for (const int n : {2, 8, 64, 1024})
    for (const bool normal : {false, true}) {
      constexpr double spread = 0.04;
      const std::string shape = normal ? "normal" : "lognormal";
      const ComputeNoise what = noise("{spread: 4 %, distribution: " + shape + "}");
      const double variance = std::log1p(spread * spread);
      const auto [wanted, of_one] = largest_of(n, [&](double z) {
        return normal ? 1 + spread * std::clamp(z, -3.0, 3.0) : std::exp(std::sqrt(variance) * z - variance / 2);
      });
      const int groups = 160'000 / n;
      double mean = 0;
      for (int group = 0; group < groups; ++group) {
        double slowest = 0;
        for (int i = 0; i < n; ++i)
          slowest = std::max(slowest, factor_of_rank(what, static_cast<std::uint32_t>(group * n + i)));
        mean += slowest / groups;
      }
      EXPECT_NEAR(mean, wanted, 5 * std::sqrt(of_one / groups)) << shape << ", " << n;
      EXPECT_GT(wanted, 1 + spread / 2);
    }
}

// Phi(result)^k is Phi(z), by erfc, far out on both sides; one copy is the number itself.
TEST(ComputeNoise, TheLargestOfCopiesHasTheRootOfTheProbability) {
  const auto phi = [](double z) { return 0.5 * std::erfc(-z / std::numbers::sqrt2); };
  for (const double z : {-8.0, -3.0, -0.5, 0.0, 0.7, 2.5, 5.0}) {
    EXPECT_EQ(largest_of_copies(z, 1), z);
    for (const double copies : {1.5, 2.0, 16.0, 1024.0}) {
      const double found = largest_of_copies(z, copies);
      EXPECT_GT(found, z);
      EXPECT_NEAR(std::pow(phi(found), copies) / phi(z), 1, 1e-10) << z << ", " << copies;
      // The upper tails, which 1 - Phi has not to that accuracy: of the root and of 1 - (1 - q)^(1/k).
      const double tail = -std::expm1(std::log(phi(z)) / copies);
      if (z < 2) {
        EXPECT_NEAR(phi(-found) / tail, 1, 1e-9) << z << ", " << copies;
      }
    }
  }
}

// Two of 2, 3 and 512 copies stand for 4, 6 and 1,024 ranks: the slowest of both is distributed as that of all of them.
// Mean and variance of its factor over 20,000 seeds, within five standard errors; that of a variance s^2 is about
// s^2 sqrt((kurtosis - 1) / n), and the kurtosis of the largest of many normal numbers is at most that of Gumbel, 5.4.
TEST(ComputeNoise, SlowestOfRanksThatStandForCopiesIsThatOfTheWholeJob) {
  constexpr double spread = 0.04;
  constexpr int seeds = 20'000;
  const double variance = std::log1p(spread * spread);
  const auto factor = [&](double z) { return std::exp(std::sqrt(variance) * z - variance / 2); };
  for (const int copies : {2, 3, 512}) {
    double mean = 0, squares = 0;
    for (int seed = 1; seed <= seeds; ++seed) {
      const ComputeNoise what = noise("{spread: 4 %}", static_cast<std::uint64_t>(seed), copies);
      const double slowest = std::max(factor_of_rank(what, 0), factor_of_rank(what, 1));
      mean += slowest / seeds;
      squares += slowest * slowest / seeds;
    }
    const auto [wanted, of_one] = largest_of(2 * copies, factor);
    EXPECT_NEAR(mean, wanted, 5 * std::sqrt(of_one / seeds)) << copies;
    EXPECT_NEAR((squares - mean * mean) / of_one, 1, 5 * std::sqrt(4.4 / seeds)) << copies;
    // What it would be if only the two were drawn.
    EXPECT_GT(wanted, largest_of(2, factor).first + 10 * std::sqrt(of_one / seeds));
  }
}

// All operations of a rank at all times have its factor, whatever else is drawn; another seed has another one.
TEST(ComputeNoise, SpreadIsTheSameForTheWholeRun) {
  const ComputeNoise what = noise("{spread: 5 %}"), other = noise("{spread: 5 %}", 2);
  const ComputeNoise both = noise("{spread: 5 %, slow_ranks: [{ranks: [3], factor: 2}]}");
  for (std::uint32_t rank = 0; rank < 8; ++rank) {
    const Time first = stretched(what, rank, 0);
    EXPECT_EQ(stretched(what, rank, 1'000'000, Time::from_us(1'000'000)), first);
    EXPECT_NE(stretched(what, (rank + 1) % 8, 0), first);
    EXPECT_NE(stretched(other, rank, 0), first);
    EXPECT_NEAR(static_cast<double>(stretched(both, rank, 0).ps()),
                static_cast<double>(first.ps()) * (rank == 3 ? 2 : 1), 1);
  }
  // A separate draw: not that of jitter for operation 0.
  EXPECT_NE(stretched(noise("{jitter: 5 %}"), 1, 0), stretched(what, 1, 0));
}

// The description names the rank that a microsecond of work takes longest on, and how long.
TEST(ComputeNoise, TheDescriptionNamesTheSlowestRank) {
  EXPECT_TRUE(noise("{jitter: 5 %}").description(64).empty());
  using Lines = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(noise("{slow_ranks: [{ranks: [3, 5], factor: 1.25}]}").description(64),
            (Lines{{"slowest rank", "3: its computation takes 1.25 times as long"}}));
  const ComputeNoise what = noise("{spread: 5 %}");
  std::uint32_t slowest = 0;
  for (std::uint32_t rank = 1; rank < 64; ++rank)
    if (factor_of_rank(what, rank) > factor_of_rank(what, slowest)) slowest = rank;
  EXPECT_GT(slowest, 0U);
  EXPECT_EQ(what.description(64), (Lines{{"slowest rank", fmt::format("{}: its computation takes {:.4g} times as long",
                                                                      slowest, factor_of_rank(what, slowest))}}));
}

TEST(ComputeNoise, SlowRanksAreSlowerByTheirFactor) {
  const ComputeNoise what = noise("{slow_ranks: [{ranks: [3, 5], factor: 1.2}, {ranks: [0], factor: 0.5}]}");
  EXPECT_EQ(stretched(what, 3, 7), Time::from_us(1200));
  EXPECT_EQ(stretched(what, 5, 8), Time::from_us(1200));
  EXPECT_EQ(stretched(what, 0, 8), Time::from_us(500));
  EXPECT_EQ(stretched(what, 4, 8), Time::from_us(1000));
}

TEST(ComputeNoise, StragglersComeAndGoByInterval) {
  const ComputeNoise what = noise("{stragglers: {probability: 0.25, factor: 3, interval: 10 ms}}");
  constexpr int intervals = 10'000;
  int slow = 0;
  for (std::uint32_t rank = 0; rank < 8; ++rank)
    for (int i = 0; i < intervals; ++i) {
      const Time begin = Time::from_us(10'000) * i;
      const Time first = stretched(what, rank, 1, begin);
      EXPECT_EQ(stretched(what, rank, 2, begin + Time::from_us(9'999)), first);  // the whole interval is
      EXPECT_TRUE(first == Time::from_us(1000) || first == Time::from_us(3000));
      if (first == Time::from_us(3000)) ++slow;
    }
  // Binomial: n p = 20,000 with a standard deviation of sqrt(n p (1 - p)) = 122; five of them.
  EXPECT_NEAR(slow, 20'000, 5 * 122.5);
}

TEST(ComputeNoise, NothingIsNone) {
  EXPECT_TRUE(ComputeNoise().none());
  EXPECT_TRUE(noise("{jitter: 0}").none());
  EXPECT_FALSE(noise("{jitter: 1 %}").none());
  EXPECT_TRUE(noise("{spread: 0}").none());
  EXPECT_FALSE(noise("{spread: 1 %}").none());
  EXPECT_EQ(ComputeNoise().stretched(Rank(1), 2, Time::from_ps(12345), Time()), Time::from_ps(12345));
}

TEST(ComputeNoise, Complaints) {
  const auto about = [](const std::string& text) { return complaint([&] { noise(text); }); };
  EXPECT_NE(about("{jitter: 2 percent}").find("no share"), std::string::npos);
  EXPECT_NE(about("{jitter: 200 %}").find("from 0 to 1"), std::string::npos);
  EXPECT_NE(about("{spread: 101 %}").find("from 0 to 1"), std::string::npos);
  EXPECT_NE(about("{jiter: 2 %}").find("did you mean 'jitter'"), std::string::npos);
  EXPECT_NE(about("{slow_ranks: [{ranks: [8], factor: 2}]}").find("ranks 0 to 7"), std::string::npos);
  EXPECT_NE(about("{slow_ranks: [{ranks: [1, 1], factor: 2}]}").find("already"), std::string::npos);
  EXPECT_NE(about("{slow_ranks: [{ranks: [1], factor: 0}]}").find("factor"), std::string::npos);
  EXPECT_NE(about("{stragglers: {probability: 1 %, factor: 2, interval: 0 ms}}").find("longer than 0"),
            std::string::npos);
  EXPECT_NE(about("{stragglers: {probability: 1 %, factor: 2}}").find("interval"), std::string::npos);
  EXPECT_TRUE(about("jitter: 1 %\ndistribution: uniform\n").starts_with("x.yaml:2:"));
}

}  // namespace
}  // namespace weft::test::compute_noise_test
