// SPDX-License-Identifier: GPL-2.0-only
// Models from config.json: parameters against model cards, and complaints with file and line.
#include "workloads/model/model_config.hpp"

#include <gtest/gtest.h>

#include "tests/workloads/workload_under_test.hpp"

namespace weft::test::model_config_test {
namespace {

ModelConfig ready_made(const std::string& name) {
  return read_model(JsonConfig::load(workloads_folder() + "/models/" + name + ".json"));
}

TEST(ModelConfig, ParametersAreThoseOfTheModelCards) {
  EXPECT_EQ(ready_made("gpt2").parameters(), 124'439'808);
  EXPECT_EQ(ready_made("llama-3.1-8b").parameters(), 8'030'261'248);
}

std::string llama(std::int64_t h, std::int64_t f, std::int64_t layers, std::int64_t a, std::int64_t k, std::int64_t v,
                  const std::string& more = "") {
  return R"({"model_type": "llama", "max_position_embeddings": 4096, "hidden_size": )" + std::to_string(h) +
         R"(, "intermediate_size": )" + std::to_string(f) + R"(, "num_hidden_layers": )" + std::to_string(layers) +
         R"(, "num_attention_heads": )" + std::to_string(a) + R"(, "num_key_value_heads": )" + std::to_string(k) +
         R"(, "vocab_size": )" + std::to_string(v) + more + "}";
}

TEST(ModelConfig, OtherLlamasHaveTheirPublishedSizes) {
  EXPECT_EQ(read_model(JsonConfig::parse(llama(4096, 11008, 32, 32, 32, 32000), "x")).parameters(), 6'738'415'616);
  EXPECT_EQ(read_model(JsonConfig::parse(llama(8192, 28672, 80, 64, 8, 128256), "x")).parameters(), 70'553'706'496);
  EXPECT_EQ(read_model(JsonConfig::parse(llama(16384, 53248, 126, 128, 8, 128256), "x")).parameters(), 405'853'388'800);
}

TEST(ModelConfig, LlamaFollowsTheClosedForm) {
  // L (2had + 2hkd + 3hf + 2h) + h + Vh (1 if tied, else 2)
  const std::int64_t h = 64, f = 96, l = 3, a = 4, k = 2, d = 20, v = 100;
  const std::int64_t rest = l * (2 * h * a * d + 2 * h * k * d + 3 * h * f + 2 * h) + h;
  const std::string head = R"(, "head_dim": 20)";
  EXPECT_EQ(read_model(JsonConfig::parse(llama(h, f, l, a, k, v, head), "x")).parameters(), rest + 2 * v * h);
  EXPECT_EQ(read_model(JsonConfig::parse(llama(h, f, l, a, k, v, head + R"(, "tie_word_embeddings": true)"), "x"))
                .parameters(),
            rest + v * h);
  const std::int64_t biases = l * (a * d + 2 * k * d + h + 2 * f + h);
  EXPECT_EQ(read_model(
                JsonConfig::parse(llama(h, f, l, a, k, v, head + R"(, "attention_bias": true, "mlp_bias": true)"), "x"))
                .parameters(),
            rest + 2 * v * h + biases);
}

TEST(ModelConfig, Gpt2InnerWidthIsFourTimesHiddenUnlessGiven) {
  const std::string start =
      R"({"model_type": "gpt2", "n_embd": 8, "n_head": 2, "n_layer": 1, "n_positions": 4, "vocab_size": 10)";
  EXPECT_EQ(read_model(JsonConfig::parse(start + "}", "x")).layer_shape(0).mlp.inner, 32);
  EXPECT_EQ(read_model(JsonConfig::parse(start + R"(, "n_inner": null})", "x")).layer_shape(0).mlp.inner, 32);
  EXPECT_EQ(read_model(JsonConfig::parse(start + R"(, "n_inner": 20})", "x")).layer_shape(0).mlp.inner, 20);
}

void expect_bad_json(const std::string& text, const std::string& place, const std::vector<std::string>& parts) {
  const std::string message = complaint([&] { read_model(JsonConfig::parse(text, "config.json")); });
  EXPECT_TRUE(message.starts_with(place + ":")) << message;
  for (const auto& part : parts) EXPECT_NE(message.find(part), std::string::npos) << message << "\nlacks: " << part;
}

TEST(ModelConfig, Complaints) {
  const std::string rest = R"(
 "n_embd": 8,
 "n_head": 2,
 "n_layer": 1,
 "n_positions": 4)";
  expect_bad_json("{\"model_type\": \"gpt2\"," + rest + "}", "config.json", {"vocab_size", "missing"});
  expect_bad_json("{\"model_type\": \"gpt2\", \"vocab_sizes\": 3," + rest + "}", "config.json",
                  {"did you mean 'vocab_sizes'"});
  expect_bad_json("{\"model_type\": \"gpt2\"," + rest + ",\n \"vocab_size\": \"ten\"}", "config.json:6",
                  {"vocab_size", "\"ten\""});
  expect_bad_json("{\"model_type\": \"gpt2\"," + rest + ",\n \"vocab_size\": 0}", "config.json:6", {"found 0"});
  expect_bad_json("{\"model_type\": \"gpt2\"," + rest + ",\n \"vocab_size\": 1.5}", "config.json:6", {"found 1.5"});
  expect_bad_json("{\"model_type\": \"gpt2\"," + rest + ",\n \"vocab_size\": 1000000000000}", "config.json:6",
                  {"16777216"});
  expect_bad_json("{\"model_type\": \"gpt2\"," + rest + ",\n \"vocab_size\": 3\n \"n_inner\": 3}", "config.json:7",
                  {"not valid JSON"});
  expect_bad_json("{\"model_type\": \"gpt2\",\n \"vocab_size\": 3", "config.json:2", {"not valid JSON"});
  expect_bad_json("{\n \"model_type\": \"gpt3\"}", "config.json:2",
                  {"gpt3", "did you mean 'gpt2'", "gpt2, llama, mistral"});
  expect_bad_json("{\n \"model_type\": 3}", "config.json:2", {"text"});
  expect_bad_json("{}", "config.json", {"model_type", "missing"});
  expect_bad_json("[1, 2]", "config.json:1", {"object", "array"});
  expect_bad_json(
      "{\"model_type\": \"gpt2\", \"vocab_size\": 3, \"n_embd\": 9,\n \"n_head\": 2, \"n_layer\": 1, \"n_positions\": "
      "1}",
      "config.json:2", {"2 heads", "9"});
  expect_bad_json(
      "{\"model_type\": \"gpt2\", \"vocab_size\": 3, \"n_embd\": 16777216,\n \"n_head\": 2, \"n_layer\": 9, "
      "\"n_positions\": 1}",
      "config.json", {"9 layers"});
  // A key of an inner map, or a text, is not the field.
  expect_bad_json(
      "{\"task\": {\n \"model_type\": \"gpt2\"}, \"architectures\": [\"model_type\"],\n \"model_type\": true}",
      "config.json:3", {"text"});
}

TEST(ModelConfig, UnreadableFile) {
  EXPECT_EQ(complaint([] { JsonConfig::load("/nowhere/config.json"); }).find("/nowhere/config.json: "), 0U);
}

}  // namespace
}  // namespace weft::test::model_config_test
