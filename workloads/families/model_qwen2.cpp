// SPDX-License-Identifier: GPL-2.0-only
// Model family `qwen2`: Yang et al. 2024, "Qwen2 technical report", arXiv:2407.10671.
#include <algorithm>

#include "workloads/model/transformer_tensors.hpp"

namespace weft {
namespace {

/// Llama with biases of queries, keys and values. A window, if in use, is that of the blocks from max_window_layers on.
class Qwen2 : public ModelFamily {
 public:
  ModelConfig read(const JsonConfig& config) const override {
    ModelConfig model = read_llama_frame(config, false);
    BlockOptions options;
    options.query_bias = true;
    BlockShape block = read_llama_block(config, model.hidden, options);
    repeat_with_window(config, model, std::move(block));
    return model;
  }

 private:
  static void repeat_with_window(const JsonConfig& config, ModelConfig& model, BlockShape block) {
    const std::int64_t layers = read_layers(config, "num_hidden_layers");
    const std::int64_t window = read_window(config, config.boolean_or("use_sliding_window", false));
    const auto limit = config.has("max_window_layers") ? config.whole("max_window_layers", 0, 65536) : 28;
    const std::int64_t wide = window == 0 ? layers : std::min(limit, layers);
    if (wide > 0) model.repeat(block, wide);
    block.attention.window = window;
    if (wide < layers) model.repeat(std::move(block), layers - wide);
  }
};

const Registration<ModelFamily, Qwen2> model_qwen2_registration("qwen2",
                                                                "Qwen2 and 2.5: Llama with biases of queries and keys");

}  // namespace
}  // namespace weft
