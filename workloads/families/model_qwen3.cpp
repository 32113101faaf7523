// SPDX-License-Identifier: GPL-2.0-only
// Model family `qwen3`: Yang et al. 2025, "Qwen3 technical report", arXiv:2505.09388.
#include "workloads/model/transformer_tensors.hpp"

namespace weft {
namespace {

/// Llama with norms of the queries and keys of each head.
class Qwen3 : public ModelFamily {
 public:
  ModelConfig read(const JsonConfig& config) const override {
    ModelConfig model = read_llama_frame(config, false);
    BlockOptions options;
    options.query_bias = options.output_bias = config.boolean_or("attention_bias", false);
    options.head_norms = true;
    BlockShape block = read_llama_block(config, model.hidden, options);
    block.attention.window = read_window(config, config.boolean_or("use_sliding_window", false));
    model.repeat(std::move(block), read_layers(config, "num_hidden_layers"));
    return model;
  }
};

const Registration<ModelFamily, Qwen3> model_qwen3_registration("qwen3", "Qwen3: Llama with norms of queries and keys");

}  // namespace
}  // namespace weft
