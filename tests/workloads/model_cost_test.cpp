// SPDX-License-Identifier: GPL-2.0-only
// FLOPs and memory traffic against closed forms.
#include "workloads/model_cost.hpp"

#include <gtest/gtest.h>

#include "tests/workloads/workload_under_test.hpp"

namespace weft::test {
namespace {

ModelConfig ready_made(const std::string& name) {
  return read_model(JsonConfig::load(workloads_folder() + "/models/" + name + ".json"));
}

TEST(ModelCost, DenseGptBlockIs24bshhPlus4bssh) {
  const ModelConfig model = ready_made("gpt2");
  const double b = 8, s = 1024, h = 768, v = 50257;
  EXPECT_DOUBLE_EQ(block_cost(model, model.layer_shape(0), {8, 1024}, 2).flops, 24 * b * s * h * h + 4 * b * s * s * h);
  EXPECT_DOUBLE_EQ(head_cost(model, {8, 1024}, 2).flops, 2 * b * s * h * v);
  EXPECT_EQ(embedding_cost(model, {8, 1024}, 2).flops, 0);
}

TEST(ModelCost, WholeGptModelIsTheFormulaOfNarayanan) {
  // SC'21 without recomputation: 72 B L s h^2 (1 + s/(6h) + V/(12 L h)) for forward and backward.
  const ModelConfig model = ready_made("gpt2");
  const double b = 8, s = 1024, h = 768, v = 50257, l = 12;
  const double forward =
      l * block_cost(model, model.layer_shape(0), {8, 1024}, 2).flops + head_cost(model, {8, 1024}, 2).flops;
  const double expected = 72 * b * l * s * h * h * (1 + s / (6 * h) + v / (12 * l * h));
  EXPECT_NEAR(3 * forward / expected, 1, 1e-12);
}

TEST(ModelCost, LlamaBlockCountsGroupedQueriesAndTheGate) {
  const ModelConfig model = ready_made("llama-3.1-8b");
  const double b = 2, s = 512, h = 4096, a = 32, k = 8, d = 128, f = 14336;
  EXPECT_DOUBLE_EQ(block_cost(model, model.layer_shape(0), {2, 512}, 2).flops,
                   2 * b * s * h * (a + 2 * k) * d + 4 * b * s * s * a * d + 2 * b * s * a * d * h + 6 * b * s * h * f);
}

TEST(ModelCost, MatrixProductsAloneAreSixPerParameterAndToken) {
  // Kaplan et al.: forward and backward take 6 N per token, for the N parameters of matrices (all but norms and
  // biases).
  const ModelConfig model = ready_made("llama-3.1-8b");
  const double s = 1;  // a sequence of one token: attention scores are next to nothing
  const double attention = 4 * s * s * 32 * 128;
  const double matrices = static_cast<double>(elements_of(model.layer_shape(0).tensors) - 2 * model.hidden);
  EXPECT_DOUBLE_EQ(block_cost(model, model.layer_shape(0), {1, 1}, 2).flops - attention, 2 * matrices);
}

TEST(ModelCost, TrafficOfAGptBlockByHand) {
  // Per token, in elements: norms 4h, QKV h+3h, attention 3h+h, projection 2h, MLP (h+4h)+(4h+4h)+(4h+h), residual sums
  // 6h.
  const ModelConfig model = ready_made("gpt2");
  const std::int64_t h = 768, tokens = 8 * 1024;
  const std::int64_t per_token = (4 + 4 + 4 + 2 + 5 + 8 + 5 + 6) * h;
  EXPECT_EQ(block_cost(model, model.layer_shape(0), {8, 1024}, 2).traffic.count(),
            2 * (tokens * per_token + elements_of(model.layer_shape(0).tensors)));
  EXPECT_EQ(embedding_cost(model, {8, 1024}, 2).traffic.count(), 2 * tokens * 3 * h);
  EXPECT_EQ(head_cost(model, {8, 1024}, 4).traffic.count(), 4 * (tokens * (3 * h + 2 * 50257) + 50257 * h));
}

TEST(ModelCost, AdamMovesItsState) {
  EXPECT_EQ(adam_traffic(2, 2), 28);
  EXPECT_EQ(adam_traffic(4, 2), 30);
  EXPECT_EQ(adam_state(4, 2), 18);  // Megatron-LM: bf16 weights, fp32 gradients
  EXPECT_EQ(adam_state(2, 2), 16);  // Rajbhandari et al.: 2 + 2 + K, K = 12
}

}  // namespace
}  // namespace weft::test
