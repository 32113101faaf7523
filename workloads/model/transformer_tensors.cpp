// SPDX-License-Identifier: GPL-2.0-only
// Common code of the families of transformers: how fields become shapes, and which tensors their parts have.
#include "workloads/model/transformer_tensors.hpp"

#include <fmt/format.h>

namespace weft {

void add_columns(std::vector<Tensor>& tensors, const std::string& name, std::int64_t in, std::int64_t out, bool bias) {
  tensors.push_back({name + ".weight", in * out, Split::tensor});
  if (bias) tensors.push_back({name + ".bias", out, Split::tensor});
}

void add_rows(std::vector<Tensor>& tensors, const std::string& name, std::int64_t in, std::int64_t out, bool bias) {
  tensors.push_back({name + ".weight", in * out, Split::tensor});
  if (bias) tensors.push_back({name + ".bias", out});
}

void add_whole(std::vector<Tensor>& tensors, const std::string& name, std::int64_t in, std::int64_t out, bool bias) {
  tensors.push_back({name + ".weight", in * out});
  if (bias) tensors.push_back({name + ".bias", out});
}

void add_norm(std::vector<Tensor>& tensors, const std::string& name, std::int64_t size, bool shift) {
  tensors.push_back({name + ".weight", size});
  if (shift) tensors.push_back({name + ".bias", size});
}

void add_experts(std::vector<Tensor>& tensors, const std::string& name, std::int64_t experts, std::int64_t in,
                 std::int64_t out) {
  tensors.push_back({name + ".weight", experts * in * out, Split::expert});
}

namespace {

ModelConfig read_frame(const JsonConfig& config, bool tied_unless_said) {
  ModelConfig model;
  model.hidden = config.count("hidden_size");
  model.vocabulary = config.count("vocab_size");
  model.positions = config.count("max_position_embeddings");
  model.tied = config.boolean_or("tie_word_embeddings", tied_unless_said);
  return model;
}

}  // namespace

ModelConfig read_learned_frame(const JsonConfig& config) {
  ModelConfig model = read_frame(config, true);
  model.learned_positions = true;
  return model;
}

ModelConfig read_llama_frame(const JsonConfig& config, bool tied_unless_said) {
  ModelConfig model = read_frame(config, tied_unless_said);
  model.dropout = false;
  add_columns(model.embedding, "embed_tokens", model.vocabulary, model.hidden, false);
  add_norm(model.head, "norm", model.hidden, false);
  if (!model.tied) add_columns(model.head, "lm_head", model.hidden, model.vocabulary, false);
  return model;
}

AttentionShape read_grouped_attention(const JsonConfig& config, std::int64_t hidden) {
  AttentionShape attention;
  attention.heads = config.count("num_attention_heads");
  attention.kv_heads = config.count_or("num_key_value_heads", attention.heads);
  if (attention.heads % attention.kv_heads != 0)
    throw config.error("num_key_value_heads", fmt::format("{} key-value heads do not divide num_attention_heads {}",
                                                          attention.kv_heads, attention.heads));
  if (!config.has("head_dim") && hidden % attention.heads != 0)
    throw config.error(
        "num_attention_heads",
        fmt::format("{} heads do not divide hidden_size {}, and head_dim is absent", attention.heads, hidden));
  attention.head_size = config.count_or("head_dim", hidden / attention.heads);
  require_width(config, "head_dim", attention.heads, attention.head_size);
  attention.value_size = attention.head_size;
  return attention;
}

BlockShape read_llama_block(const JsonConfig& config, std::int64_t hidden, const BlockOptions& options) {
  BlockShape block;
  block.attention = read_grouped_attention(config, hidden);
  block.mlp.inner = config.count("intermediate_size");
  block.mlp.gated = true;
  add_grouped_attention(block.tensors, hidden, block.attention, options);
  add_gated_mlp(block.tensors, "mlp", hidden, block.mlp.inner, options.mlp_bias);
  add_block_norms(block.tensors, hidden);
  return block;
}

void add_grouped_attention(std::vector<Tensor>& tensors, std::int64_t hidden, const AttentionShape& attention,
                           const BlockOptions& options) {
  const std::int64_t queries = attention.heads * attention.head_size;
  const std::int64_t keys = attention.kv_heads * attention.head_size;
  add_columns(tensors, "self_attn.q_proj", hidden, queries, options.query_bias);
  add_columns(tensors, "self_attn.k_proj", hidden, keys, options.query_bias);
  add_columns(tensors, "self_attn.v_proj", hidden, keys, options.query_bias);
  add_rows(tensors, "self_attn.o_proj", queries, hidden, options.output_bias);
  if (!options.head_norms) return;
  add_norm(tensors, "self_attn.q_norm", attention.head_size, false);
  add_norm(tensors, "self_attn.k_norm", attention.head_size, false);
}

void add_gated_mlp(std::vector<Tensor>& tensors, const std::string& name, std::int64_t hidden, std::int64_t inner,
                   bool bias) {
  add_columns(tensors, name + ".gate_proj", hidden, inner, bias);
  add_columns(tensors, name + ".up_proj", hidden, inner, bias);
  add_rows(tensors, name + ".down_proj", inner, hidden, bias);
}

void add_gated_experts(std::vector<Tensor>& tensors, const std::string& name, std::int64_t hidden,
                       const MlpShape& mlp) {
  add_whole(tensors, name + ".gate", hidden, mlp.experts, false);
  add_experts(tensors, name + ".experts.gate_proj", mlp.experts, hidden, mlp.expert_inner);
  add_experts(tensors, name + ".experts.up_proj", mlp.experts, hidden, mlp.expert_inner);
  add_experts(tensors, name + ".experts.down_proj", mlp.experts, mlp.expert_inner, hidden);
}

void add_block_norms(std::vector<Tensor>& tensors, std::int64_t hidden) {
  add_norm(tensors, "input_layernorm", hidden, false);
  add_norm(tensors, "post_attention_layernorm", hidden, false);
}

std::int64_t read_layers(const JsonConfig& config, const std::string& key) {
  constexpr std::int64_t max = 65536;
  const std::int64_t layers = config.count(key);
  if (layers > max) throw config.error(key, fmt::format("{} blocks; at most {} are possible", layers, max));
  return layers;
}

void read_experts(const JsonConfig& config, MlpShape& mlp, const std::string& experts, const std::string& per_token,
                  const std::string& inner) {
  mlp.experts = config.count(experts);
  mlp.experts_per_token = config.count(per_token);
  if (mlp.experts_per_token > mlp.experts)
    throw config.error(per_token, fmt::format("{} experts per token, but {} is {}; use up to {}", mlp.experts_per_token,
                                              experts, mlp.experts, mlp.experts));
  mlp.expert_inner = config.count(inner);
  require_width(config, experts, mlp.experts, mlp.expert_inner);
}

void require_width(const JsonConfig& config, const std::string& key, std::int64_t factor, std::int64_t size) {
  if (constexpr std::int64_t widest = std::int64_t{1} << 24; factor * size > widest)
    throw config.error(key, fmt::format("{} times {} is wider than {}", factor, size, widest));
}

std::int64_t read_window(const JsonConfig& config, bool used) {
  const std::int64_t window = config.count_or("sliding_window", 0);
  return used ? window : 0;
}

}  // namespace weft
