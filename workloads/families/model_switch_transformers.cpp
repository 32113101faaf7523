// SPDX-License-Identifier: GPL-2.0-only
// Model family `switch_transformers`: Fedus, Zoph, Shazeer 2021, arXiv:2101.03961.
#include "workloads/families/encoder_decoder.hpp"

namespace weft {
namespace {

/// T5 with experts in some blocks, one expert for each token.
class SwitchTransformers : public ModelFamily {
 public:
  ModelConfig read(const JsonConfig& config) const override {
    EncoderDecoderMlp mlp;
    mlp.dense.inner = mlp.sparse.expert_inner = config.count("d_ff");
    mlp.sparse.experts = config.count("num_experts");
    mlp.sparse.experts_per_token = 1;
    require_width(config, "num_experts", mlp.sparse.experts, mlp.sparse.expert_inner);
    mlp.router_bias = config.boolean_or("router_bias", false);
    mlp.encoder_step = step_of(config, "num_layers", "num_sparse_encoder_layers");
    const char* decoders = config.has("num_decoder_layers") ? "num_decoder_layers" : "num_layers";
    mlp.decoder_step = step_of(config, decoders, "num_sparse_decoder_layers");
    return read_encoder_decoder(config, mlp);
  }

 private:
  static std::int64_t step_of(const JsonConfig& config, const std::string& layers, const std::string& sparse) {
    const std::int64_t blocks = config.has(sparse) ? config.whole(sparse, 0, 65536) : 3;
    return blocks == 0 ? 0 : read_layers(config, layers) / blocks;
  }
};

const Registration<ModelFamily, SwitchTransformers> model_switch_transformers_registration(
    "switch_transformers", "Switch Transformer: T5 with experts");

}  // namespace
}  // namespace weft
