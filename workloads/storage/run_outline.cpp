// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/storage/run_outline.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "support/basics/random.hpp"
#include "units/text.hpp"

namespace weft {
namespace {

/// Entity of the random numbers of failures.
constexpr std::uint64_t failure_entity = std::uint64_t{1} << 57;
constexpr std::uint64_t max_runs_of_step = 16;

/// The times of failures, one after another.
class FailureTimes {
 public:
  explicit FailureTimes(const FailurePlan& plan) : plan_(plan) {}

  Time next() {
    if (!plan_.mean) return at_ < plan_.times.size() ? plan_.times[at_++] : Time::max();
    // No failure is drawn beyond the simulable time.
    const double gap = random_exponential(plan_.mean->seconds(), plan_.seed, failure_entity, at_++);
    constexpr double longest = 1e6;
    if (gap > longest || now_.seconds() > longest) return Time::max();
    now_ += Time::from_ps(std::llround(gap * 1e12));
    return now_;
  }

 private:
  const FailurePlan& plan_;
  std::size_t at_ = 0;
  Time now_;
};

}  // namespace

RunOutline::RunOutline(const OutlineSettings& settings) : settings_(settings) {
  if (settings_.failures.any()) draw();
}

StepRun RunOutline::fresh(std::uint32_t step, bool first) const {
  StepRun run;
  run.step = run.number = step;
  run.saves = settings_.checkpoint_every > 0 && (step + 1) % settings_.checkpoint_every == 0;
  if (!settings_.prefetch) return run;
  const std::uint64_t newest = std::uint64_t{step} + *settings_.prefetch;  // requested by now
  run.first_read = first ? step : static_cast<std::uint32_t>(std::min<std::uint64_t>(newest, settings_.steps));
  run.reads = static_cast<std::uint32_t>(std::min<std::uint64_t>(newest + 1, settings_.steps)) - run.first_read;
  return run;
}

StepRun RunOutline::run(std::uint64_t index) const {
  return runs_.empty() ? fresh(static_cast<std::uint32_t>(index), index == 0) : runs_.at(index);
}

/// The clock of failures, and which checkpoint is complete.
class RunOutline::Clock {
 public:
  explicit Clock(const OutlineSettings& settings)
      : plan_(settings.failures), asynchronous_(settings.asynchronous), times_(plan_), failure_(times_.next()) {}

  /// Works for so long, unless a failure is earlier.
  bool works(Time duration) {
    if (failure_ < now_ + duration) return false;
    now_ += duration;
    if (plan_.whole_clock && coming_ > saved_ && now_ >= complete_at_) saved_ = coming_;
    return true;
  }
  /// A step is over.
  void after_step() {
    if (!plan_.whole_clock) saved_ = coming_;
  }
  /// Its checkpoint, of the first `steps` steps, is written: false if a failure strikes while training waits for it.
  bool saves(std::uint32_t steps) {
    const std::uint32_t older = std::exchange(coming_, steps);
    const Time older_at = complete_at_;
    if (!plan_.whole_clock) {
      if (!asynchronous_) saved_ = coming_;
      return true;
    }
    complete_at_ = std::max(now_, complete_at_) + plan_.write;  // one after another
    if (works(plan_.pause)) return true;
    coming_ = older;
    complete_at_ = older_at;
    return false;
  }
  /// The failure strikes. Gives the time from `began` until the restart that succeeds begins.
  Time breaks(Time began, std::uint64_t& failures) {
    if (plan_.whole_clock && coming_ > saved_ && failure_ >= complete_at_) saved_ = coming_;
    coming_ = saved_;
    complete_at_ = Time();
    const Time restart =
        plan_.whole_clock ? plan_.detection + plan_.restart + (saved_ > 0 ? plan_.read : Time()) : Time();
    do {
      now_ = failure_;
      failure_ = times_.next();
      ++failures;
    } while (failure_ < now_ + restart && failures < max_failed_restarts);
    const Time lost = now_ - began;
    now_ += restart;
    return lost;
  }
  Time now() const { return now_; }
  std::uint32_t saved() const { return saved_; }

 private:
  static constexpr std::uint64_t max_failed_restarts = 1'000'000;

  const FailurePlan& plan_;
  bool asynchronous_;
  FailureTimes times_;
  Time failure_;
  Time now_;
  std::uint32_t saved_ = 0;   // steps in the newest complete checkpoint
  std::uint32_t coming_ = 0;  // in one that is being written
  Time complete_at_;          // when it is complete, on the whole clock
};

void RunOutline::draw() {
  Clock clock(settings_);
  bool first = true, writing = false;
  for (std::uint32_t step = 0; step < settings_.steps || writing;) {
    if (runs_.size() >= max_runs_of_step * settings_.steps || failures_ >= max_runs_of_step * settings_.steps)
      throw InputError(settings_.where,
                       fmt::format("after {} executions and {} failures {} of {} steps are done; a longer time between "
                                   "failures, a shorter restart or a checkpoint more often would let the job end",
                                   runs_.size(), failures_, step, settings_.steps));
    StepRun run = fresh(step, first);
    run.number = static_cast<std::uint32_t>(complete_.size());
    const Time began = clock.now();
    first = run.broken = writing || !clock.works(settings_.failures.step_time);
    if (run.broken) {
      run.lost = clock.breaks(began, failures_);
      run.saves = writing = false;
      step = run.restored = clock.saved();
    } else {
      complete_.push_back(step++);
      clock.after_step();
      if (run.saves) writing = !clock.saves(step);
      run.saves = run.saves && !writing;
    }
    runs_.push_back(run);
  }
}

std::uint64_t RunOutline::checkpoints() const {
  if (runs_.empty()) return settings_.checkpoint_every > 0 ? settings_.steps / settings_.checkpoint_every : 0;
  return static_cast<std::uint64_t>(
      std::count_if(runs_.begin(), runs_.end(), [](const auto& run) { return run.saves; }));
}

std::uint64_t RunOutline::restores() const {
  return static_cast<std::uint64_t>(
      std::count_if(runs_.begin(), runs_.end(), [](const auto& run) { return run.broken && run.restored > 0; }));
}

std::uint64_t RunOutline::reads() const {
  if (runs_.empty()) return settings_.prefetch ? settings_.steps : 0;
  std::uint64_t sum = 0;
  for (const StepRun& run : runs_) sum += run.reads;
  return sum;
}

}  // namespace weft
