// SPDX-License-Identifier: GPL-2.0-only
// fp8 with delayed scaling: largest magnitudes of the rank's tensors are gathered, reduced, and give scales, by hand.
#include <set>

#include <gtest/gtest.h>

#include "tests/workloads/workload_under_test.hpp"
#include "workloads/pass/magnitude_passes.hpp"

namespace weft::test::magnitudes_test {
namespace {

const std::string llama =
    R"({"model_type": "llama", "max_position_embeddings": 256, "hidden_size": 64, "intermediate_size": 128,
        "num_attention_heads": 8, "num_key_value_heads": 8, "vocab_size": 256, "num_hidden_layers": 8})";

constexpr std::int64_t micro_batches = 4;

std::unique_ptr<Workload> job(const std::string& parallelism, const std::string& more, std::uint32_t ranks) {
  const TemporaryFile file("config.json", llama);
  return read_workload("{kind: training, model: " + file.path() +
                           ", device: h100-sxm, micro_batches: 4, parallelism: {" + parallelism + "}" + more + "}",
                       context_of(ranks));
}
const std::string delayed = ", precision: fp8, framework: megatron_core";

struct Reductions {
  std::multiset<std::int64_t> bytes;
  std::set<std::uint32_t> ranks;
  std::size_t kernels = 0;
};
Reductions reductions(const Workload& workload, std::uint32_t rank) {
  Reductions result;
  for (const Operation& operation : operations_of(workload, rank)) {
    if (operation.label.text().find("largest magnitudes") == std::string::npos &&
        (operation.call == nullptr || operation.call->label.find("largest magnitudes") == std::string::npos))
      continue;
    if (operation.kind == Operation::Kind::compute) {
      ++result.kernels;
      continue;
    }
    EXPECT_EQ(operation.call->kind, CollectiveKind::all_reduce);
    result.bytes.insert(operation.call->size.count());
    result.ranks.insert(operation.call->communicator->size());
  }
  return result;
}

// Transformer Engine, pytorch/module/base.py, set_meta_tensor: three tensors of each GEMM forward (input, weight,
// result), two backward. A block has four: QKV, behind attention, up with its gate, down. The buffers are those of the
// whole process (pytorch/fp8.py, FP8GlobalStateManager): all chunks of the rank, reduced for each pass of one.
TEST(Magnitudes, AllTensorsOfTheRankForEachPassOfAChunk) {
  for (const auto& [plan, chunks] : std::vector<std::pair<std::string, std::size_t>>{
           {"pipeline: 2", 1}, {"pipeline: 2, schedule: interleaved, virtual_stages: 2", 2}}) {
    const auto workload = job(plan + ", tensor: 2, data: 2, sequence: true", delayed, 8);
    const std::int64_t gemms = 8 / 2 * 4;
    for (const std::uint32_t rank : {0U, 7U}) {
      const Reductions found = reductions(*workload, rank);
      const std::size_t passes = chunks * micro_batches;
      EXPECT_EQ(found.bytes.size(), 2 * passes) << plan;
      EXPECT_EQ(found.bytes.count(4 * 3 * gemms), passes) << plan;
      EXPECT_EQ(found.bytes.count(4 * 2 * gemms), passes) << plan;
      EXPECT_EQ(found.kernels, 2 * 2 * passes) << plan;
      EXPECT_EQ(found.ranks, (std::set<std::uint32_t>{4})) << plan;
    }
  }
}

// Megatron-LM, megatron/core/parallel_state.py, get_amax_reduction_group: ranks of tensor, context and data
// parallelism, or with --tp-only-amax-red those of the former two.
TEST(Magnitudes, RanksThatReduceThem) {
  const std::string plan = "tensor: 2, context: 2, data: 2, pipeline: 2, sequence: true";
  EXPECT_EQ(reductions(*job(plan, delayed, 16), 3).ranks, (std::set<std::uint32_t>{8}));
  EXPECT_EQ(reductions(*job(plan, delayed + ", amax_ranks: tensor", 16), 3).ranks, (std::set<std::uint32_t>{4}));
  const Reductions none = reductions(*job(plan, delayed + ", amax_ranks: none", 16), 3);
  EXPECT_TRUE(none.bytes.empty());
  EXPECT_EQ(none.kernels, 0U);
  // A rank by itself has scales all the same.
  const Reductions alone = reductions(*job("data: 1", delayed, 1), 0);
  EXPECT_TRUE(alone.bytes.empty());
  EXPECT_EQ(alone.kernels, std::size_t{2 * 2 * micro_batches});
}

TEST(Magnitudes, OnlyOfDelayedScaling) {
  for (const std::string more :
       {", precision: bf16, framework: megatron_core", ", precision: fp8",
        ", precision: fp8_block, framework: megatron_core", ", precision: fp8, framework: pytorch_compiled"}) {
    const Reductions found = reductions(*job("data: 2", more, 2), 0);
    EXPECT_TRUE(found.bytes.empty()) << more;
    EXPECT_EQ(found.kernels, 0U) << more;
  }
}

// With input and weight gradients apart, scales follow from the former: those are the GEMMs that read gradients first.
TEST(Magnitudes, OncePerBackwardPassOfTwoParts) {
  const Reductions found = reductions(*job("pipeline: 2, data: 2, schedule: zb_h1", delayed, 4), 0);
  EXPECT_EQ(found.bytes.size(), std::size_t{2 * micro_batches});
}

TEST(Magnitudes, GemmsOfABlock) {
  const auto block = [](const std::string& name, std::int64_t layer) {
    return read_model(JsonConfig::load(workloads_folder() + "/models/" + name + ".json")).layer_shape(layer);
  };
  ParallelPlan plan;
  EXPECT_EQ(fp8_gemms(block("llama-3.1-8b", 0), plan), 2 + 2);
  EXPECT_EQ(fp8_gemms(block("mixtral-8x7b", 0), plan), 2 + 2 * 8);
  plan.expert = 4;
  EXPECT_EQ(fp8_gemms(block("mixtral-8x7b", 0), plan), 2 + 2 * 2);
  // Latent attention: queries down and up, keys and values down and up, behind attention. 256 experts over 64 ranks,
  // and a shared one.
  plan.expert = 64;
  EXPECT_EQ(fp8_gemms(block("deepseek-v3", 0), plan), 5 + 2);
  EXPECT_EQ(fp8_gemms(block("deepseek-v3", 60), plan), 5 + 2 * 4 + 2);
  EXPECT_EQ(fp8_gemms(block("resnet-50", 0), plan), 0);
}

TEST(Magnitudes, ReadsItsKey) {
  const std::string start = "kind: training\nmodel: llama-3.1-8b\ndevice: h100-sxm\n";
  expect_complaint(start + "amax_ranks: data\n", context_of(1), "x.yaml:4", {"'data'", "stage", "tensor", "none"});
}

}  // namespace
}  // namespace weft::test::magnitudes_test
