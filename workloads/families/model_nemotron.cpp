// SPDX-License-Identifier: GPL-2.0-only
// Model family `nemotron`: Parmar et al. 2024, "Nemotron-4 15B technical report", arXiv:2402.16819; NVIDIA 2024,
// "Nemotron-4 340B technical report", arXiv:2406.11704.
#include "workloads/model/transformer_tensors.hpp"

namespace weft {
namespace {

/// Llama with squared ReLU instead of a gate, and layer norms with a shift (NemotronLayerNorm1P of transformers).
class Nemotron : public ModelFamily {
 public:
  ModelConfig read(const JsonConfig& config) const override {
    ModelConfig model;
    model.hidden = config.count("hidden_size");
    model.vocabulary = config.count("vocab_size");
    model.positions = config.count("max_position_embeddings");
    model.tied = config.boolean_or("tie_word_embeddings", false);
    model.dropout = false;
    add_columns(model.embedding, "embed_tokens", model.vocabulary, model.hidden, false);
    add_norm(model.head, "norm", model.hidden, true);
    if (!model.tied) add_columns(model.head, "lm_head", model.hidden, model.vocabulary, false);
    model.repeat(read_block(config, model.hidden), read_layers(config, "num_hidden_layers"));
    return model;
  }

 private:
  static BlockShape read_block(const JsonConfig& config, std::int64_t hidden) {
    BlockOptions options;
    options.query_bias = options.output_bias = config.boolean_or("attention_bias", false);
    options.mlp_bias = config.boolean_or("mlp_bias", false);
    BlockShape block;
    block.attention = read_grouped_attention(config, hidden);
    block.mlp.inner = config.count("intermediate_size");
    add_grouped_attention(block.tensors, hidden, block.attention, options);
    add_columns(block.tensors, "mlp.up_proj", hidden, block.mlp.inner, options.mlp_bias);
    add_rows(block.tensors, "mlp.down_proj", block.mlp.inner, hidden, options.mlp_bias);
    add_norm(block.tensors, "input_layernorm", hidden, true);
    add_norm(block.tensors, "post_attention_layernorm", hidden, true);
    return block;
  }
};

const Registration<ModelFamily, Nemotron> model_nemotron_registration(
    "nemotron", "Nemotron-4: rotary positions, squared ReLU, grouped queries");

}  // namespace
}  // namespace weft
