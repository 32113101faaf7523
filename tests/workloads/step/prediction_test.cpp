// SPDX-License-Identifier: GPL-2.0-only
// Layers of multi-token prediction: parameters, FLOPs, bytes, memory, and where they are, by hand.
#include <algorithm>
#include <map>

#include <gtest/gtest.h>

#include "tests/workloads/workload_under_test.hpp"
#include "workloads/model/model_flops.hpp"
#include "workloads/parallel/training_description.hpp"

namespace weft::test::prediction_test {
namespace {

constexpr std::int64_t h = 64, s = 64, vocabulary = 256, micro_batches = 4;

std::string model(int layers, bool tied = false) {
  return R"({"model_type": "llama", "max_position_embeddings": 64, "hidden_size": 64, "intermediate_size": 128,
             "num_attention_heads": 8, "num_key_value_heads": 8, "vocab_size": 256, "tie_word_embeddings": )" +
         std::string(tied ? "true" : "false") + ", \"num_hidden_layers\": " + std::to_string(layers) + "}";
}

std::unique_ptr<Workload> job(const std::string& config, const std::string& parallelism, std::uint32_t ranks,
                              const std::string& more = "") {
  const TemporaryFile file("config.json", config);
  return read_workload(
      "{kind: training, model: " + file.path() +
          ", device: h100-sxm, micro_batch: 1, micro_batches: 4, clip_gradients: false, parallelism: {" + parallelism +
          "}" + more + "}",
      context_of(ranks));
}
const std::string predicted = ", prediction_blocks: 1";

double flops(const Workload& workload) {
  double sum = 0;
  for (std::uint32_t rank = 0; rank < workload.ranks(); ++rank)
    for (const Operation& operation : operations_of(workload, rank)) sum += operation.flops;
  return sum;
}

/// Bytes of what rank 0 calls, by kind.
std::map<CollectiveKind, std::int64_t> called(const Workload& workload) {
  std::map<CollectiveKind, std::int64_t> bytes;
  for (const Operation& operation : operations_of(workload, 0))
    if (operation.call != nullptr) bytes[operation.call->kind] += operation.call->size.count();
  return bytes;
}

// Beside a block: two norms, a projection 2h x h, and a norm before the head (Megatron-LM,
// megatron/core/transformer/multi_token_prediction.py: enorm, hnorm, eh_proj, final_layernorm).
TEST(Prediction, ParametersAndFlopsOfDeepSeekV3) {
  ModelConfig one = read_model(JsonConfig::load(workloads_folder() + "/models/deepseek-v3.json"));
  const std::int64_t width = 7168, block = elements_of(one.shapes[1].tensors), without = one.parameters();
  const ModelFlops before = forward_flops(one, 4096);
  one.predict(1);
  EXPECT_EQ(one.parameters() - without, block + 2 * width * width + 3 * width);
  // 14 B parameters of the module on the hub have the embedding and the head once more (DeepSeek-V3, README.md: 685 B
  // in all, 671 B of the model).
  EXPECT_NEAR(static_cast<double>(one.parameters() - without + 2 * 129280 * width), 14e9, 0.6e9);
  ModelConfig longer = read_model(JsonConfig::load(workloads_folder() + "/models/deepseek-v3.json"));
  longer.blocks.push_back(1);
  const ModelFlops after = forward_flops(one, 4096), of_blocks = forward_flops(longer, 4096);
  EXPECT_DOUBLE_EQ(after.linear - before.linear,
                   of_blocks.linear - before.linear + 2.0 * 4096 * 2 * width * width + 2.0 * 4096 * 129280 * width);
  EXPECT_DOUBLE_EQ(after.causal, of_blocks.causal);
}

// Forward and backward are three times the forward GEMMs: a block more, 4 s h^2 of the projection, and 2 s V h of the
// logits once more.
TEST(Prediction, FlopsOfAStep) {
  const double block = flops(*job(model(5), "data: 1", 1)) - flops(*job(model(4), "data: 1", 1));
  const double more = 3.0 * micro_batches * (4.0 * s * h * h + 2.0 * s * vocabulary * h);
  for (const std::string plan : {"pipeline: 2, data: 1", "pipeline: 2, data: 1, prediction_stage: 0",
                                 "schedule: zbv, pipeline: 2, data: 1", "tensor: 2, data: 1, sequence: true"}) {
    const double all = flops(*job(model(4), plan, 2, predicted)) - flops(*job(model(4), plan, 2));
    EXPECT_NEAR(all, block + more, 1e-9 * all) << plan;
  }
}

// Two tensor ranks with sequence parallelism, of N = b s h elements of 2 B, beside a block. Gathered: backward the
// embedding's gradient N; for the projection 2 N, what it gives N, its gradient N, and 2 N again for the gradient of
// its wfours; for the logits N and N again. Scattered sums: the embedding N, the projection's gradient 2 N, that of the
// logits N. Sums: three numbers of 4 B of each token for the loss; and once a step gradients of three norms.
TEST(Prediction, BytesOfTensorRanks) {
  const std::string plan = "tensor: 2, data: 1, sequence: true";
  const auto before = called(*job(model(4), plan, 2)), longer = called(*job(model(5), plan, 2)),
             after = called(*job(model(4), plan, 2, predicted));
  const auto beside_a_block = [&](CollectiveKind kind) { return after.at(kind) - longer.at(kind); };
  const std::int64_t n = 2 * s * h * micro_batches;
  EXPECT_EQ(beside_a_block(CollectiveKind::all_gather), (1 + 2 + 1 + 1 + 2 + 1 + 1) * n);
  EXPECT_EQ(beside_a_block(CollectiveKind::reduce_scatter), (1 + 2 + 1) * n);
  EXPECT_EQ(beside_a_block(CollectiveKind::all_reduce), 3 * 4 * s * micro_batches + 3 * h * 2);
  EXPECT_GT(longer.at(CollectiveKind::all_gather), before.at(CollectiveKind::all_gather));
}

/// Bytes of the messages that a rank sends in a step.
std::int64_t sent(const Workload& workload, std::uint32_t rank) {
  std::int64_t bytes = 0;
  for (const Operation& operation : operations_of(workload, rank))
    if (operation.kind == Operation::Kind::send) bytes += operation.bytes.count();
  return bytes;
}

// Hidden vectors of the model and of each layer of prediction go on to the stage with the logits.
TEST(Prediction, MessagesBehindTheStageOfPrediction) {
  const std::string plan = "pipeline: 4, data: 1";
  const std::int64_t n = 2 * s * h * micro_batches;
  for (const int stage : {1, 2, 3}) {
    const auto workload =
        job(model(4), plan + ", prediction_stage: " + std::to_string(stage), 4, ", prediction_blocks: 2");
    EXPECT_EQ(sent(*workload, 0), n * (stage <= 0 ? 3 : 1));
    EXPECT_EQ(sent(*workload, 1), n * (stage <= 1 ? 3 : 1) + n * (stage <= 0 ? 3 : 1));
    EXPECT_EQ(sent(*workload, 2), n * (stage <= 2 ? 3 : 1) + n * (stage <= 1 ? 3 : 1));
    EXPECT_EQ(sent(*workload, 3), n * (stage <= 2 ? 3 : 1));
  }
}

/// Bytes of the sums of the embedding's gradient, those of all ranks.
std::int64_t summed_embeddings(const Workload& workload) {
  std::int64_t bytes = 0;
  for (std::uint32_t rank = 0; rank < workload.ranks(); ++rank)
    for (const Operation& operation : operations_of(workload, rank))
      if (operation.call != nullptr && operation.call->label.find("embedding gradients") != std::string::npos)
        bytes += operation.call->size.count();
  return bytes;
}

// The rank with the layers has a copy of the embedding, whose gradient is summed with that of the first one
// (Megatron-LM, megatron/core/distributed/finalize_model_grads.py, _allreduce_word_embedding_grads). Where both ends of
// the model are on one rank there is no copy.
TEST(Prediction, CopyOfTheEmbedding) {
  const std::int64_t matrix = 2 * vocabulary * h;
  const std::string four = "pipeline: 4, data: 1";
  const auto with = [&](const std::string& plan, bool tied) {
    const TemporaryFile file("config.json", model(4, tied));
    const auto workload =
        read_workload("{kind: training, model: " + file.path() +
                          ", device: h100-sxm, micro_batches: 8, prediction_blocks: 1, parallelism: {" + plan + "}}",
                      context_of(4));
    return summed_embeddings(*workload);
  };
  EXPECT_EQ(with(four, false), 2 * matrix);
  EXPECT_EQ(with(four + ", prediction_stage: 2", false), 2 * matrix);
  EXPECT_EQ(with(four, true), 2 * matrix);
  EXPECT_EQ(with(four + ", schedule: dualpipe", false), 0);
  EXPECT_EQ(with(four + ", prediction_stage: 0", false), 0);
}

TEST(Prediction, Complaints) {
  const TemporaryFile tied("config.json", model(4, true));
  const auto text = [](const std::string& file, const std::string& plan, const std::string& more) {
    return "kind: training\nmodel: " + file +
           "\ndevice: h100-sxm\nmicro_batches: 4\nparallelism: {pipeline: 4, data: 1" + plan + "}\n" + more;
  };
  expect_complaint(text(tied.path(), ", prediction_stage: 4", "prediction_blocks: 1\n"), context_of(4), "x.yaml:5",
                   {"prediction_stage 4, but there are 4 stages; use 0 to 3"});
  expect_complaint(text(tied.path(), ", prediction_stage: 1", "prediction_blocks: 1\n"), context_of(4), "x.yaml:5",
                   {"tied", "use prediction_stage 3"});
  expect_complaint(text("gpt2", "", "prediction_blocks: 65\n"), context_of(4), "x.yaml:6", {"65"});
  expect_complaint("kind: training\nmodel: bert-large\ndevice: h100-sxm\nprediction_blocks: 1\n", context_of(4),
                   "x.yaml:4", {"want a decoder with a vocabulary"});
  expect_complaint("kind: training\nmodel: resnet-50\ndevice: h100-sxm\nprediction_blocks: 1\n", context_of(4),
                   "x.yaml:4", {"want a decoder with a vocabulary"});
}

}  // namespace
}  // namespace weft::test::prediction_test
