// SPDX-License-Identifier: GPL-2.0-only
// What failures, checkpoints and restarts leave of a long training run's time.
#pragma once

#include <cstdint>

namespace weft {

/// A job that fails at exponentially distributed times, on any of its machines. It computes for `interval`, writes a
/// checkpoint, and so on; a failure throws it back to the last checkpoint that is complete, after a restart. It may
/// fail while it writes and while it restarts, too. All times in seconds.
struct FailureModel {
  double mtbf = 0;        ///< mean time between failures of the whole job
  double checkpoint = 0;  ///< during which the job does not compute
  double restart = 0;     ///< detection, replacement, start and loading of the checkpoint
};

/// Where the time goes, as shares of all time; they add up to 1.
struct TimeShares {
  double useful = 0;  ///< goodput
  double checkpoint = 0;
  double lost = 0;     ///< done and thrown away, parts of checkpoints included
  double restart = 0;  ///< restarts that fail included
  double failures_per_second = 0;
};

/// Expected shares with that interval of computing between checkpoints: a segment of t = interval + checkpoint takes M
/// e^(R/M) (e^(t/M) - 1) on average, M the mtbf and R the restart (Daly, Future Generation Computer Systems 22(3),
/// 2006, doi:10.1016/j.future.2004.11.016, equation 13).
TimeShares expected_shares(const FailureModel& model, double interval);

/// sqrt(2 checkpoint mtbf) (Young, CACM 17(9), 1974, doi:10.1145/361147.361115).
double young_interval(const FailureModel& model);
/// Daly's higher-order approximation (the same paper, equation 37).
double daly_interval(const FailureModel& model);
/// The interval of the largest goodput: the root of (1 - x) e^(x + checkpoint/mtbf) = 1, x = interval / mtbf, which has
/// the derivative of the expected time vanish.
double best_interval(const FailureModel& model);

/// What happened in one run.
struct FailureRun {
  double time = 0;
  TimeShares shares;
  std::uint64_t failures = 0;
};
/// A run of `segments` intervals whose failures are drawn from the seed, failure after failure.
FailureRun simulate_failures(const FailureModel& model, double interval, std::uint64_t segments, std::uint64_t seed);

}  // namespace weft
