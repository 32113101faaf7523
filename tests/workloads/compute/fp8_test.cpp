// SPDX-License-Identifier: GPL-2.0-only
// Jobs whose GEMMs have fp8: which other tensors keep 16 bits, in memory, time and bytes sent.
#include <map>

#include <gtest/gtest.h>

#include "tests/workloads/workload_under_test.hpp"
#include "workloads/step/recomputed_modules.hpp"
#include "workloads/step/training_memory.hpp"
#include "workloads/training/training_reading.hpp"

namespace weft::test::fp8_test {
namespace {

// DeepSeek-V3 (DeepSeek-AI, arXiv:2412.19437, 4.2), as in recomputed_modules_test.
constexpr double h = 7168, heads = 128, nope = 128, rope = 64, value = 128, query_rank = 1536, kv_rank = 512, k = 8,
                 inner = 2048, dense_inner = 18432, vocabulary = 129280;
constexpr double tokens = 4096;

struct Case {
  TrainingDescription description;
  OperatorTimes times{Device{}};

  explicit Case(const std::string& precision) {
    Device device;
    device.peak = {{"bf16", 1e15}, {"fp8", 2e15}, {"fp8_block", 2e15}};
    device.memory_bandwidth = Bandwidth::from_gbps(64000);  // GEMMs wait for arithmetic
    times = OperatorTimes(device);
    description.model = read_model(JsonConfig::load(workloads_folder() + "/models/deepseek-v3.json"));
    description.precision = precision;
    description.micro_batch = 1;
    description.micro_batches = 1;
    description.sequence_length = 4096;
    description.parallel.data = 1;
    description.parallel.expert_tensor = 1;
    description.parallel.stage_layers = {61};
    description.gradient_precision = "fp32";
  }
  PassSetup setup() const { return {&description, &times, AttentionKernel::flash}; }
  PartPasses passes(std::int64_t layer) const { return passes_of_block(setup(), description.model.layer_shape(layer)); }
  /// Bytes of a token in a block.
  double kept(std::int64_t layer) const {
    return block_activation_bytes(setup(), description.model.layer_shape(layer)) / tokens;
  }
  RankMemory memory() const {
    return memory_of_rank(setup(), *PipelineScheduleRegistry::instance().find("1f1b")->make(), {1, 1, 1}, 0);
  }
};

// Two bytes for data between operators, one for the inputs of GEMMs. Transformer Engine: norms and activation
// functions leave only the fp8 that GEMMs read; attention keeps what it gives, and the GEMM behind it its own
// copy.
TEST(Fp8, ActivationsAreKeptAsTheyAreRead) {
  Case one("fp8");
  const double attention = 2 * (2 * heads * (nope + rope) + heads * value) + (2 + 1) * heads * value +
                           (2 + 1) * (query_rank + kv_rank) + 2 * rope;
  EXPECT_DOUBLE_EQ(one.kept(0), 2 * (2 + 1) * h + attention + (2 * 2 + 1) * dense_inner);
  // The router reads two bytes of the norm; experts keep the tokens that come as they read them.
  const double sparse = (2 + 1) * h + (2 + 2) * h + attention + (2 * 2 + 1) * (k + 1) * inner + k * h;
  EXPECT_DOUBLE_EQ(one.kept(60), sparse);
  one.description.activation_input_precision = "fp8";
  EXPECT_DOUBLE_EQ(one.kept(60), sparse - 2 * (k + 1) * inner);
  one.description.attention_output_precision = "e5m6";
  EXPECT_DOUBLE_EQ(one.kept(60), sparse - 2 * (k + 1) * inner - 1.5 * heads * value);
  one.description.recompute = Recompute::full;
  EXPECT_DOUBLE_EQ(one.kept(60), 2 * h);
}

// What 3.2.3 and 3.3.3 of the paper leave: the inputs of norms, attention's output in 12 bits, the compressions, and of
// experts the tokens that come and the inputs of SwiGLU, in fp8. Shared experts also have what comes of SwiGLU.
TEST(Fp8, ActivationsOfDeepSeekV3) {
  Case one("fp8");
  one.description.recompute_modules = {.norms = true, .up_projections = true, .expert_activations = true};
  one.description.activation_input_precision = "fp8";
  one.description.attention_output_precision = "e5m6";
  EXPECT_DOUBLE_EQ(one.kept(60), 2 * 2 * h + 1.5 * heads * value + 2 * (query_rank + kv_rank + rope) + k * h +
                                     2 * k * inner + 3 * inner);
}

TEST(Fp8, GemmsHaveCopiesOfTheirParameters) {
  Case fp8("fp8"), bf16("bf16");
  std::int64_t in_blocks = 0;
  for (std::int64_t layer = 0; layer < 61; ++layer)
    in_blocks += elements_of(fp8.description.model.layer_shape(layer).tensors);
  EXPECT_EQ(bf16.memory().buffers, 0);
  EXPECT_EQ(fp8.memory().buffers, 2 * in_blocks);
  EXPECT_EQ(fp8.memory().ends, bf16.memory().ends);
  fp8.description.parameter_precision = "fp8";
  EXPECT_EQ(fp8.memory().buffers, in_blocks);
  // GEMMs that read factors either way need no transposed copy.
  Device either_way = fp8.times.device();
  either_way.fp8_transposes = false;
  fp8.times = OperatorTimes(either_way);
  EXPECT_EQ(fp8.memory().buffers, 0);
  fp8.description.parameter_precision = "bf16";
  EXPECT_EQ(fp8.memory().buffers, in_blocks);
}

// Inputs of GEMMs have a scale of 4 B for each 128; copies of parameters one for each 128 x 128.
TEST(Fp8, BlocksHaveTheirScales) {
  Case one("fp8_block");
  const double read = 1 + 4.0 / 128;
  const double attention = 2 * (2 * heads * (nope + rope) + heads * value) + (2 + read) * heads * value +
                           (2 + read) * (query_rank + kv_rank) + 2 * rope;
  EXPECT_DOUBLE_EQ(one.kept(0), 2 * (2 + read) * h + attention + (2 * 2 + read) * dense_inner);
  std::int64_t in_blocks = 0;
  for (std::int64_t layer = 0; layer < 61; ++layer)
    in_blocks += elements_of(one.description.model.layer_shape(layer).tensors);
  EXPECT_EQ(one.memory().buffers, 2 * (in_blocks + 4 * (in_blocks / (128 * 128))));
}

double seconds(const std::vector<Segment>& pass, std::string_view what) {
  double sum = 0;
  for (const Segment& segment : pass)
    if (segment.what == what) sum += segment.duration.seconds();
  return sum;
}

// Twice the arithmetic for GEMMs of blocks, and nothing else is faster: attention, routers and the head.
TEST(Fp8, OnlyGemmsOfBlocksAreFaster) {
  const Case fp8("fp8"), bf16("bf16");
  const auto faster = [&](std::int64_t layer, std::string_view what) {
    return seconds(bf16.passes(layer).forward, what) - seconds(fp8.passes(layer).forward, what);
  };
  EXPECT_NEAR(faster(0, "MLP"), 6 * tokens * h * dense_inner * (1 / 1e15 - 1 / 2e15), 1e-11);
  EXPECT_NEAR(faster(60, "shared expert"), 6 * tokens * h * inner * (1 / 1e15 - 1 / 2e15), 1e-11);
  for (const char* what : {"attention core", "attention norm", "MLP residual"}) EXPECT_EQ(faster(0, what), 0) << what;
  EXPECT_EQ(faster(60, "router"), 0);
  EXPECT_EQ(seconds(head_passes(fp8.setup()).forward, "logits"), seconds(head_passes(bf16.setup()).forward, "logits"));
  EXPECT_GT(seconds(head_passes(fp8.setup()).forward, "logits"), 2 * tokens * h * vocabulary / 1e15);
}

// Gathers of what GEMMs read have a byte; sums, stages and experts two, unless they are told otherwise: then what
// goes to experts has it in both passes, and what comes back in neither (arXiv:2412.19437, 3.3.3).
TEST(Fp8, WhatIsSent) {
  Case one("fp8");
  one.description.parallel.tensor = 4;
  one.description.parallel.sequence = true;
  one.description.parallel.expert = 8;
  const auto whole = static_cast<std::int64_t>(tokens * h);
  const auto sizes = [&one](std::int64_t layer) {
    std::map<std::string_view, std::int64_t> found;
    const PartPasses passes = one.passes(layer);
    for (const auto* pass : {&passes.forward, &passes.backward})
      for (const Segment& segment : *pass)
        if (segment.kind == Segment::Kind::collective) found[segment.what] = segment.size.count();
    return found;
  };
  auto dense = sizes(0);
  for (const char* what : {"MLP gather", "attention gradient gather", "MLP gather again"})
    EXPECT_EQ(dense.at(what), whole) << what;
  for (const char* what : {"attention sum", "MLP sum", "MLP gradient sum"})
    EXPECT_EQ(dense.at(what), 2 * whole) << what;
  for (const char* what : {"latent gather", "latent gather again"}) EXPECT_EQ(dense.at(what), tokens * 512) << what;
  EXPECT_EQ(dense.at("latent gradient sum"), 2 * tokens * 512);
  EXPECT_EQ(boundary_bytes(one.description, 0).count(), 2 * whole / 4);
  const auto copies = static_cast<std::int64_t>(k) * whole / 4;
  auto sparse = sizes(60);
  for (const char* what : {"dispatch", "combine", "combine gradient", "dispatch gradient"})
    EXPECT_EQ(sparse.at(what), 2 * copies) << what;
  one.description.dispatch_precision = "fp8";
  one.description.combine_precision = "bf16";
  sparse = sizes(60);
  for (const char* what : {"dispatch", "combine gradient"}) EXPECT_EQ(sparse.at(what), copies) << what;
  for (const char* what : {"combine", "dispatch gradient"}) EXPECT_EQ(sparse.at(what), 2 * copies) << what;
}

TEST(Fp8, ReadsItsKeys) {
  const std::string words = "{kind: training, device: h100-sxm, model: llama-3.1-8b, precision: fp8, ";
  const auto held = [&](const std::string& keys) {
    return read_workload(words + keys + "}", context_of(1))->report()->memory.front().sum;
  };
  EXPECT_GT(held(""), held("activation_input_precision: fp8"));
  EXPECT_GT(held(""), held("attention_output_precision: e5m6"));
  // Casts of fp8_block are Megatron-Core's alone.
  const std::string blocks = "{kind: training, device: h100-sxm, model: llama-3.1-8b, precision: fp8_block";
  expect_complaint(blocks + "}", context_of(1), "x.yaml:1", {"needs the casts of a framework", "megatron_core"});
  expect_complaint(blocks + ", framework: pytorch_eager}", context_of(1), "x.yaml:1", {"eager", "does not have"});
  EXPECT_EQ(complaint_about(blocks + ", framework: megatron_core}", context_of(1)), "");
  expect_complaint(
      "{kind: training, device: a100-sxm, model: llama-3.1-8b, precision: fp8_block, framework: megatron_core}",
      context_of(1), "x.yaml:1", {"no peak for 'fp8_block'"});
  expect_complaint(words + "attention_output_precision: e5m7}", context_of(1), "x.yaml:1", {"e5m7", "e5m6"});
}

// Megatron-LM's --fp8-recipe blockwise is fp8_block where a framework has its casts; the key counts first.
TEST(Fp8, RecipeOfMegatronIsScaledInBlocks) {
  const TemporaryFile arguments(
      "run.sh",
      "pretrain_gpt.py --num-layers 2 --hidden-size 1024 --num-attention-heads 8 --seq-length "
      "1024 --vocab-size 32000 --micro-batch-size 1 --bf16 --fp8-format e4m3 --fp8-recipe "
      "blockwise\n");
  const auto precision = [&](const std::string& more) {
    const std::string text = "{device: h100-sxm, megatron: " + arguments.path() + more + "}";
    return read_training_job(Spec::parse(text, "x.yaml"), context_of(1)).description.precision;
  };
  EXPECT_EQ(precision(", framework: megatron_core"), "fp8_block");
  EXPECT_EQ(precision(", framework: megatron_core, precision: fp8"), "fp8");
  EXPECT_EQ(precision(""), "fp8");
  EXPECT_EQ(precision(", framework: pytorch_compiled"), "fp8");
}

}  // namespace
}  // namespace weft::test::fp8_test
