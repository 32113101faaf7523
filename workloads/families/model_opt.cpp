// SPDX-License-Identifier: GPL-2.0-only
// Model family `opt`: Zhang et al. 2022, "OPT: open pre-trained transformer language models", arXiv:2205.01068.
#include <fmt/format.h>

#include "workloads/model/transformer_tensors.hpp"

namespace weft {
namespace {

/// GPT with ReLU and separate GEMMs for queries, keys and values. The table of positions has two rows more than there
/// are positions (OPTLearnedPositionalEmbedding of transformers).
class Opt : public ModelFamily {
 public:
  ModelConfig read(const JsonConfig& config) const override {
    ModelConfig model = read_learned_frame(config);
    if (const std::int64_t width = config.count_or("word_embed_proj_dim", model.hidden); width != model.hidden)
      throw config.error("word_embed_proj_dim",
                         fmt::format("embeddings of {} for a hidden_size of {}; only {} is supported", width,
                                     model.hidden, model.hidden));
    BlockShape block;
    block.attention = read_grouped_attention(config, model.hidden);
    block.mlp.inner = config.count("ffn_dim");
    add_tensors(config, model, block);
    model.repeat(std::move(block), read_layers(config, "num_hidden_layers"));
    return model;
  }

 private:
  static void add_tensors(const JsonConfig& config, ModelConfig& model, BlockShape& block) {
    constexpr std::int64_t more_rows = 2;
    const std::int64_t h = model.hidden;
    const bool bias = config.boolean_or("enable_bias", true);
    const bool norms = config.boolean_or("layer_norm_elementwise_affine", true);
    BlockOptions options;
    options.query_bias = options.output_bias = bias;
    add_columns(model.embedding, "embed_tokens", model.vocabulary, h, false);
    add_whole(model.embedding, "embed_positions", model.positions + more_rows, h, false);
    add_grouped_attention(block.tensors, h, block.attention, options);
    if (norms) add_norm(block.tensors, "self_attn_layer_norm", h, true);
    add_columns(block.tensors, "fc1", h, block.mlp.inner, bias);
    add_rows(block.tensors, "fc2", block.mlp.inner, h, bias);
    if (norms) add_norm(block.tensors, "final_layer_norm", h, true);
    const bool last_norm =
        config.boolean_or("do_layer_norm_before", true) && !config.boolean_or("_remove_final_layer_norm", false);
    if (norms && last_norm) add_norm(model.head, "final_layer_norm", h, true);
    if (!model.tied) add_columns(model.head, "lm_head", h, model.vocabulary, false);
  }
};

const Registration<ModelFamily, Opt> model_opt_registration("opt", "OPT: learned positions, ReLU, tied embeddings");

}  // namespace
}  // namespace weft
