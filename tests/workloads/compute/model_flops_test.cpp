// SPDX-License-Identifier: GPL-2.0-only
// FLOPs of models against published formulas.
#include "workloads/model/model_flops.hpp"

#include <gtest/gtest.h>

#include "tests/workloads/workload_under_test.hpp"

namespace weft::test::model_flops_test {
namespace {

ModelConfig ready_made(const std::string& name) {
  return read_model(JsonConfig::load(workloads_folder() + "/models/" + name + ".json"));
}

// Narayanan et al., arXiv:2104.04473, appendix: with recomputation (four forward passes, of the logits three)
// 96 B s l h^2 (1 + s/(6h) + V/(16 l h)). Without it, three of all: 72 B s l h^2 (1 + s/(6h) + V/(12 l h)).
TEST(ModelFlops, OfGpt) {
  for (const std::string name : {"gpt2", "gpt3-175b"})
    for (const std::int64_t s : {512, 2048}) {
      const ModelConfig model = ready_made(name);
      const ModelFlops flops = forward_flops(model, s);
      const auto h = static_cast<double>(model.hidden), l = static_cast<double>(model.layers());
      const auto tokens = static_cast<double>(s), vocabulary = static_cast<double>(model.vocabulary);
      EXPECT_DOUBLE_EQ(3 * (flops.linear + flops.scores),
                       72 * tokens * l * h * h * (1 + tokens / (6 * h) + vocabulary / (12 * l * h)))
          << name;
      EXPECT_DOUBLE_EQ(flops.causal, flops.scores / 2);
    }
}

// A token is multiplied once with each parameter that it passes, but for the rows that it looks up and norms.
TEST(ModelFlops, TwicePerActiveParameter) {
  for (const std::string name : {"llama-3.1-8b", "llama-3.1-405b", "mixtral-8x7b", "mistral-7b", "llama-2-7b"}) {
    const ModelConfig model = ready_made(name);
    std::int64_t norms = 0;
    for (const std::uint32_t shape : model.blocks)
      for (const Tensor& tensor : model.shapes[shape].tensors)
        if (tensor.name.find("norm") != std::string::npos) norms += tensor.elements;
    const std::int64_t gemms = model.active_parameters() - elements_of(model.embedding) - norms - model.hidden;
    EXPECT_EQ(forward_flops(model, 128).linear, 2.0 * 128 * static_cast<double>(gemms)) << name;
  }
}

// DeepSeek-V3, arXiv:2412.19437, 1: 37 billion activated parameters, of them 0.9 billion in the embedding.
TEST(ModelFlops, OfLatentAttention) {
  const ModelConfig model = ready_made("deepseek-v3");
  const double gemms = forward_flops(model, 1).linear / 2;
  const double active = static_cast<double>(model.active_parameters() - elements_of(model.embedding));
  EXPECT_LT(gemms, active);
  EXPECT_GT(gemms, active * 0.9995);  // norms and the bias of the router are the rest
}

// A window hides tokens further back: Mistral's 4096 of 8192 tokens are at most half of the scores.
TEST(ModelFlops, Window) {
  const ModelConfig model = ready_made("mistral-7b");
  const std::int64_t window = model.layer_shape(0).attention.window;
  if (window == 0) GTEST_SKIP() << "this file has no window";
  const ModelFlops flops = forward_flops(model, 4 * window);
  EXPECT_DOUBLE_EQ(flops.causal, flops.scores / 4);
}

}  // namespace
}  // namespace weft::test::model_flops_test
