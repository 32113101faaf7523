// SPDX-License-Identifier: GPL-2.0-only
// Model family `gemma`: Gemma Team 2024, arXiv:2403.08295.
#include "workloads/model/transformer_tensors.hpp"

namespace weft {
namespace {

/// Llama with a separate head size, GeGLU, and logits tied to the embedding.
class Gemma : public ModelFamily {
 public:
  ModelConfig read(const JsonConfig& config) const override {
    ModelConfig model = read_llama_frame(config, true);
    BlockOptions options;
    options.query_bias = options.output_bias = config.boolean_or("attention_bias", false);
    model.repeat(read_llama_block(config, model.hidden, options), read_layers(config, "num_hidden_layers"));
    return model;
  }
};

const Registration<ModelFamily, Gemma> model_gemma_registration("gemma", "Gemma: wide heads, GeGLU, tied embeddings");

}  // namespace
}  // namespace weft
