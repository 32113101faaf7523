// SPDX-License-Identifier: GPL-2.0-only
// Sums of gradients in an interleaved pipeline that begin on all stages at once.
#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/workloads/workload_under_test.hpp"

namespace weft::test::aligned_gradients_test {
namespace {

constexpr int blocks = 16;
const std::string model =
    R"({"model_type": "llama", "max_position_embeddings": 4096, "hidden_size": 64, "intermediate_size": 128,
        "num_hidden_layers": 16, "num_attention_heads": 8, "num_key_value_heads": 8, "vocab_size": 256,
        "tie_word_embeddings": false})";

std::string job(const TemporaryFile& file, int stages, int chunks, int micro_batches, const std::string& more) {
  return "{kind: training, model: " + file.path() +
         ", device: h100-sxm, micro_batch: 1, sequence_length: 64, bucket_size: 1 GiB, first_bucket_size: 1 GiB, "
         "micro_batches: " +
         std::to_string(micro_batches) +
         ", parallelism: {schedule: interleaved, data: 2, pipeline: " + std::to_string(stages) +
         ", virtual_stages: " + std::to_string(chunks) + "}" + more + "}";
}

/// Backward slots of a rank that are planned before each sum of a chunk's gradients.
std::vector<int> slots_before_sums(const Workload& workload, std::uint32_t rank, int chunks) {
  std::vector<int> result;
  std::set<std::pair<int, int>> slots;  // micro-batch, chunk
  for (const Operation& operation : operations_of(workload, rank)) {
    int micro_batch = 0;
    int block = 0;
    if (operation.label.text().find("grad bucket") != std::string::npos)
      result.push_back(static_cast<int>(slots.size()));
    else if (std::sscanf(operation.label.text().c_str(), "micro-batch %d backward block %d", &micro_batch, &block) == 2)
      slots.emplace(micro_batch, block / (blocks / chunks));
  }
  return result;
}

// With p stages of v chunks and m micro-batches a rank has m v backward slots, of which the last p v go through the
// chunks from the last to the first, p slots each: chunk c is complete with slot m v - c p. Slot k of stage r is p - 1
// - r slots of time behind slot k of the last stage. So sums that begin behind slot m v - c p + r begin at m v - c p +
// p - 1 on every stage, as in Megatron-LM (megatron/core/pipeline_parallel/schedules.py,
// grad_sync_virtual_microbatch_id); those of chunk 0 begin behind the last slot of all.
TEST(AlignedGradients, BeginOnAllStagesAtOnce) {
  const TemporaryFile file("model.json", model);
  for (const auto& [stages, chunks] : std::vector<std::pair<int, int>>{{2, 2}, {2, 4}, {4, 2}, {4, 4}})
    for (const int micro_batches : {stages, 3 * stages})
      for (const bool aligned : {false, true}) {
        const std::string text = job(file, stages, chunks, micro_batches, aligned ? ", align_gradients: true" : "");
        const auto workload = read_workload(text, context_of(static_cast<std::uint32_t>(2 * stages)));
        const int slots = micro_batches * chunks;
        for (int stage = 0; stage < stages; ++stage) {
          std::vector<int> expected;
          for (int chunk = chunks - 1; chunk >= 0; --chunk)
            expected.push_back(std::min(slots, slots - chunk * stages + (aligned ? stage : 0)));
          // The ranks of a stage are neighbours: order tp-cp-ep-dp-pp.
          EXPECT_EQ(slots_before_sums(*workload, static_cast<std::uint32_t>(2 * stage), chunks), expected)
              << text << stage;
        }
      }
}

// Megatron-Core aligns them unless the job says that it does not.
TEST(AlignedGradients, AreTheDefaultOfMegatronCore) {
  const TemporaryFile file("model.json", model);
  const auto slots = [&](const std::string& more) {
    const auto workload = read_workload(job(file, 4, 2, 4, more), context_of(8));
    std::vector<std::vector<int>> all;
    for (std::uint32_t rank = 0; rank < 8; rank += 2) all.push_back(slots_before_sums(*workload, rank, 2));
    return all;
  };
  const std::string core = ", framework: megatron_core";
  EXPECT_EQ(slots(core), slots(", align_gradients: true"));
  EXPECT_EQ(slots(core + ", align_gradients: false"), slots(", align_gradients: false"));
  EXPECT_EQ(slots(", framework: pytorch_eager"), slots(", align_gradients: false"));
  EXPECT_NE(slots(core), slots(", align_gradients: false"));
}

TEST(AlignedGradients, NeedAnInterleavedPipelineAndOneSum) {
  const auto complains = [](const std::string& line, const std::vector<std::string>& words) {
    expect_complaint("kind: training\nmodel: gpt2\ndevice: h100-sxm\nalign_gradients: true\nmicro_batches: 2\n" + line,
                     context_of(8), "x.yaml:4", words);
  };
  complains("parallelism: {pipeline: 2}\n", {"interleaved", "1f1b"});
  const std::string interleaved = "parallelism: {pipeline: 2, virtual_stages: 2, schedule: interleaved";
  complains("overlap_gradients: false\n" + interleaved + "}\n", {"overlap_gradients: true"});
  complains(interleaved + ", sharding: parameters}\n", {"summed once"});
}

}  // namespace
}  // namespace weft::test::aligned_gradients_test
