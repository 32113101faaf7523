// SPDX-License-Identifier: GPL-2.0-only
// Mixtures of experts as Qwen2 and Qwen3 configure them.
#include "workloads/families/qwen_mixture.hpp"

#include <algorithm>

namespace weft {
namespace {

BlockShape sparse_block(const JsonConfig& config, std::int64_t hidden, const BlockOptions& options, bool shared) {
  BlockShape block;
  block.name = "expert block";
  block.attention = read_grouped_attention(config, hidden);
  block.mlp.gated = true;
  read_experts(config, block.mlp, "num_experts", "num_experts_per_tok", "moe_intermediate_size");
  if (shared) block.mlp.shared_inner = config.count("shared_expert_intermediate_size");
  add_grouped_attention(block.tensors, hidden, block.attention, options);
  add_gated_experts(block.tensors, "mlp", hidden, block.mlp);
  if (shared) {
    add_gated_mlp(block.tensors, "mlp.shared_expert", hidden, block.mlp.shared_inner, false);
    add_whole(block.tensors, "mlp.shared_expert_gate", hidden, 1, false);
  }
  add_block_norms(block.tensors, hidden);
  return block;
}

}  // namespace

ModelConfig read_qwen_mixture(const JsonConfig& config, const BlockOptions& options, bool shared) {
  ModelConfig model = read_llama_frame(config, false);
  const std::int64_t layers = read_layers(config, "num_hidden_layers");
  const std::int64_t step = config.count_or("decoder_sparse_step", 1);
  const std::vector<std::int64_t> dense = config.counts("mlp_only_layers");
  model.shapes = {sparse_block(config, model.hidden, options, shared)};
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const bool sparse = (layer + 1) % step == 0 && std::find(dense.begin(), dense.end(), layer) == dense.end();
    if (!sparse && model.shapes.size() == 1) model.shapes.push_back(read_llama_block(config, model.hidden, options));
    model.blocks.push_back(sparse ? 0 : 1);
  }
  const std::int64_t window = read_window(config, config.boolean_or("use_sliding_window", false));
  for (BlockShape& shape : model.shapes) shape.attention.window = window;
  // Named in every such file; it matters only if there are dense blocks.
  static_cast<void>(config.has("intermediate_size"));
  return model;
}

}  // namespace weft
