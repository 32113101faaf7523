// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/run_outline.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "support/random.hpp"
#include "units/text.hpp"

namespace weft {
namespace {

/// Entity of the random numbers of failures.
constexpr std::uint64_t failure_entity = std::uint64_t{1} << 57;
constexpr std::uint64_t most_runs_of_step = 16;

/// The times of failures, one after another.
class FailureTimes {
 public:
  explicit FailureTimes(const FailurePlan& plan) : plan_(plan) {}

  Time next() {
    if (!plan_.mean) return at_ < plan_.times.size() ? plan_.times[at_++] : Time::max();
    // Beyond what can be simulated no failure comes.
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
  const std::uint64_t newest = std::uint64_t{step} + *settings_.prefetch;  // asked for by now
  run.first_read = first ? step : static_cast<std::uint32_t>(std::min<std::uint64_t>(newest, settings_.steps));
  run.reads = static_cast<std::uint32_t>(std::min<std::uint64_t>(newest + 1, settings_.steps)) - run.first_read;
  return run;
}

StepRun RunOutline::run(std::uint64_t index) const {
  return runs_.empty() ? fresh(static_cast<std::uint32_t>(index), index == 0) : runs_.at(index);
}

void RunOutline::draw() {
  const FailurePlan& plan = settings_.failures;
  FailureTimes times(plan);
  Time failure = times.next();
  Time now;
  bool first = true;
  std::uint32_t saved = 0;   // steps in the newest complete checkpoint
  std::uint32_t coming = 0;  // in one that is being written
  for (std::uint32_t step = 0; step < settings_.steps;) {
    if (runs_.size() >= most_runs_of_step * settings_.steps)
      throw InputError(settings_.where,
                       fmt::format("after {} executions {} of {} steps are done; a longer time between failures or a "
                                   "checkpoint more often would let the job end",
                                   runs_.size(), step, settings_.steps));
    StepRun run = fresh(step, first);
    run.number = static_cast<std::uint32_t>(complete_.size());
    first = run.broken = failure < now + plan.step_time;
    if (run.broken) {
      run.lost = failure - now;
      run.saves = false;
      run.restored = coming = saved;
      now = failure;
      failure = times.next();
      step = saved;
    } else {
      now += plan.step_time;
      complete_.push_back(step++);
      saved = coming;
      if (run.saves) coming = step;
      if (!settings_.asynchronous) saved = coming;
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
