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
    model.hidden = config.count("hidden_size");
    BlockShape block;
    AttentionShape& attention = block.attention;
    attention.heads = config.count("num_attention_heads");
    attention.kv_heads = config.count_or("num_key_value_heads", attention.heads);
    if (attention.heads % attention.kv_heads != 0)
      throw config.error("num_key_value_heads", fmt::format("{} key-value heads do not divide num_attention_heads {}",
                                                            attention.kv_heads, attention.heads));
    if (!config.has("head_dim") && model.hidden % attention.heads != 0)
      throw config.error(
          "num_attention_heads",
          fmt::format("{} heads do not divide hidden_size {}, and head_dim is absent", attention.heads, model.hidden));
    attention.head_size = config.count_or("head_dim", model.hidden / attention.heads);
    if (constexpr std::int64_t widest = std::int64_t{1} << 24; attention.heads * attention.head_size > widest)
      throw config.error("head_dim",
                         fmt::format("{} heads of {} are wider than {}", attention.heads, attention.head_size, widest));
    attention.value_size = attention.head_size;
    block.mlp.inner = config.count("intermediate_size");
    model.vocabulary = config.count("vocab_size");
    model.positions = config.count("max_position_embeddings");
    model.tied = config.boolean_or("tie_word_embeddings", false);
    block.mlp.gated = true;
    add_tensors(model, block, config.boolean_or("attention_bias", false), config.boolean_or("mlp_bias", false));
    model.repeat(std::move(block), config.count("num_hidden_layers"));
    return model;
  }

 private:
  static void add_linear(std::vector<Tensor>& tensors, const std::string& name, std::int64_t in, std::int64_t out,
                         bool bias, bool by_columns = true) {
    tensors.push_back({name + ".weight", in * out, Split::tensor});
    // The result of a product that is cut along its inner dimension is summed before the bias comes.
    if (bias) tensors.push_back({name + ".bias", out, by_columns ? Split::tensor : Split::none});
  }

  static void add_tensors(ModelConfig& model, BlockShape& block, bool attention_bias, bool mlp_bias) {
    const std::int64_t h = model.hidden;
    const std::int64_t f = block.mlp.inner;
    const std::int64_t queries = block.attention.heads * block.attention.head_size;
    const std::int64_t keys = block.attention.kv_heads * block.attention.head_size;
    model.embedding = {{"embed_tokens.weight", model.vocabulary * h, Split::tensor}};
    add_linear(block.tensors, "self_attn.q_proj", h, queries, attention_bias);
    add_linear(block.tensors, "self_attn.k_proj", h, keys, attention_bias);
    add_linear(block.tensors, "self_attn.v_proj", h, keys, attention_bias);
    add_linear(block.tensors, "self_attn.o_proj", queries, h, attention_bias, false);
    add_linear(block.tensors, "mlp.gate_proj", h, f, mlp_bias);
    add_linear(block.tensors, "mlp.up_proj", h, f, mlp_bias);
    add_linear(block.tensors, "mlp.down_proj", f, h, mlp_bias, false);
    block.tensors.push_back({"input_layernorm.weight", h});
    block.tensors.push_back({"post_attention_layernorm.weight", h});
    model.head = {{"norm.weight", h}};
    if (!model.tied) model.head.push_back({"lm_head.weight", model.vocabulary * h, Split::tensor});
  }
};

const Registration<ModelFamily, Llama> registration("llama", "Llama: rotary positions, SwiGLU, grouped queries");

}  // namespace
}  // namespace weft
