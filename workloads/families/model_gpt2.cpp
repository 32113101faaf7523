// SPDX-License-Identifier: GPL-2.0-only
// Model family `gpt2`: Radford et al. 2019, "Language models are unsupervised multitask learners".
#include <fmt/format.h>

#include "workloads/model/transformer_tensors.hpp"

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
    model.repeat(std::move(block), read_layers(config, "n_layer"));
    return model;
  }

 private:
  static void add_tensors(ModelConfig& model, BlockShape& block) {
    const std::int64_t h = model.hidden;
    const std::int64_t f = block.mlp.inner;
    add_columns(model.embedding, "wte", model.vocabulary, h, false);
    add_whole(model.embedding, "wpe", model.positions, h, false);
    add_norm(block.tensors, "ln_1", h, true);
    add_columns(block.tensors, "attn.c_attn", h, 3 * h, true);
    add_rows(block.tensors, "attn.c_proj", h, h, true);
    add_norm(block.tensors, "ln_2", h, true);
    add_columns(block.tensors, "mlp.c_fc", h, f, true);
    add_rows(block.tensors, "mlp.c_proj", f, h, true);
    add_norm(model.head, "ln_f", h, true);
    if (!model.tied) add_columns(model.head, "lm_head", h, model.vocabulary, false);
  }
};

const Registration<ModelFamily, Gpt2> model_gpt2_registration("gpt2",
                                                              "GPT-2: learned positions, GELU, tied embeddings");

}  // namespace
}  // namespace weft
