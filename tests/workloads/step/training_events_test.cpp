// SPDX-License-Identifier: GPL-2.0-only
// Data loading, checkpoints and failures of training jobs: bytes in packets, times in closed form, complaints.
#include <gtest/gtest.h>

#include "tests/runtime/job.hpp"
#include "tests/workloads/workload_under_test.hpp"
#include "workloads/storage/run_outline.hpp"
#include "workloads/training/training_workload.hpp"

namespace weft::test::training_events_test {
namespace {

// A GPT of two blocks of width 64.
const std::string model =
    R"({"model_type": "gpt2", "n_embd": 64, "n_head": 4, "n_layer": 2, "n_positions": 64, "vocab_size": 1000})";

struct Experiment {
  TemporaryFile config{"config.json", model};
  std::string text(const std::string& keys) const {
    return "{kind: training, model: " + config.path() + ", device: h100-sxm, micro_batch: 1, sequence_length: 64, " +
           keys + "}";
  }
};

std::int64_t parameters(const Experiment& experiment) {
  return read_model(JsonConfig::load(experiment.config.path())).parameters();
}

// The star of tests/runtime/job.hpp and a shard of 64 KiB in four pieces, as in checkpoint_test.cpp: 80 ps per byte,
// two links of 1 us.
constexpr std::int64_t frame_ps = (4096 + 82) * 80, word_ps = (64 + 82) * 80, path_ps = 2'000'000, ack_ps = 86 * 80;
constexpr std::int64_t shard_ps = 17 * frame_ps + path_ps, answer_ps = 2 * word_ps + path_ps;
constexpr std::int64_t write_ps = shard_ps + ack_ps + answer_ps;
constexpr std::int64_t read_ps = answer_ps + ack_ps + shard_ps;
const std::string slow = "efficiency: 0.0001";
const std::string shard = "size: 64 KiB, piece: 16 KiB, targets: 1";

/// Compute of a step of a lone rank, which is all that a step is.
std::int64_t step_ps(const Experiment& experiment, const std::string& keys = "steps: 1") {
  return read_workload(experiment.text(keys), context_of(1))->estimate().compute.ps();
}

TEST(TrainingEvents, CheckpointsThatTrainingWaitsFor) {
  const Experiment experiment;
  Job job(2, experiment.text("steps: 6, checkpoint: {every: 2, " + shard + "}"));
  job.complete();
  EXPECT_EQ(job.rank(0).finished, 6 * step_ps(experiment) + 3 * write_ps);
  EXPECT_EQ(job.rank(1).bytes_received, 3 * 65536);
}

// Steps are longer than a write, which they hide: only the last one shows, and the copies to the host's memory first,
// at the 64 GB/s of the H100's link.
TEST(TrainingEvents, CheckpointsBesideTheNextSteps) {
  const Experiment experiment;
  const std::int64_t step = step_ps(experiment, slow);
  ASSERT_GT(2 * step, write_ps);
  Job job(2, experiment.text("steps: 6, checkpoint: {every: 2, asynchronous: true, " + shard + "}, " + slow));
  job.complete();
  EXPECT_EQ(job.rank(0).finished, 6 * step + write_ps + 3 * 65536 * 1000 / 64);
}

// Of every parameter 2 bytes of weight and 12 of Adam's state, once over all ranks that hold the same: 14 P bytes in
// all, and what rounding up of shares adds (Rajbhandari et al., arXiv:1910.02054, 3.1).
TEST(TrainingEvents, CheckpointsHaveFourteenBytesOfEachParameter) {
  const Experiment experiment;
  for (const std::string sharding : {"none", "optimizer", "parameters"}) {
    Job job(6, experiment.text("parallelism: {data: 4, sharding: " + sharding +
                               "}, steps: 2, checkpoint: {every: 1, targets: 2}"));
    job.complete();
    const std::int64_t share = (parameters(experiment) + 3) / 4;
    EXPECT_EQ(job.rank(4).bytes_received, 2 * 2 * 14 * share);
    EXPECT_EQ(job.rank(5).bytes_received, 2 * 2 * 14 * share);
    EXPECT_EQ(job.rank(4).bytes_sent, 2 * 2 * 64);
  }
  // Two stages hold different parts, tensor ranks halves of matrices.
  Job stages(9, experiment.text("parallelism: {pipeline: 2, tensor: 2, data: 2}, micro_batches: 2, steps: 1, "
                                "checkpoint: {every: 1, targets: 1, piece: 10 kB}"));
  stages.complete();
  const auto& workload = dynamic_cast<const TrainingWorkload&>(*stages.workload);
  std::int64_t expected = 0;
  for (const std::uint32_t stage : {0U, 1U}) expected += 4 * 14 * ((workload.plan(stage).parameters.sum() + 1) / 2);
  EXPECT_EQ(stages.rank(8).bytes_received, expected);
  EXPECT_GE(expected, 14 * parameters(experiment));
}

// The first stage's ranks share out the samples of their copy.
TEST(TrainingEvents, DataComesOnce) {
  const Experiment experiment;
  Job job(10, experiment.text("parallelism: {pipeline: 2, tensor: 2, data: 2}, micro_batches: 4, steps: 5, "
                              "data_loading: {bytes_per_sample: 30001 B, targets: 2, prefetch: 2}"));
  job.complete();
  // 4 sequences of each copy on two tensor ranks.
  const std::int64_t share = (4 * 30001 + 1) / 2;
  EXPECT_EQ(job.rank(8).bytes_sent + job.rank(9).bytes_sent, 5 * 4 * share);
  EXPECT_EQ(job.rank(8).bytes_received, 5 * 2 * 64);
  std::int64_t readers = 0;
  const auto& layout = dynamic_cast<const TrainingWorkload&>(*job.workload).layout();
  for (const MessageRecord& row : job.messages()) {
    if (row.source < 8) continue;
    EXPECT_EQ(layout.place(Rank(row.destination)).pipeline, 0U);
    ++readers;
  }
  EXPECT_EQ(readers, 5 * 4);
}

// Without prefetch every step waits for its data: a request, then the pieces.
TEST(TrainingEvents, StepsWaitForTheirData) {
  const Experiment experiment;
  const std::string data = "micro_batches: 1, data_loading: {bytes_per_sample: 64 KiB, piece: 16 KiB, targets: 1";
  const std::int64_t step = step_ps(experiment, slow);
  Job late(2, experiment.text("steps: 4, " + data + ", prefetch: 0}, " + slow));
  late.complete();
  EXPECT_EQ(late.rank(0).finished, 4 * (step + read_ps));
  // Ahead of time, only the first step does. The ACK of the second step's request goes before the last frames.
  Job ahead(2, experiment.text("steps: 4, " + data + ", prefetch: 1}, " + slow));
  ahead.complete();
  EXPECT_EQ(ahead.rank(0).finished, 4 * step + read_ps + ack_ps);
}

// A failure in the middle of the fourth step: half of it and the third step are lost, the checkpoint of two is read.
TEST(TrainingEvents, FailureCostsLostWorkDetectionRestartAndReload) {
  const Experiment experiment;
  const std::int64_t step = step_ps(experiment);
  const std::string when = "failures: {times: [" + std::to_string(3 * step + step / 2) +
                           " ps], step_time: " + std::to_string(step) + " ps, detection: 70 us, restart: 30 us}";
  Job job(2, experiment.text("steps: 6, checkpoint: {every: 2, " + shard + "}, " + when));
  job.complete();
  EXPECT_EQ(job.rank(0).finished, (3 + 4) * step + step / 2 + 100'000'000 + read_ps + 3 * write_ps);
  EXPECT_EQ(job.rank(1).bytes_sent, 65536 + 3 * 64);
  // Without a checkpoint all is done again.
  Job anew(1, experiment.text("steps: 6, " + when));
  anew.complete();
  EXPECT_EQ(anew.rank(0).finished, (3 + 6) * step + step / 2 + 100'000'000);
}

TEST(RunOutline, WithoutFailuresStepsFollowEachOther) {
  const RunOutline outline({5, 2, false, 1, {}, {}});
  EXPECT_EQ(outline.runs(), 5U);
  EXPECT_EQ(outline.checkpoints(), 2U);
  EXPECT_EQ(outline.reads(), 5U);
  std::uint32_t reads = 0;
  for (std::uint64_t i = 0; i < 5; ++i) {
    EXPECT_EQ(outline.run(i).step, i);
    EXPECT_EQ(outline.run(i).saves, i == 1 || i == 3);
    EXPECT_EQ(outline.run(i).first_read, reads);
    reads += outline.run(i).reads;
  }
  EXPECT_EQ(reads, 5U);
}

// A checkpoint that is still being written when a failure comes does not count.
TEST(RunOutline, CheckpointsBesideStepsAreCompleteOneStepLater) {
  OutlineSettings settings{4, 2, true, std::nullopt, {}, {}};
  settings.failures.step_time = us(10);
  settings.failures.times = {us(25)};
  EXPECT_EQ(RunOutline(settings).run(2).restored, 0U);
  settings.failures.times = {us(35)};
  EXPECT_EQ(RunOutline(settings).run(3).restored, 2U);
  EXPECT_EQ(RunOutline(settings).run(4).step, 2U);
  settings.asynchronous = false;
  settings.failures.times = {us(25)};
  EXPECT_EQ(RunOutline(settings).run(2).restored, 2U);
}

// Steps done again keep their own calls, and all of them are executed in the end.
TEST(RunOutline, DrawnFailuresAreThoseOfTheirSeed) {
  OutlineSettings settings{200, 5, false, 3, {}, {}};
  settings.failures.mean = us(100);
  settings.failures.step_time = us(10);
  const RunOutline outline(settings);
  EXPECT_GT(outline.failures(), 5U);
  std::uint32_t next = 0, complete = 0;
  for (std::uint64_t i = 0; i < outline.runs(); ++i) {
    const StepRun run = outline.run(i);
    EXPECT_EQ(run.step, next);
    if (run.broken) {
      EXPECT_LT(run.lost, us(10));
      EXPECT_EQ(run.restored, next / 5 * 5);
      next = run.restored;
    } else {
      EXPECT_EQ(run.number, complete);
      EXPECT_EQ(outline.step_of(complete++), next++);
    }
  }
  EXPECT_EQ(next, 200U);
  EXPECT_EQ(complete, outline.complete());
  EXPECT_EQ(RunOutline(settings).runs(), outline.runs());
  settings.failures.seed = 2;
  bool differs = false;
  const RunOutline other(settings);
  for (std::uint64_t i = 0; i < std::min(other.runs(), outline.runs()); ++i)
    differs = differs || other.run(i).lost != outline.run(i).lost;
  EXPECT_TRUE(differs);
}

TEST(TrainingEvents, Complaints) {
  const Experiment experiment;
  const auto expect = [&](const std::string& keys, const std::string& part) {
    expect_complaint(experiment.text(keys), context_of(4), "x.yaml:1", {part});
  };
  expect("checkpoint: {targets: 1}", "'every'");
  expect("checkpoint: {every: 1}", "'targets'");
  expect("checkpoint: {every: 1, targets: 4}", "4");
  expect("data_loading: {targets: 1}", "'bytes_per_sample'");
  expect("data_loading: {targets: 1, bytes_per_sample: 0 B}", "found 0 B");
  expect("data_loading: {targets: 2, bytes_per_sample: 1 B}, checkpoint: {targets: 2, every: 1}",
         "some must be left for training");
  expect("checkpoint: {every: 1, targets: 3}", "2 of them would have nothing to do");
  expect("failures: {step_time: 1 ms}", "either 'times'");
  expect("failures: {times: [1 ms], mean_time: 1 s, step_time: 1 ms}", "either 'times'");
  expect("failures: {times: [2 ms, 1 ms], step_time: 1 ms}", "not later than the one before");
  expect("failures: {mean_time: 1 s}", "'step_time'");
  expect("steps: 10, failures: {mean_time: 1 us, step_time: 1 ms}", "would let the job end");
}

}  // namespace
}  // namespace weft::test::training_events_test
