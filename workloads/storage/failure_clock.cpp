// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/storage/failure_clock.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace weft {
namespace {

using Changes = std::vector<std::pair<std::string, std::string>>;

/// Runs of the same job with other steps, checkpoints and failures.
class ShortRuns {
 public:
  ShortRuns(const WorkloadContext& context, bool checkpoints) : context_(context), checkpoints_(checkpoints) {}

  Time of(int steps, int every, const std::string& failures = "~") const {
    Changes changes{{"steps", std::to_string(steps)}, {"failures", failures}};
    if (checkpoints_) {
      changes.emplace_back("checkpoint.every", std::to_string(every));
      changes.emplace_back("checkpoint.asynchronous", "false");
    }
    return context_.ideal_time(changes);
  }

 private:
  const WorkloadContext& context_;
  bool checkpoints_;
};

}  // namespace

void time_failures(const WorkloadContext& context, TrainingEvents& events) {
  FailurePlan& plan = events.failures;
  const bool checkpoints = events.checkpoints.targets.count > 0;
  constexpr int never = 1'000'000;
  const ShortRuns runs(context, checkpoints);
  try {
    const Time one = runs.of(1, never), two = runs.of(2, never);
    plan.whole_clock = true;
    plan.step_time = std::max(two - one, Time::from_ps(1));
    if (!checkpoints) return;
    plan.write = runs.of(1, 1) - one;
    const Time half = Time::from_ps(plan.step_time.ps() / 2);
    const Time broken = runs.of(
        2, 1, fmt::format("{{times: [{} ps], step_time: {} ps}}", (plan.step_time + half).ps(), plan.step_time.ps()));
    const Time undisturbed = runs.of(2, 1);
    plan.read = std::max(broken - undisturbed - half, Time());
  } catch (const InputError& error) {
    throw InputError(events.failures_where,
                     fmt::format("a step cannot be timed on the ideal network ({}); give `step_time`", error.what()));
  }
}

}  // namespace weft
