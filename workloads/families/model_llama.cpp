// SPDX-License-Identifier: GPL-2.0-only
// Model family `llama`: Touvron et al. 2023, arXiv:2302.13971; grouped queries as in Llama 3, arXiv:2407.21783.
#include "workloads/model/transformer_tensors.hpp"

namespace weft {
namespace {

/// Rotary positions (no parameters), RMS norms with scale only, SwiGLU, biases only on request.
class Llama : public ModelFamily {
 public:
  ModelConfig read(const JsonConfig& config) const override {
    ModelConfig model = read_llama_frame(config, false);
    BlockOptions options;
    options.query_bias = options.output_bias = config.boolean_or("attention_bias", false);
    options.mlp_bias = config.boolean_or("mlp_bias", false);
    model.repeat(read_llama_block(config, model.hidden, options), read_layers(config, "num_hidden_layers"));
    return model;
  }
};

const Registration<ModelFamily, Llama> model_llama_registration("llama",
                                                                "Llama: rotary positions, SwiGLU, grouped queries");

}  // namespace
}  // namespace weft
