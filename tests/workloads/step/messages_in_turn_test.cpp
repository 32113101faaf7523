// SPDX-License-Identifier: GPL-2.0-only
// Stages whose messages go one after the other, in the order of DeepSpeed's pipeline.
#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/workloads/workload_under_test.hpp"

namespace weft::test::messages_in_turn_test {
namespace {

std::string job(const std::string& parallelism, const std::string& more = "") {
  return "{kind: training, model: gpt2, device: a100-sxm, framework: megatron_deepspeed, micro_batch: 1, "
         "sequence_length: 128, parallelism: {" +
         parallelism + "}" + more + "}";
}

/// "SA" and "RA": sends and receives activations, "SG" and "RG" gradients; with the micro-batch.
std::string name_of(bool sends, bool gradients, int micro_batch) {
  return std::string(sends ? "S" : "R") + (gradients ? "G" : "A") + std::to_string(micro_batch);
}

/// deepspeedai/DeepSpeed, commit 077e6740, runtime/pipe/schedule.py, TrainSchedule: in step 2 i + (s mod 2) stage s of
/// p has the forward pass of micro-batch i - s / 2, in the other steps a backward pass.
std::vector<std::string> train_schedule(int stage, int stages, int micro_batches) {
  std::vector<std::string> result;
  const auto valid = [&](int micro_batch) { return 0 <= micro_batch && micro_batch < micro_batches; };
  int before = -1;
  for (int step = 0; step < 2 * (micro_batches + stages - 1); ++step) {
    const bool forward = step % 2 == stage % 2;
    int now = step / 2 - stage / 2;
    if (!forward) now = step % 2 == 0 ? step / 2 - stages + (stage + 1) / 2 : step / 2 - stages + 1 + stage / 2;
    if (forward) {
      if (valid(now) && stage > 0) result.push_back(name_of(false, false, now));
      if (valid(before) && stage > 0) result.push_back(name_of(true, true, before));
    } else {
      if (valid(before) && stage + 1 < stages) result.push_back(name_of(true, false, before));
      if (valid(now) && stage + 1 < stages) result.push_back(name_of(false, true, now));
    }
    before = now;
  }
  return result;
}

bool is_message(const Operation& operation) {
  return operation.kind == Operation::Kind::send || operation.kind == Operation::Kind::recv;
}

/// The data of GPT-2's boundary: 128 x 768 elements of 2 B. All else asks for data.
bool is_data(const Operation& operation) { return is_message(operation) && operation.bytes == Bytes(128 * 768 * 2); }

std::vector<std::string> messages(const Workload& workload, std::uint32_t rank, std::uint32_t stages,
                                  int micro_batches) {
  std::vector<std::string> result;
  for (const Operation& operation : operations_of(workload, rank)) {
    if (!is_data(operation)) continue;
    // The tag is (2 stage + 1 if backward) micro-batches + micro-batch, of the stage that receives.
    const auto tag = static_cast<int>(operation.tag);
    EXPECT_LT(tag, static_cast<int>(2 * stages) * micro_batches);
    result.push_back(
        name_of(operation.kind == Operation::Kind::send, tag / micro_batches % 2 == 1, tag % micro_batches));
  }
  return result;
}

TEST(MessagesInTurn, HaveDeepSpeedsOrder) {
  for (const std::uint32_t stages : {2U, 3U, 4U})
    for (const int micro_batches : {1, 2, 3, 7}) {
      const std::string text =
          job("pipeline: " + std::to_string(stages), ", micro_batches: " + std::to_string(micro_batches));
      const auto workload = read_workload(text, context_of(stages));
      for (std::uint32_t rank = 0; rank < stages; ++rank)
        EXPECT_EQ(messages(*workload, rank, stages, micro_batches),
                  train_schedule(static_cast<int>(rank), static_cast<int>(stages), micro_batches))
            << text << rank;
    }
}

// Each message waits for the one that asks for it, 32 B the other way (NCCL, src/transport/net_ib.cc, ncclIbSendFifo).
TEST(MessagesInTurn, AreAskedFor) {
  const auto workload = read_workload(job("pipeline: 2", ", micro_batches: 3"), context_of(2));
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    const std::vector<Operation> operations = operations_of(*workload, rank);
    for (std::size_t i = 1; i < operations.size(); ++i) {
      const Operation& data = operations[i];
      if (!is_data(data)) continue;
      const Operation& asks = operations[i - 1];
      EXPECT_NE(asks.kind, data.kind);
      EXPECT_EQ(asks.bytes, Bytes(32));
      EXPECT_EQ(asks.peer, data.peer);
      const bool waits = std::find(data.after.begin(), data.after.end(), asks.id) != data.after.end();
      EXPECT_EQ(waits, data.kind == Operation::Kind::send);
    }
  }
}

struct Calls {
  int gathers = 0, copies = 0;
};

// Before a backward pass the stage gathers what it sent forward, then the gradient of it (runtime/pipe/engine.py,
// _exec_backward_pass); before a forward pass what it has received.
TEST(MessagesInTurn, AreGatheredOverTensorRanks) {
  const auto workload =
      read_workload(job("tensor: 2, pipeline: 3, scatter_gather: true", ", micro_batches: 4"), context_of(6));
  const int expected[] = {2 * 4, 3 * 4, 4};
  for (std::uint32_t stage = 0; stage < 3; ++stage) {
    Calls calls;
    for (const Operation& operation : operations_of(*workload, 2 * stage)) {
      calls.gathers += operation.call != nullptr && operation.call->kind == CollectiveKind::all_gather ? 1 : 0;
      calls.copies += operation.operator_name.find("copies of a message") != std::string::npos ? 1 : 0;
    }
    EXPECT_EQ(calls.gathers, expected[stage]) << stage;
    EXPECT_EQ(calls.copies, expected[stage]) << stage;
  }
}

/// Kinds of calls over data-parallel ranks.
std::vector<CollectiveKind> sums(const std::string& precision) {
  const auto workload =
      read_workload(job("data: 2, sharding: optimizer", ", gradient_precision: " + precision), context_of(2));
  std::vector<CollectiveKind> result;
  for (const Operation& operation : operations_of(*workload, 0))
    if (operation.call != nullptr && operation.call->size > Bytes(1 << 20)) result.push_back(operation.call->kind);
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

// Gradients of 32 bits are all-reduced though each rank needs its share (runtime/pipe/engine.py, _bf16_reduce_grads).
TEST(MessagesInTurn, GradientsOf32BitsAreSummedOnAllRanks) {
  EXPECT_EQ(sums("fp32"), (std::vector{CollectiveKind::all_reduce, CollectiveKind::all_gather}));
  EXPECT_EQ(sums("bf16"), (std::vector{CollectiveKind::all_gather, CollectiveKind::reduce_scatter}));
}

TEST(MessagesInTurn, Complaints) {
  const std::string about = complaint_about(
      job("pipeline: 2, virtual_stages: 2, schedule: interleaved", ", micro_batches: 2"), context_of(2));
  EXPECT_TRUE(about.starts_with("x.yaml:1:")) << about;
  EXPECT_NE(about.find("it has 1f1b and gpipe"), std::string::npos) << about;
}

}  // namespace
}  // namespace weft::test::messages_in_turn_test
