// SPDX-License-Identifier: GPL-2.0-only
// Model family `mistral`: Jiang et al. 2023, "Mistral 7B", arXiv:2310.06825.
#include "workloads/model/transformer_tensors.hpp"

namespace weft {
namespace {

/// Llama without biases, whose tokens may see a window only.
class Mistral : public ModelFamily {
 public:
  ModelConfig read(const JsonConfig& config) const override {
    ModelConfig model = read_llama_frame(config, false);
    BlockShape block = read_llama_block(config, model.hidden, {});
    block.attention.window = read_window(config, true);
    model.repeat(std::move(block), read_layers(config, "num_hidden_layers"));
    return model;
  }
};

const Registration<ModelFamily, Mistral> model_mistral_registration("mistral", "Mistral: Llama with a sliding window");

}  // namespace
}  // namespace weft
