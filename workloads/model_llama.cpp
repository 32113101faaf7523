// SPDX-License-Identifier: GPL-2.0-only
// Model family `llama`: Touvron et al. 2023, arXiv:2302.13971; grouped queries as in Llama 3, arXiv:2407.21783.
#include <fmt/format.h>

#include "workloads/model_config.hpp"

namespace weft {
namespace {

/// Rotary positions (no parameters), RMS norms with scale only, SwiGLU, biases only on request.
class Llama : public ModelFamily {
 public:
  ModelConfig read(const JsonConfig& config) const override {
    ModelConfig model;
    model.layers = config.count("num_hidden_layers");
    model.hidden = config.count("hidden_size");
    model.heads = config.count("num_attention_heads");
    model.kv_heads = config.count_or("num_key_value_heads", model.heads);
    if (model.heads % model.kv_heads != 0)
      throw config.error("num_key_value_heads", fmt::format("{} key-value heads do not divide num_attention_heads {}",
                                                            model.kv_heads, model.heads));
    if (!config.has("head_dim") && model.hidden % model.heads != 0)
      throw config.error(
          "num_attention_heads",
          fmt::format("{} heads do not divide hidden_size {}, and head_dim is absent", model.heads, model.hidden));
    model.head_size = config.count_or("head_dim", model.hidden / model.heads);
    if (constexpr std::int64_t widest = std::int64_t{1} << 24; model.heads * model.head_size > widest)
      throw config.error("head_dim",
                         fmt::format("{} heads of {} are wider than {}", model.heads, model.head_size, widest));
    model.ffn = config.count("intermediate_size");
    model.vocabulary = config.count("vocab_size");
    model.positions = config.count("max_position_embeddings");
    model.tied = config.boolean_or("tie_word_embeddings", false);
    model.gated = true;
    add_tensors(model, config.boolean_or("attention_bias", false), config.boolean_or("mlp_bias", false));
    return model;
  }

 private:
  static void add_linear(std::vector<Tensor>& tensors, const std::string& name, std::int64_t in, std::int64_t out,
                         bool bias) {
    tensors.push_back({name + ".weight", in * out});
    if (bias) tensors.push_back({name + ".bias", out});
  }

  static void add_tensors(ModelConfig& model, bool attention_bias, bool mlp_bias) {
    const std::int64_t h = model.hidden;
    const std::int64_t queries = model.heads * model.head_size;
    const std::int64_t keys = model.kv_heads * model.head_size;
    model.embedding = {{"embed_tokens.weight", model.vocabulary * h}};
    add_linear(model.block, "self_attn.q_proj", h, queries, attention_bias);
    add_linear(model.block, "self_attn.k_proj", h, keys, attention_bias);
    add_linear(model.block, "self_attn.v_proj", h, keys, attention_bias);
    add_linear(model.block, "self_attn.o_proj", queries, h, attention_bias);
    add_linear(model.block, "mlp.gate_proj", h, model.ffn, mlp_bias);
    add_linear(model.block, "mlp.up_proj", h, model.ffn, mlp_bias);
    add_linear(model.block, "mlp.down_proj", model.ffn, h, mlp_bias);
    model.block.push_back({"input_layernorm.weight", h});
    model.block.push_back({"post_attention_layernorm.weight", h});
    model.head = {{"norm.weight", h}};
    if (!model.tied) model.head.push_back({"lm_head.weight", model.vocabulary * h});
  }
};

const Registration<ModelFamily, Llama> registration("llama", "Llama: rotary positions, SwiGLU, grouped queries");

}  // namespace
}  // namespace weft
