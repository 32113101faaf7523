// SPDX-License-Identifier: GPL-2.0-only
// Model family `bert`: Devlin et al. 2018, arXiv:1810.04805.
#include <algorithm>

#include "workloads/model/transformer_tensors.hpp"

namespace weft {
namespace {

/// Every token sees every other. Trained on masked words; with `architectures: [BertForPreTraining]` on pairs of
/// sentences too, which takes the pooler.
class Bert : public ModelFamily {
 public:
  ModelConfig read(const JsonConfig& config) const override {
    ModelConfig model = read_learned_frame(config);
    BlockShape block;
    block.attention = read_grouped_attention(config, model.hidden);
    block.attention.causal = config.boolean_or("is_decoder", false);
    block.mlp.inner = config.count("intermediate_size");
    const std::int64_t h = model.hidden;
    add_columns(model.embedding, "embeddings.word_embeddings", model.vocabulary, h, false);
    add_whole(model.embedding, "embeddings.position_embeddings", model.positions, h, false);
    add_whole(model.embedding, "embeddings.token_type_embeddings", config.count_or("type_vocab_size", 2), h, false);
    add_norm(model.embedding, "embeddings.LayerNorm", h, true);
    BlockOptions biases;
    biases.query_bias = biases.output_bias = true;
    add_grouped_attention(block.tensors, h, block.attention, biases);
    add_norm(block.tensors, "attention.output.LayerNorm", h, true);
    add_columns(block.tensors, "intermediate.dense", h, block.mlp.inner, true);
    add_rows(block.tensors, "output.dense", block.mlp.inner, h, true);
    add_norm(block.tensors, "output.LayerNorm", h, true);
    add_head(config, model);
    model.repeat(std::move(block), read_layers(config, "num_hidden_layers"));
    return model;
  }

 private:
  static void add_head(const JsonConfig& config, ModelConfig& model) {
    const std::int64_t h = model.hidden;
    const auto classes = config.texts("architectures");
    const bool pairs = std::find(classes.begin(), classes.end(), "BertForPreTraining") != classes.end();
    if (pairs) add_whole(model.head, "pooler.dense", h, h, true);
    model.head.push_back({"cls.predictions.bias", model.vocabulary, Split::tensor});
    add_whole(model.head, "cls.predictions.transform.dense", h, h, true);
    add_norm(model.head, "cls.predictions.transform.LayerNorm", h, true);
    if (!model.tied) add_columns(model.head, "cls.predictions.decoder", h, model.vocabulary, false);
    if (pairs) add_whole(model.head, "cls.seq_relationship", h, 2, true);
  }
};

const Registration<ModelFamily, Bert> model_bert_registration("bert", "BERT: an encoder trained on masked words");

}  // namespace
}  // namespace weft
