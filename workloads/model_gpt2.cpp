// SPDX-License-Identifier: GPL-2.0-only
// Model family `gpt2`: Radford et al. 2019, "Language models are unsupervised multitask learners".
#include <fmt/format.h>

#include "workloads/model_config.hpp"

namespace weft {
namespace {

/// Learned positions, biases everywhere, layer norms with scale and shift, logits tied to the token embedding.
class Gpt2 : public ModelFamily {
 public:
  ModelConfig read(const JsonConfig& config) const override {
    ModelConfig model;
    model.hidden = config.count("n_embd");
    BlockShape block;
    AttentionShape& attention = block.attention;
    attention.heads = attention.kv_heads = config.count("n_head");
    if (model.hidden % attention.heads != 0)
      throw config.error("n_head", fmt::format("{} heads do not divide n_embd {}", attention.heads, model.hidden));
    attention.head_size = attention.value_size = model.hidden / attention.heads;
    block.mlp.inner = config.count_or("n_inner", 4 * model.hidden);
    model.vocabulary = config.count("vocab_size");
    model.positions = config.count("n_positions");
    model.tied = config.boolean_or("tie_word_embeddings", true);
    model.learned_positions = true;
    add_tensors(model, block);
    model.repeat(std::move(block), config.count("n_layer"));
    return model;
  }

 private:
  static void add_tensors(ModelConfig& model, BlockShape& block) {
    const std::int64_t h = model.hidden;
    const std::int64_t f = block.mlp.inner;
    constexpr auto shared = Split::tensor;
    model.embedding = {{"wte.weight", model.vocabulary * h, shared}, {"wpe.weight", model.positions * h}};
    block.tensors = {{"ln_1.weight", h},
                     {"ln_1.bias", h},
                     {"attn.c_attn.weight", 3 * h * h, shared},
                     {"attn.c_attn.bias", 3 * h, shared},
                     {"attn.c_proj.weight", h * h, shared},
                     {"attn.c_proj.bias", h},
                     {"ln_2.weight", h},
                     {"ln_2.bias", h},
                     {"mlp.c_fc.weight", h * f, shared},
                     {"mlp.c_fc.bias", f, shared},
                     {"mlp.c_proj.weight", f * h, shared},
                     {"mlp.c_proj.bias", h}};
    model.head = {{"ln_f.weight", h}, {"ln_f.bias", h}};
    if (!model.tied) model.head.push_back({"lm_head.weight", model.vocabulary * h, shared});
  }
};

const Registration<ModelFamily, Gpt2> registration("gpt2", "GPT-2: learned positions, GELU, tied embeddings");

}  // namespace
}  // namespace weft
