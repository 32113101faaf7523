// SPDX-License-Identifier: GPL-2.0-only
// Model family `mixtral`: Jiang et al. 2024, "Mixtral of experts", arXiv:2401.04088.
#include "workloads/model/transformer_tensors.hpp"

namespace weft {
namespace {

/// Mistral whose MLPs are mixtures of experts in all blocks; intermediate_size is that of one expert.
class Mixtral : public ModelFamily {
 public:
  ModelConfig read(const JsonConfig& config) const override {
    ModelConfig model = read_llama_frame(config, false);
    BlockShape block;
    block.attention = read_grouped_attention(config, model.hidden);
    block.attention.window = read_window(config, true);
    block.mlp.gated = true;
    read_experts(config, block.mlp, "num_local_experts", "num_experts_per_tok", "intermediate_size");
    add_grouped_attention(block.tensors, model.hidden, block.attention, {});
    add_gated_experts(block.tensors, "block_sparse_moe", model.hidden, block.mlp);
    add_block_norms(block.tensors, model.hidden);
    model.repeat(std::move(block), read_layers(config, "num_hidden_layers"));
    return model;
  }
};

const Registration<ModelFamily, Mixtral> model_mixtral_registration(
    "mixtral", "Mixtral: experts in all blocks, two for each token");

}  // namespace
}  // namespace weft
