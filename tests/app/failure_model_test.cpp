// SPDX-License-Identifier: GPL-2.0-only
// Goodput under failures: limits, optima, and drawn failures against their expectation.
#include "app/analysis/failure_model.hpp"

#include <cmath>

#include <gtest/gtest.h>

namespace weft::failure_model_test {
namespace {

double sum(const TimeShares& shares) { return shares.useful + shares.checkpoint + shares.lost + shares.restart; }

TEST(FailureModel, SharesAddUpAndGoToTheirLimits) {
  for (const double mtbf : {1e3, 1e4, 1e6})
    for (const double interval : {100.0, 1000.0, 10000.0})
      EXPECT_NEAR(sum(expected_shares({mtbf, 60, 300}, interval)), 1, 1e-12);
  // Without failures only checkpoints cost time.
  const TimeShares never = expected_shares({1e15, 60, 300}, 600);
  EXPECT_NEAR(never.useful, 600.0 / 660, 1e-9);
  EXPECT_NEAR(never.lost, 0, 1e-9);
  // Rare ones lose half a segment each: t / (2 M) of the time, and R / M of restarts.
  const TimeShares rare = expected_shares({1e7, 0.001, 300}, 1000);
  EXPECT_NEAR(rare.lost, 1000 / 2e7, 1e-7);
  EXPECT_NEAR(rare.restart, 300 / 1e7, 1e-7);
}

// Daly's equation 13 by itself: M e^(R/M) (e^(t/M) - 1) for an interval of useful time.
TEST(FailureModel, GoodputIsDalys) {
  const FailureModel model{5000, 120, 700};
  for (const double interval : {200.0, 1000.0, 4000.0})
    EXPECT_NEAR(expected_shares(model, interval).useful,
                interval / (5000 * std::exp(700.0 / 5000) * (std::exp((interval + 120) / 5000) - 1)), 1e-12);
}

TEST(FailureModel, BestIntervalIsBest) {
  for (const double checkpoint : {1.0, 60.0, 1000.0, 20000.0}) {
    const FailureModel model{10000, checkpoint, 300};
    const double best = best_interval(model);
    const double goodput = expected_shares(model, best).useful;
    EXPECT_GT(goodput, expected_shares(model, best * 0.98).useful);
    EXPECT_GT(goodput, expected_shares(model, best * 1.02).useful);
    // But for rounding: they may be the best one to all digits.
    EXPECT_GE(goodput * (1 + 1e-12), expected_shares(model, daly_interval(model)).useful);
    EXPECT_GE(goodput * (1 + 1e-12), expected_shares(model, young_interval(model)).useful);
  }
}

// log(1 - x) + x = -x^2 / 2 - x^3 / 3 - ... is -c, c = checkpoint / mtbf, where x = sqrt(2 c) - 2 c / 3 + O(c^1.5):
// relative to the mtbf, Young's interval is 2 c / 3 too long. Daly's series has two terms more.
TEST(FailureModel, YoungAndDalyAreTheFirstAndTheHigherOrder) {
  for (const double c : {1e-4, 1e-3, 1e-2}) {
    const FailureModel model{1, c, 0};
    const double best = best_interval(model);
    EXPECT_NEAR(young_interval(model), std::sqrt(2 * c), 1e-15);
    EXPECT_NEAR(young_interval(model) - best, 2 * c / 3, 0.1 * std::pow(c, 1.5)) << c;
    EXPECT_NEAR(daly_interval(model), best, 0.02 * c * c) << c;
  }
  EXPECT_EQ(daly_interval({100, 200, 0}), 100);  // from 2 M on: M
}

// The time of a segment has a standard deviation of less than its mean plus that of the failures in it; over n segments
// the mean has that / sqrt(n). Four of them.
TEST(FailureModel, DrawnFailuresComeToWhatIsExpected) {
  const FailureModel model{3000, 90, 400};
  const double interval = 700;
  const std::uint64_t segments = 100'000;
  const TimeShares expected = expected_shares(model, interval);
  const FailureRun run = simulate_failures(model, interval, segments, 7);
  EXPECT_NEAR(sum(run.shares), 1, 1e-9);
  const double each = run.time / segments;
  const double mean = interval / expected.useful;
  EXPECT_NEAR(each, mean, 4 * mean / std::sqrt(segments));
  EXPECT_NEAR(run.shares.useful, expected.useful, 4 * expected.useful / std::sqrt(segments));
  // Failures are a Poisson process.
  EXPECT_NEAR(static_cast<double>(run.failures), run.time / 3000, 4 * std::sqrt(run.time / 3000));
  const auto relative = 4 / std::sqrt(static_cast<double>(run.failures));
  EXPECT_NEAR(run.shares.lost, expected.lost, relative * expected.lost);
  EXPECT_NEAR(run.shares.restart, expected.restart, relative * expected.restart);
  EXPECT_EQ(simulate_failures(model, interval, 100, 7).time, simulate_failures(model, interval, 100, 7).time);
  EXPECT_NE(simulate_failures(model, interval, 100, 7).time, simulate_failures(model, interval, 100, 8).time);
}

}  // namespace
}  // namespace weft::failure_model_test
