// SPDX-License-Identifier: GPL-2.0-only
// The steps of a training job in the order in which they are executed: again after failures, with checkpoints between.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "support/basics/error.hpp"
#include "units/time.hpp"

namespace weft {

/// When a job fails. Failures are those of the whole job: whichever part breaks, all ranks stop. With `whole_clock`
/// they come at times of the run, and strike while checkpoints are written and during restarts, too, which begin anew
/// then; without, their clock is the time spent on steps: redone ones count; checkpoints, detection and restarts do
/// not.
struct FailurePlan {
  std::vector<Time> times;   ///< ascending; or
  std::optional<Time> mean;  ///< between failures, which follow an exponential distribution
  std::uint64_t seed = 1;
  Time step_time;  ///< what a step takes on that clock, above 0
  bool whole_clock = false;
  Time write;      ///< whole_clock: from the end of a step until its checkpoint is complete
  Time pause;      ///< whole_clock: how much of that the next step waits for
  Time read;       ///< whole_clock: from the end of a restart until the checkpoint is there
  Time detection;  ///< from a failure until it is noticed
  Time restart;    ///< from then until ranks read the checkpoint: processes start, communicators are made
  bool any() const { return mean.has_value() || !times.empty(); }
};

/// One execution of a step.
struct StepRun {
  std::uint32_t step = 0;      ///< of the job
  std::uint32_t number = 0;    ///< among the executions that were not broken off
  bool saves = false;          ///< a checkpoint follows
  bool broken = false;         ///< a failure breaks it off
  Time lost;                   ///< broken: after so long, in which restarts may have failed
  std::uint32_t restored = 0;  ///< broken: steps in the newest complete checkpoint; 0: none, the job starts anew
  // Data of steps [first_read, first_read + reads) are asked for at its beginning.
  std::uint32_t first_read = 0;
  std::uint32_t reads = 0;
};

struct OutlineSettings {
  std::uint32_t steps = 1;
  std::uint32_t checkpoint_every = 0;  ///< steps; 0: no checkpoints
  /// A checkpoint that is written beside the next step is complete when that step is; else at once.
  bool asynchronous = false;
  std::optional<std::uint32_t> prefetch;  ///< steps whose data are asked for ahead; nothing: no data
  FailurePlan failures;
  SourceLine where;  ///< of the failures, for complaints
};

/// The same on all processes: a function of its settings. Without failures it takes no memory.
class RunOutline {
 public:
  /// Throws InputError if the job fails so often that it hardly ends (more than 16 executions a step, over all).
  explicit RunOutline(const OutlineSettings& settings);

  std::uint64_t runs() const { return runs_.empty() ? settings_.steps : runs_.size(); }
  StepRun run(std::uint64_t index) const;
  /// Executions that are not broken off.
  std::uint32_t complete() const {
    return complete_.empty() ? settings_.steps : static_cast<std::uint32_t>(complete_.size());
  }
  /// The step of the job that one of them executes.
  std::uint32_t step_of(std::uint32_t number) const { return complete_.empty() ? number : complete_[number]; }
  std::uint64_t failures() const { return failures_; }
  std::uint64_t checkpoints() const;
  std::uint64_t restores() const;
  /// Steps whose data are requested, over all executions.
  std::uint64_t reads() const;

 private:
  class Clock;
  StepRun fresh(std::uint32_t step, bool first) const;
  void draw();

  OutlineSettings settings_;
  std::vector<StepRun> runs_;            // if there are failures
  std::vector<std::uint32_t> complete_;  // if there are failures: steps of complete executions
  std::uint64_t failures_ = 0;
};

}  // namespace weft
