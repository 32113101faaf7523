// SPDX-License-Identifier: GPL-2.0-only
// Pipeline schedules against their sources: bubbles, activations, transfers, order of slots. Communication is free.
//
// F, I, W: times of the forward pass, the gradient of inputs and that of weights of one chunk; B = I + W is the whole
// backward pass. The zero-bubble papers write B for what is I here.
#include <gtest/gtest.h>

#include "tests/workloads/parallel/pipeline_execution.hpp"

namespace weft::test::pipeline_schedule_test {
namespace {

const std::vector<PassTimes> all_times{{1, 1, 1},   {10, 20, 10}, {10, 8, 14}, {10, 14, 8},
                                       {14, 8, 10}, {8, 14, 10},  {8, 10, 14}, {10, 25, 5}};

std::string text(const std::string& schedule, const PipelineShape& shape, std::uint32_t rank) {
  std::string result;
  const auto stream = pipeline_schedule(schedule)->slots(shape, rank);
  for (PipelineSlot slot; stream->next(slot);)
    result += fmt::format("{}{}.{}{}", "FBIW"[static_cast<int>(slot.pass)], slot.micro_batch, slot.chunk,
                          slot.with_next ? "&" : " ");
  result.pop_back();
  return result;
}

PipelineExecution run(const std::string& schedule, const PipelineShape& shape, const PassTimes& times) {
  return execute(*pipeline_schedule(schedule), shape, times);
}

TEST(PipelineSchedule, OrdersAreThePublishedOnes) {
  EXPECT_EQ(text("gpipe", {2, 1, 3}, 0), "F0.0 F1.0 F2.0 B2.0 B1.0 B0.0");  // arXiv:1811.06965, figure 2c
  EXPECT_EQ(text("1f1b", {4, 1, 4}, 2), "F0.0 F1.0 B0.0 F2.0 B1.0 F3.0 B2.0 B3.0");
  // Megatron-LM, p = 2, v = 2: rank 0 is (2 - 0 - 1) * 2 + (2 - 1) * 2 = 4 forward passes ahead.
  EXPECT_EQ(text("interleaved", {2, 2, 4}, 0),
            "F0.0 F1.0 F0.1 F1.1 F2.0 B0.1 F3.0 B1.1 F2.1 B0.0 F3.1 B1.0 B2.1 B3.1 B2.0 B3.0");
  // Megatron-LM with --overlap-moe-expert-parallel-comm: one more ahead, and then pairs.
  EXPECT_EQ(text("combined_1f1b", {2, 2, 4}, 0),
            "F0.0 F1.0 F0.1 F1.1 F2.0 F3.0&B0.1 F2.1&B1.1 F3.1&B0.0 B1.0 B2.1 B3.1 B2.0 B3.0");
  EXPECT_EQ(text("combined_1f1b", {1, 1, 3}, 0), "F0.0 F1.0&B0.0 F2.0&B1.0 B2.0");
  // arXiv:2401.10241, figure 3 above: the last of 4 ranks keeps 3 weight gradients back.
  EXPECT_EQ(text("zb_h1", {4, 1, 5}, 3), "F0.0 I0.0 F1.0 I1.0 F2.0 I2.0 F3.0 I3.0 W0.0 F4.0 I4.0 W1.0 W2.0 W3.0 W4.0");
  EXPECT_EQ(text("zbv", {2, 2, 3}, 1),
            "F0.0 F0.1 F1.0 F1.1 I0.1 W0.1 F2.0 I0.0 W0.0 F2.1 I1.1 W1.1 I1.0 I2.1 I2.0 W1.0 "
            "W2.1 W2.0");
  // The middle ranks of DualPipe: their first forward pass of the main phase is alone.
  EXPECT_EQ(text("dualpipe", {2, 1, 4}, 0), "F0.0 F2.1 F1.0 B2.1 F3.1&B0.0 B3.1 I1.0 W1.0");
}

// Narayanan et al. (arXiv:2104.04473, 2.2.1): t_pb = (p - 1) (F + B), for any number of micro-batches.
TEST(PipelineSchedule, BubbleOfGpipeAnd1f1b) {
  for (const std::string name : {"gpipe", "1f1b"})
    for (const PassTimes& t : all_times)
      for (const std::uint32_t p : {1, 2, 3, 4, 8})
        for (const std::uint32_t m : {1, 2, 4, 8, 9, 32})
          EXPECT_EQ(run(name, {p, 1, m}, t).bubble(), (p - 1) * (t.forward + t.input + t.weight))
              << name << " p " << p << " m " << m;
}

// Narayanan et al. (arXiv:2104.04473, 2.2.2): (p - 1) (F + B) / v with F and B of a rank's whole model part, here of
// one of its v chunks.
TEST(PipelineSchedule, BubbleOfInterleaved) {
  for (const PassTimes& t : all_times)
    for (const std::uint32_t p : {1, 2, 3, 4, 8})
      for (const std::uint32_t v : {2, 3, 4})
        for (const std::uint32_t groups : {1, 2, 5})
          EXPECT_EQ(run("interleaved", {p, v, groups * p}, t).bubble(), (p - 1) * (t.forward + t.input + t.weight))
              << "p " << p << " v " << v << " m " << groups * p;
}

// Qi et al. (arXiv:2401.10241, table 1): (p - 1) (F + I - W), with B = I + W (p - 1) (F + B - 2 W). They assume equal
// times. The schedule gives (p - 1) (F + I - min(W, F, I)): the same while W is the smallest. A longer W does not help:
// the last rank still begins after p - 1 forward passes, and the first one still waits for p - 1 input gradients.
TEST(PipelineSchedule, BubbleOfZbH1) {
  for (const PassTimes& t : all_times)
    for (const std::uint32_t p : {1, 2, 3, 4, 8})
      for (const std::uint32_t m : {p, 2 * p, 2 * p + 3, 6 * p})
        EXPECT_EQ(run("zb_h1", {p, 1, m}, t).bubble(),
                  (p - 1) * (t.forward + t.input - std::min({t.weight, t.forward, t.input})))
            << "p " << p << " m " << m;
}

// Qi et al. (arXiv:2401.10241, section 6): no idle time for F = I = W from 2p - 1 micro-batches on. That is between the
// first and the last slot of each rank, as they count, since their optimizer does not wait for all ranks; a step that
// ends for all ranks together has p - 1 forward passes of a chunk more.
TEST(PipelineSchedule, BubbleOfZbv) {
  for (const std::uint32_t p : {1, 2, 3, 4, 8})
    for (const std::uint32_t m : {2 * p - 1, 2 * p, 3 * p + 1, 8 * p}) {
      const PipelineExecution execution = run("zbv", {p, 2, m}, {7, 7, 7});
      EXPECT_EQ(execution.inner_bubble(), 0) << "p " << p << " m " << m;
      EXPECT_EQ(execution.bubble(), (p - 1) * 7) << "p " << p << " m " << m;
    }
}

// With other times it is not zero, but below that of 1F1B with the same model (chunks of twice the size), for any m.
TEST(PipelineSchedule, ZbvIsNeverBehind1f1b) {
  for (const PassTimes& t : all_times)
    for (const std::uint32_t p : {2, 3, 4, 8})
      for (const std::uint32_t m : {1, 2, 3, 4, 8, 9, 32})
        EXPECT_LE(run("zbv", {p, 2, m}, t).bubble(), 2 * (p - 1) * (t.forward + t.input + t.weight))
            << "p " << p << " m " << m;
}

// README of github.com/deepseek-ai/DualPipe: (p/2 - 1) (F&B + B - 3 W), F&B the time of a pair. The published order
// gives (p/2 - 1) (F&B + F - 2 W) for W <= I <= F: the same for I = F, which the README's drawing assumes (B = 2 F = 2
// W).
TEST(PipelineSchedule, BubbleOfDualPipe) {
  for (const PassTimes& t : {PassTimes{10, 10, 10}, PassTimes{10, 10, 10, 24}, PassTimes{10, 10, 6, 26},
                             PassTimes{14, 10, 10}, PassTimes{14, 10, 6, 27}, PassTimes{10, 6, 6, 20}})
    for (const std::uint32_t p : {2, 4, 6, 8, 16})
      for (const std::uint32_t m : {2 * p, 2 * p + 2, 5 * p}) {
        const std::int64_t pair = t.pair > 0 ? t.pair : t.forward + t.input + t.weight;
        const std::int64_t half = static_cast<std::int64_t>(p) / 2 - 1;
        const std::int64_t measured = run("dualpipe", {p, 1, m}, t).bubble();
        EXPECT_EQ(measured, half * (pair + t.forward - 2 * t.weight)) << "p " << p << " m " << m;
        if (t.input == t.forward) {
          EXPECT_EQ(measured, half * (pair + t.input + t.weight - 3 * t.weight));
        }
      }
}

TEST(PipelineSchedule, PeakActivationsAreThePublishedOnes) {
  for (const std::uint32_t p : {2, 4, 8})
    for (std::uint32_t rank = 0; rank < p; ++rank) {
      const std::uint32_t m = 4 * p;
      const auto peak = [&](const std::string& name, std::uint32_t v) {
        return pipeline_schedule(name)->peak_activations({p, v, m}, rank);
      };
      EXPECT_EQ(peak("gpipe", 1), m);
      EXPECT_EQ(peak("1f1b", 1), p - rank);
      EXPECT_EQ(peak("zb_h1", 1), p);         // arXiv:2401.10241, 2.1: all ranks as the first one of 1F1B
      EXPECT_EQ(peak("zbv", 2), 2 * p);       // of half the size: as the first rank of 1F1B
      EXPECT_EQ(peak("dualpipe", 1), p + 1);  // README of DualPipe
      for (const std::uint32_t v : {2, 3})  // Korthikanti et al. (arXiv:2205.05198, 4.2.3): 1 + (p - 1)/(p v) on rank 0
        EXPECT_EQ(peak("interleaved", v), p * v + p - 1 - 2 * rank);
    }
}

/// Transfers between ranks of one micro-batch on its way through the stages.
std::uint32_t transfers(const std::string& name, const PipelineShape& shape) {
  const auto schedule = pipeline_schedule(name);
  std::uint32_t result = 0;
  for (std::uint32_t stage = 1; stage < schedule->stages(shape); ++stage)
    if (schedule->place_of(shape, stage - 1, 0).rank != schedule->place_of(shape, stage, 0).rank) ++result;
  return result;
}

TEST(PipelineSchedule, TransfersOfAMicroBatch) {
  for (const std::uint32_t p : {2, 4, 8}) {
    for (const std::string name : {"gpipe", "1f1b", "zb_h1", "dualpipe"})
      EXPECT_EQ(transfers(name, {p, 1, 2 * p}), p - 1) << name;
    EXPECT_EQ(transfers("interleaved", {p, 3, p}), 3 * p - 1);  // from the last rank on to the first again
    EXPECT_EQ(transfers("zbv", {p, 2, p}), 2 * (p - 1));        // the turn is on one rank
  }
}

TEST(PipelineSchedule, Refusals) {
  const auto refusal = [](const std::string& name, const PipelineShape& shape) {
    return pipeline_schedule(name)->refuses(shape);
  };
  EXPECT_EQ(refusal("interleaved", {4, 2, 6}),
            "6 micro-batches are no multiple of 4 ranks, in groups of which they are taken");
  EXPECT_EQ(refusal("interleaved", {4, 1, 8}), "1 virtual stage: it needs at least 2 on each rank; '1f1b' has 1");
  EXPECT_EQ(refusal("1f1b", {4, 2, 8}), "2 virtual stages: it has 1 on each rank; 'interleaved' has any number from 2");
  EXPECT_EQ(refusal("combined_1f1b", {4, 1, 8}), "1 virtual stage: with 4 ranks it needs at least 2 on each");
  EXPECT_EQ(refusal("combined_1f1b", {1, 2, 8}), "2 virtual stages on 1 rank: it has 1");
  EXPECT_EQ(refusal("combined_1f1b", {4, 2, 6}),
            "6 micro-batches are no multiple of 4 ranks, in groups of which they are taken");
  EXPECT_EQ(refusal("zbv", {4, 3, 8}), "3 virtual stages: it has 2 on each rank");
  EXPECT_EQ(refusal("dualpipe", {3, 1, 8}), "3 ranks: their number is even");
  EXPECT_EQ(refusal("dualpipe", {4, 1, 9}), "9 micro-batches: their number is even, half of them go each way");
  EXPECT_EQ(refusal("dualpipe", {4, 1, 6}), "6 micro-batches: 4 ranks need at least 8");
}

}  // namespace
}  // namespace weft::test::pipeline_schedule_test
