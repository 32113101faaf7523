// SPDX-License-Identifier: GPL-2.0-only
// Failures on the clock of the whole run: during steps, while checkpoints are written, and during restarts.
#include <gtest/gtest.h>

#include "tests/workloads/workload_under_test.hpp"
#include "workloads/storage/run_outline.hpp"

namespace weft::test::failure_clock_test {
namespace {

Time us(std::int64_t value) { return Time::from_ps(value * 1'000'000); }

/// Six steps of 10 us, a checkpoint of 4 us after every second one; 5 us until a failure is noticed, 3 us to restart, 2
/// us to read.
OutlineSettings settings(std::vector<Time> failures) {
  OutlineSettings result;
  result.steps = 6;
  result.checkpoint_every = 2;
  result.failures.times = std::move(failures);
  result.failures.whole_clock = true;
  result.failures.step_time = us(10);
  result.failures.write = result.failures.pause = us(4);
  result.failures.read = us(2);
  result.failures.detection = us(5);
  result.failures.restart = us(3);
  return result;
}

TEST(FailureClock, FailureWhileTrainingWaitsForACheckpoint) {
  // The second step ends at 20 us, its checkpoint at 24 us.
  const RunOutline outline(settings({us(22)}));
  EXPECT_FALSE(outline.run(1).broken);
  EXPECT_FALSE(outline.run(1).saves);
  EXPECT_TRUE(outline.run(2).broken);
  EXPECT_EQ(outline.run(2).lost, us(2));
  EXPECT_EQ(outline.run(2).restored, 0U);
  EXPECT_EQ(outline.run(3).step, 0U);
  EXPECT_EQ(outline.runs(), 2U + 1 + 6);
  EXPECT_EQ(outline.checkpoints(), 3U);
  EXPECT_EQ(outline.restores(), 0U);

  const RunOutline later(settings({us(25)}));
  EXPECT_TRUE(later.run(1).saves);
  EXPECT_EQ(later.run(2).lost, us(1));
  EXPECT_EQ(later.run(2).restored, 2U);
  EXPECT_EQ(later.run(3).step, 2U);
}

TEST(FailureClock, FailureOfTheLastCheckpoint) {
  // Six steps and two checkpoints take 68 us; the third one is written until 72 us.
  const RunOutline outline(settings({us(70)}));
  EXPECT_TRUE(outline.run(6).broken);
  EXPECT_EQ(outline.run(6).lost, us(2));
  EXPECT_EQ(outline.run(6).restored, 4U);
  EXPECT_EQ(outline.run(7).step, 4U);
  EXPECT_EQ(outline.runs(), 9U);
  EXPECT_TRUE(outline.run(8).saves);
}

TEST(FailureClock, RestartsBeginAnew) {
  // In the third step, which began at 24 us; in the restart, until 40 us; and 4 us into the third step again at 46 us.
  const RunOutline outline(settings({us(30), us(36), us(50)}));
  EXPECT_EQ(outline.failures(), 3U);
  EXPECT_EQ(outline.run(2).lost, us(36 - 24));
  EXPECT_EQ(outline.run(2).restored, 2U);
  EXPECT_TRUE(outline.run(3).broken);
  EXPECT_EQ(outline.run(3).lost, us(4));
  EXPECT_EQ(outline.runs(), 2U + 2 + 4);
}

TEST(FailureClock, RestartsWithoutACheckpointReadNone) {
  // 8 us after the failure at 5 us: the one at 14 us strikes in the first step again, 1 us after its beginning.
  const RunOutline outline(settings({us(5), us(14)}));
  EXPECT_EQ(outline.run(0).lost, us(5));
  EXPECT_EQ(outline.run(1).lost, us(1));
  EXPECT_EQ(outline.restores(), 0U);
}

TEST(FailureClock, CheckpointsBesideStepsAreCompleteWhenTheyAreWritten) {
  // Training waits 1 us for the copy; the checkpoint is complete 7 us after the step, at 27 us.
  const auto beside = [](Time failure) {
    OutlineSettings result = settings({failure});
    result.asynchronous = true;
    result.failures.pause = us(1);
    result.failures.write = us(7);
    return result;
  };
  const RunOutline early(beside(us(26)));
  EXPECT_EQ(early.run(2).lost, us(5));
  EXPECT_EQ(early.run(2).restored, 0U);
  const RunOutline late(beside(us(28)));
  EXPECT_EQ(late.run(2).lost, us(7));
  EXPECT_EQ(late.run(2).restored, 2U);
  // Within the copy the checkpoint is lost.
  const Time half = Time::from_ps(20'500'000);
  EXPECT_EQ(RunOutline(beside(half)).run(2).restored, 0U);
  EXPECT_FALSE(RunOutline(beside(half)).run(1).saves);
}

TEST(FailureClock, JobsThatNeverEndAreRefused) {
  // A restart of 10 us hardly ever succeeds between failures of 1 us.
  OutlineSettings hopeless = settings({});
  hopeless.failures.mean = us(1);
  EXPECT_THROW(RunOutline{hopeless}, InputError);
}

// Only who runs an experiment can time its steps.
TEST(FailureClock, WithoutAMachineStepsHaveToBeGiven) {
  const std::string job = "{kind: training, model: gpt2, device: h100-sxm, steps: 2, failures: {mean_time: 1 s}}";
  expect_complaint(job, context_of(1), "x.yaml:1", {"step_time"});
  WorkloadContext context = context_of(1);
  std::vector<std::string> asked;
  context.ideal_time = [&](const auto& changes) {
    for (const auto& [key, value] : changes) asked.push_back(key + "=" + value);
    return Time::from_ps(1000 * static_cast<std::int64_t>(asked.size()));
  };
  EXPECT_NO_THROW(read_workload(job, context));
  EXPECT_EQ(asked.front(), "steps=1");
}

// A job is timed without the others, in its place, whether it writes its workload out or has it in a file.
TEST(FailureClock, JobsAmongOthersAreTimedAlone) {
  const std::string job = "{kind: training, model: gpt2, device: h100-sxm, steps: 2, failures: {mean_time: 1 s}}";
  const TemporaryFile file("job.yaml", job);
  WorkloadContext context = context_of(4);
  std::vector<std::vector<std::string>> runs;
  context.ideal_time = [&](const auto& changes) {
    runs.emplace_back();
    for (const auto& [key, value] : changes) runs.back().push_back(key + "=" + value);
    return Time::from_us(static_cast<std::int64_t>(runs.size()));
  };
  const std::string jobs = "kind: jobs, jobs: [{ranks: 1, workload: " + job +
                           "}, {name: b, ranks: 1, background: true, " +
                           "set: [micro_batches=3], workload: " + file.path() + "}]";
  EXPECT_NO_THROW(read_workload("{" + jobs + "}", context));
  ASSERT_EQ(runs.size(), 4U);  // one step and two of each
  EXPECT_EQ(runs[1], (std::vector<std::string>{"only='job0'", "jobs.0.background=false",
                                               "jobs.0.set=['steps=2', 'failures=~']"}));
  EXPECT_EQ(runs[2], (std::vector<std::string>{"only='b'", "jobs.1.background=false",
                                               "jobs.1.set=['micro_batches=3', 'steps=1', 'failures=~']"}));
  // A job that is left out needs no clock.
  runs.clear();
  EXPECT_NO_THROW(read_workload("{only: job0, " + jobs + "}", context));
  EXPECT_EQ(runs.size(), 2U);
}

}  // namespace
}  // namespace weft::test::failure_clock_test
