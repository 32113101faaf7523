// SPDX-License-Identifier: GPL-2.0-only
// Model families: parameters against model cards, shares of parallel ranks, and complaints with file and line.
#include <cmath>
#include <map>

#include <gtest/gtest.h>

#include "tests/workloads/workload_under_test.hpp"
#include "workloads/configuration/hugging_face_fields.hpp"
#include "workloads/model/model_config.hpp"

namespace weft::test::model_families_test {
namespace {

std::string path_of(const std::string& name) { return workloads_folder() + "/models/" + name + ".json"; }
ModelConfig ready_made(const std::string& name) { return read_model(JsonConfig::load(path_of(name))); }
ModelConfig model_of(const std::string& text) { return read_model(JsonConfig::parse(text, "config.json")); }

/// Number of parameters in the safetensors index of the model's page on the hub, unless another source is given.
const std::map<std::string, std::int64_t>& published() {
  static const std::map<std::string, std::int64_t> sizes = {
      {"gpt2", 124'439'808},
      {"llama-2-7b", 6'738'415'616},
      {"llama-3.1-8b", 8'030'261'248},
      {"llama-3.1-70b", 70'553'706'496},
      {"llama-3.1-405b", 405'853'388'800},
      {"mistral-7b", 7'241'732'096},
      {"mixtral-8x7b", 46'702'792'704},
      {"qwen2-7b", 7'615'616'512},
      {"qwen3-30b-a3b", 30'532'122'624},
      {"deepseek-v3", 671'026'419'200},      // the main model, without the layer of multi-token prediction
      {"nemotron-4-340b", 341'029'195'776},  // arXiv:2406.11704: see Nemotron4IsThatOfItsReport
      {"opt-6.7b", 6'658'473'984},
      {"bert-large", 335'174'458},
      {"t5-large", 737'668'096},
      {"switch-base-8", 619'339'008},
      {"resnet-50", 25'557'032},  // torchvision.models.resnet50
  };
  return sizes;
}

TEST(ModelFamilies, ParametersAreThoseOfTheModelCards) {
  for (const auto& [name, parameters] : published()) EXPECT_EQ(ready_made(name).parameters(), parameters) << name;
}

TEST(ModelFamilies, Gpt3IsTheFormulaOfNarayanan) {
  // SC'21: 12 L h^2 (1 + 13/(12h) + (V+s)/(12 L h)), which leaves out the last norm (2h).
  const double v = 51200, s = 2048;
  for (const auto& [name, l, h] : {std::tuple("gpt3-175b", 96.0, 12288.0), {"gpt3-6.7b", 32.0, 4096.0}}) {
    const double formula = 12 * l * h * h * (1 + 13 / (12 * h) + (v + s) / (12 * l * h));
    EXPECT_EQ(static_cast<double>(ready_made(name).parameters()), std::round(formula) + 2 * h);
  }
}

TEST(ModelFamilies, Nemotron4IsThatOfItsReport) {
  // arXiv:2406.11704, table 1 and 2.1: 9.4 B parameters of embeddings, not tied, and 331.6 B of others: 96 blocks of
  // 2h^2 + 2h 8 (h/96) + 2h 4h, with two norms of 2h, and the last norm.
  const ModelConfig model = ready_made("nemotron-4-340b");
  const std::int64_t h = 18432, embeddings = 2 * 256'000 * h;
  const std::int64_t others = 96 * (2 * h * h + 2 * h * 8 * (h / 96) + 8 * h * h + 4 * h) + 2 * h;
  EXPECT_EQ(model.parameters(), embeddings + others);
  EXPECT_NEAR(static_cast<double>(embeddings), 9.4e9, 0.05e9);
  EXPECT_NEAR(static_cast<double>(others), 331.6e9, 0.05e9);
  EXPECT_FALSE(model.layer_shape(0).mlp.gated);
  EXPECT_FALSE(model.learned_positions);
}

TEST(ModelFamilies, ActiveParametersLeaveOutTheOtherExperts) {
  // Mixtral: of each block 6 of 8 experts (3hf each) rest.
  EXPECT_EQ(ready_made("mixtral-8x7b").active_parameters(), 46'702'792'704 - std::int64_t{32} * 6 * 3 * 4096 * 14336);
  // DeepSeek-V3 "37B activated": 58 blocks in which 248 of 256 experts rest.
  EXPECT_EQ(ready_made("deepseek-v3").active_parameters(), 671'026'419'200 - std::int64_t{58} * 248 * 3 * 7168 * 2048);
  EXPECT_EQ(ready_made("llama-3.1-8b").active_parameters(), 8'030'261'248);
}

TEST(ModelFamilies, EveryReadyMadeModelIsReadCompletely) {
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(workloads_folder() + "/models")) {
    TrainingDescription description;
    read_hugging_face_model(entry.path(), description);
    EXPECT_TRUE(description.ignored.empty()) << entry.path() << ": " << description.ignored.front();
    EXPECT_TRUE(published().contains(entry.path().stem()) || entry.path().stem().string().starts_with("gpt3"))
        << entry.path();
    ++files;
  }
  EXPECT_EQ(files, published().size() + 2);
}

TEST(ModelFamilies, UnknownFieldsAreListedOnce) {
  const std::string start =
      R"({"model_type": "gpt2", "n_embd": 8, "n_head": 2, "n_layer": 1, "n_positions": 4, "vocab_size": 10)";
  const TemporaryFile file("config.json", start + R"(, "use_cache": true, "extra_layers": 3, "n_heads": 7})");
  TrainingDescription description;
  description.ignored = {"n_heads"};
  read_hugging_face_model(file.path(), description);
  EXPECT_EQ(description.ignored, (std::vector<std::string>{"n_heads", "extra_layers"}));
}

struct Shares {
  std::int64_t whole = 0, tensor = 0, expert = 0;
};
Shares shares_of(const std::vector<Tensor>& tensors) {
  Shares shares;
  for (const Tensor& tensor : tensors)
    (tensor.split == Split::none     ? shares.whole
     : tensor.split == Split::tensor ? shares.tensor
                                     : shares.expert) += tensor.elements;
  return shares;
}

TEST(ModelFamilies, WhatEveryTensorRankHasWhole) {
  // Norms, biases behind sums, and routers; all else is cut.
  const std::int64_t h = 4096;
  EXPECT_EQ(shares_of(ready_made("llama-3.1-8b").layer_shape(0).tensors).whole, 2 * h);
  EXPECT_EQ(shares_of(ready_made("mixtral-8x7b").layer_shape(0).tensors).whole, 2 * h + 8 * h);
  EXPECT_EQ(shares_of(ready_made("mixtral-8x7b").layer_shape(0).tensors).expert, 8 * 3 * h * 14336);
  EXPECT_EQ(shares_of(ready_made("opt-6.7b").layer_shape(0).tensors).whole, 4 * h + 2 * h);
  EXPECT_EQ(shares_of(ready_made("gpt2").layer_shape(0).tensors).whole, (4 + 2) * 768);
  EXPECT_EQ(shares_of(ready_made("qwen3-30b-a3b").layer_shape(0).tensors).whole, 2 * 2048 + 2 * 128 + 128 * 2048);
  EXPECT_EQ(shares_of(ready_made("qwen2-7b").layer_shape(0).tensors).whole, 2 * 3584);
  EXPECT_EQ(shares_of(ready_made("bert-large").layer_shape(0).tensors).whole, (4 + 2) * 1024);
  // Latent attention: the compressions and their norms.
  EXPECT_EQ(shares_of(ready_made("deepseek-v3").layer_shape(0).tensors).whole,
            2 * 7168 + 7168 * 1536 + 1536 + 7168 * (512 + 64) + 512);
  EXPECT_EQ(shares_of(ready_made("t5-large").layer_shape(1).tensors).whole, 2 * 1024);
  // The vocabulary is shared out.
  EXPECT_EQ(shares_of(ready_made("llama-3.1-8b").embedding).tensor, 128256 * h);
  EXPECT_EQ(shares_of(ready_made("llama-3.1-8b").head).tensor, 128256 * h);
  EXPECT_EQ(shares_of(ready_made("gpt2").embedding).whole, 1024 * 768);
}

std::string llama_like(const std::string& type, std::int64_t h, std::int64_t f, std::int64_t layers, std::int64_t a,
                       std::int64_t k, std::int64_t v, const std::string& more = "") {
  return fmt::format(R"({{"model_type": "{}", "max_position_embeddings": 4096, "hidden_size": {},
 "intermediate_size": {}, "num_hidden_layers": {}, "num_attention_heads": {}, "num_key_value_heads": {},
 "vocab_size": {}{}}})",
                     type, h, f, layers, a, k, v, more);
}

TEST(ModelFamilies, OtherSizesOfTheFamilies) {
  EXPECT_EQ(model_of(llama_like("qwen3", 4096, 12288, 36, 32, 8, 151936, R"(, "head_dim": 128)")).parameters(),
            8'190'735'360);  // Qwen3-8B
  EXPECT_EQ(model_of(llama_like("gemma", 2048, 16384, 18, 8, 1, 256000, R"(, "head_dim": 256)")).parameters(),
            2'506'172'416);  // gemma-2b
  EXPECT_EQ(model_of(llama_like("gemma", 3072, 24576, 28, 16, 16, 256000, R"(, "head_dim": 256)")).parameters(),
            8'537'680'896);  // gemma-7b
  EXPECT_EQ(model_of(llama_like("qwen2_moe", 2048, 5632, 24, 16, 16, 151936,
                                R"(, "num_experts": 60, "num_experts_per_tok": 4, "moe_intermediate_size": 1408,
 "shared_expert_intermediate_size": 5632)"))
                .parameters(),
            14'315'784'192);  // Qwen1.5-MoE-A2.7B
  const std::string latent = R"(, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
 "v_head_dim": 128, "first_k_dense_replace": 1, "moe_layer_freq": 1, "n_shared_experts": 2, "num_experts_per_tok": 6)";
  EXPECT_EQ(model_of(llama_like("deepseek_v2", 5120, 12288, 60, 128, 128, 102400,
                                latent + R"(, "q_lora_rank": 1536, "n_routed_experts": 160,
 "moe_intermediate_size": 1536)"))
                .parameters(),
            235'741'434'880);  // DeepSeek-V2
  EXPECT_EQ(model_of(llama_like("deepseek_v2", 2048, 10944, 27, 16, 16, 102400,
                                latent + R"(, "q_lora_rank": null, "n_routed_experts": 64,
 "moe_intermediate_size": 1408)"))
                .parameters(),
            15'706'484'224);  // DeepSeek-V2-Lite
}

TEST(ModelFamilies, BertForPreTrainingHasThePooler) {
  const std::string text = R"({"model_type": "bert", "vocab_size": 30522, "max_position_embeddings": 512,
 "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24, "num_attention_heads": 16,
 "architectures": ["BertForPreTraining"]})";
  const std::int64_t h = 1024;
  EXPECT_EQ(model_of(text).parameters(), 335'174'458 + (h * h + h) + (2 * h + 2));
  EXPECT_FALSE(model_of(text).layer_shape(0).attention.causal);
}

TEST(ModelFamilies, DenseAndSparseBlocks) {
  const ModelConfig deepseek = ready_made("deepseek-v3");
  EXPECT_FALSE(deepseek.layer_shape(2).mlp.mixture());
  EXPECT_TRUE(deepseek.layer_shape(3).mlp.mixture());
  EXPECT_EQ(deepseek.layer_shape(3).mlp.shared_inner, 2048);
  EXPECT_EQ(deepseek.published_prediction_blocks, 1);
  EXPECT_EQ(deepseek.prediction_blocks, 0);
  const ModelConfig switches = ready_made("switch-base-8");
  EXPECT_EQ(switches.encoder_blocks, 12);
  EXPECT_EQ(switches.layers(), 24);
  for (std::int64_t layer = 0; layer < 24; ++layer) {
    EXPECT_EQ(switches.layer_shape(layer).mlp.mixture(), layer % 2 == 1) << layer;
    EXPECT_EQ(switches.layer_shape(layer).cross_attention, layer >= 12) << layer;
    EXPECT_EQ(switches.layer_shape(layer).attention.causal, layer >= 12) << layer;
  }
  // Qwen: every second block, and not the fourth.
  const ModelConfig qwen = model_of(llama_like("qwen3_moe", 64, 96, 6, 4, 2, 100,
                                               R"(, "num_experts": 4, "num_experts_per_tok": 2,
 "moe_intermediate_size": 32, "decoder_sparse_step": 2, "mlp_only_layers": [3])"));
  for (std::int64_t layer = 0; layer < 6; ++layer)
    EXPECT_EQ(qwen.layer_shape(layer).mlp.mixture(), layer == 1 || layer == 5) << layer;
}

TEST(ModelFamilies, Windows) {
  EXPECT_EQ(ready_made("mistral-7b").layer_shape(0).attention.window, 4096);
  EXPECT_EQ(ready_made("mixtral-8x7b").layer_shape(0).attention.window, 0);
  EXPECT_EQ(ready_made("qwen2-7b").layer_shape(0).attention.window, 0);
  const ModelConfig partly = model_of(llama_like(
      "qwen2", 64, 96, 6, 4, 2, 100, R"(, "sliding_window": 128, "use_sliding_window": true, "max_window_layers": 4)"));
  for (std::int64_t layer = 0; layer < 6; ++layer)
    EXPECT_EQ(partly.layer_shape(layer).attention.window, layer < 4 ? 0 : 128) << layer;
}

TEST(ModelFamilies, T5VersionOnePointOneIsGated) {
  // t5-v1_1-base: 12 and 12 blocks, d_ff 2048; 247,577,856 parameters on its page.
  const ModelConfig model = model_of(R"({"model_type": "t5", "vocab_size": 32128, "d_model": 768, "d_kv": 64,
 "d_ff": 2048, "num_layers": 12, "num_decoder_layers": 12, "num_heads": 12, "feed_forward_proj": "gated-gelu",
 "tie_word_embeddings": false})");
  EXPECT_EQ(model.parameters(), 247'577'856);
}

std::string resnet(const std::string& depths, const std::string& widths, const std::string& type) {
  return R"({"model_type": "resnet", "num_labels": 1000, "embedding_size": 64, "depths": )" + depths +
         R"(, "hidden_sizes": )" + widths + R"(, "layer_type": ")" + type + "\"}";
}

/// Multiplications with additions of one image, in billions.
double billions(const ModelConfig& model) {
  double gemms = static_cast<double>(model.hidden * model.head_classes);
  for (const auto kind : model.blocks)
    for (const SampleGemm& gemm : model.shapes[kind].gemms)
      gemms += static_cast<double>(gemm.rows) * static_cast<double>(gemm.columns * gemm.inner);
  return gemms / 1e9;
}

TEST(ModelFamilies, ResNetsHaveTheSizesOfTorchvision) {
  // https://pytorch.org/vision/stable/models.html, table of classification weights: parameters and GFLOPS.
  const std::string wide = "[256, 512, 1024, 2048]", narrow = "[64, 128, 256, 512]";
  const auto expect = [](const ModelConfig& model, std::int64_t parameters, double gflops) {
    EXPECT_EQ(model.parameters(), parameters);
    EXPECT_NEAR(billions(model), gflops, 0.005) << parameters;
  };
  expect(model_of(resnet("[2, 2, 2, 2]", narrow, "basic")), 11'689'512, 1.81);
  expect(model_of(resnet("[3, 4, 6, 3]", narrow, "basic")), 21'797'672, 3.66);
  expect(ready_made("resnet-50"), 25'557'032, 4.09);
  expect(model_of(resnet("[3, 4, 23, 3]", wide, "bottleneck")), 44'549'160, 7.80);
  expect(model_of(resnet("[3, 8, 36, 3]", wide, "bottleneck")), 60'192'808, 11.51);
}

void expect_bad(const std::string& text, const std::string& place, const std::vector<std::string>& parts) {
  const std::string message = complaint([&] { model_of(text); });
  EXPECT_TRUE(message.starts_with(place + ":")) << message;
  for (const auto& part : parts) EXPECT_NE(message.find(part), std::string::npos) << message << "\nlacks: " << part;
}

TEST(ModelFamilies, Complaints) {
  expect_bad(llama_like("mixtral", 64, 96, 6, 4, 2, 100, ",\n \"num_local_experts\": 4,\n \"num_experts_per_tok\": 5"),
             "config.json:5", {"`num_experts_per_tok`", "5 experts", "4", "up to 4"});
  expect_bad(
      llama_like("mixtral", 64, 96, 6, 4, 2, 100, ",\n \"num_local_experts\": 16777216, \"num_experts_per_tok\": 1"),
      "config.json:4", {"16777216 times 96"});
  expect_bad(llama_like("llama", 64, 96, 6, 4, 3, 100), "config.json:2", {"3 key-value heads", "4"});
  expect_bad(llama_like("llama", 64, 96, 65537, 4, 2, 100), "config.json:2", {"65537 blocks", "65536"});
  expect_bad(llama_like("opt", 64, 96, 6, 4, 4, 100, ",\n \"ffn_dim\": 256, \"word_embed_proj_dim\": 32"),
             "config.json:4", {"32", "64"});
  expect_bad(resnet("[3, 4]", "[64]", "basic"), "config.json:1", {"2 stages", "1"});
  expect_bad(resnet("[3]", "[64]", "wide"), "config.json:1", {"'wide'", "bottleneck or basic"});
  expect_bad(resnet("[3.5]", "[64]", "basic"), "config.json:1", {"`depths`", "3.5"});
  expect_bad(resnet("4", "[64]", "basic"), "config.json:1", {"expected a list", "4"});
}

TEST(JsonConfig, InnerObjectsAndNumbers) {
  const JsonConfig config = JsonConfig::parse(
      "{\n \"a\": {\"b\": 5e8,\n  \"c\": {\n   \"b\": 1.5}},\n \"b\": [{\"b\": 1}],\n \"t\": \"auto\"}", "x.json");
  EXPECT_EQ(config.object("a").whole("b", 0, 1'000'000'000), 500'000'000);
  const JsonConfig inner = config.object("a").object("c");
  EXPECT_EQ(inner.path("b"), "a.c.b");
  EXPECT_EQ(inner.where("b").line, 4);
  EXPECT_EQ(config.where("b").line, 5);
  EXPECT_NE(complaint([&] { inner.whole("b", 0, 9); }).find("x.json:4: `a.c.b`: expected a whole number from 0 to 9"),
            std::string::npos);
  EXPECT_NE(complaint([&] { static_cast<void>(config.object("t")); }).find("x.json:6: `t`: expected an object"),
            std::string::npos);
  EXPECT_EQ(config.unasked(), std::vector<std::string>{"b"});
  EXPECT_NE(complaint([] { JsonConfig::parse(std::string("{}\n\0]", 5), "x.json"); }).find("x.json:2: not valid JSON"),
            std::string::npos);
  EXPECT_NE(complaint([] { JsonConfig::parse("{\"a\": 1e999}", "x.json"); }).find("not valid JSON"), std::string::npos);
}

}  // namespace
}  // namespace weft::test::model_families_test
