// SPDX-License-Identifier: GPL-2.0-only
#include "app/analysis/failure_model.hpp"

#include <cmath>

#include "support/basics/contract.hpp"
#include "support/basics/random.hpp"

namespace weft {
namespace {

/// Entity of random numbers.
constexpr std::uint64_t failure_entity = std::uint64_t{1} << 56;

void require_sound(const FailureModel& model, double interval) {
  WEFT_EXPECT(model.mtbf > 0 && model.checkpoint >= 0 && model.restart >= 0 && interval > 0,
              "mtbf {}, checkpoint {}, restart {}, interval {}", model.mtbf, model.checkpoint, model.restart, interval);
}

}  // namespace

TimeShares expected_shares(const FailureModel& model, double interval) {
  require_sound(model, interval);
  const double m = model.mtbf;
  // Attempts at a segment that fail, until one does not; each of them is followed by restarts until one does not fail.
  const double failed = std::expm1((interval + model.checkpoint) / m);
  const double restarts = failed * m * std::expm1(model.restart / m);
  const double attempts = failed * m;
  const double all = attempts + restarts;
  TimeShares shares;
  shares.useful = interval / all;
  shares.checkpoint = model.checkpoint / all;
  shares.restart = restarts / all;
  shares.lost = (attempts - interval - model.checkpoint) / all;
  shares.failures_per_second = 1 / m;
  return shares;
}

double young_interval(const FailureModel& model) { return std::sqrt(2 * model.checkpoint * model.mtbf); }

double daly_interval(const FailureModel& model) {
  const double half = model.checkpoint / (2 * model.mtbf);
  if (half >= 1) return model.mtbf;
  return young_interval(model) * (1 + std::sqrt(half) / 3 + half / 9) - model.checkpoint;
}

double best_interval(const FailureModel& model) {
  const double cost = model.checkpoint / model.mtbf;
  // log(1 - x) + x + cost falls from cost at 0 to minus infinity at 1.
  double low = 0;
  double high = 1;
  for (int i = 0; i < 200 && low < high; ++i) {
    const double x = (low + high) / 2;
    if (x == low || x == high) break;
    (std::log1p(-x) + x + cost > 0 ? low : high) = x;
  }
  return low * model.mtbf;
}

FailureRun simulate_failures(const FailureModel& model, double interval, std::uint64_t segments, std::uint64_t seed) {
  require_sound(model, interval);
  FailureRun run;
  double lost = 0;
  double restarts = 0;
  double left = random_exponential(model.mtbf, seed, failure_entity, 0);  // until the next failure
  const auto work = [&](double duration, double& broken_off) {
    if (duration <= left) {
      left -= duration;
      return true;
    }
    broken_off += left;
    left = random_exponential(model.mtbf, seed, failure_entity, ++run.failures);
    return false;
  };
  for (std::uint64_t done = 0; done < segments; ++done) {
    while (!work(interval + model.checkpoint, lost)) {
      while (!work(model.restart, restarts)) {
      }
      restarts += model.restart;
    }
  }
  const double useful = interval * static_cast<double>(segments);
  const double written = model.checkpoint * static_cast<double>(segments);
  run.time = useful + written + lost + restarts;
  run.shares = {useful / run.time, written / run.time, lost / run.time, restarts / run.time,
                static_cast<double>(run.failures) / run.time};
  return run;
}

}  // namespace weft
