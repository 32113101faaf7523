// SPDX-License-Identifier: GPL-2.0-only
// Model families `deepseek_v2` and `deepseek_v3`: DeepSeek-AI, arXiv:2405.04434 and arXiv:2412.19437.
#include <algorithm>

#include "workloads/model/latent_attention.hpp"

namespace weft {
namespace {

/// Latent attention; the first blocks are dense, the others have many small experts beside shared ones.
class DeepSeek : public ModelFamily {
 public:
  /// `corrected`: a correction of each expert's score, learned by rule (V3, 2.1.2, and the published files have it).
  explicit DeepSeek(bool corrected) : corrected_(corrected) {}

  ModelConfig read(const JsonConfig& config) const override {
    ModelConfig model = read_llama_frame(config, false);
    const std::int64_t layers = read_layers(config, "num_hidden_layers");
    const std::int64_t dense =
        config.has("first_k_dense_replace") ? config.whole("first_k_dense_replace", 0, 65536) : 0;
    const std::int64_t step = config.count_or("moe_layer_freq", 1);
    const auto sparse = [&](std::int64_t layer) { return layer >= dense && layer % step == 0; };
    for (std::int64_t layer = 0; layer < layers; ++layer) model.blocks.push_back(sparse(layer) ? 1 : 0);
    model.shapes = {block(config, model.hidden, false), block(config, model.hidden, true)};
    model.published_prediction_blocks =
        config.has("num_nextn_predict_layers") ? config.whole("num_nextn_predict_layers", 0, 65536) : 0;
    return model;
  }

 private:
  static AttentionShape attention(const JsonConfig& config) {
    AttentionShape shape;
    shape.heads = shape.kv_heads = config.count("num_attention_heads");
    shape.query_rank = config.count_or("q_lora_rank", 0);
    shape.kv_rank = config.count("kv_lora_rank");
    shape.rope_size = config.count("qk_rope_head_dim");
    shape.head_size = config.count("qk_nope_head_dim") + shape.rope_size;
    shape.value_size = config.count("v_head_dim");
    require_width(config, "num_attention_heads", shape.heads, shape.head_size);
    require_width(config, "v_head_dim", shape.heads, shape.value_size);
    // Latent attention shares one key over all heads; files mark this with as many key-value heads as heads.
    static_cast<void>(config.has("num_key_value_heads"));
    return shape;
  }

  BlockShape block(const JsonConfig& config, std::int64_t hidden, bool sparse) const {
    BlockShape block;
    block.name = sparse ? "expert block" : "dense block";
    block.attention = attention(config);
    block.mlp.gated = true;
    add_latent_attention(block.tensors, hidden, block.attention, config.boolean_or("attention_bias", false));
    if (sparse) {
      add_mixture(config, hidden, block);
    } else {
      block.mlp.inner = config.count("intermediate_size");
      add_gated_mlp(block.tensors, "mlp", hidden, block.mlp.inner, false);
    }
    add_block_norms(block.tensors, hidden);
    return block;
  }

  void add_mixture(const JsonConfig& config, std::int64_t hidden, BlockShape& block) const {
    const std::string experts = config.has("num_routed_experts") ? "num_routed_experts" : "n_routed_experts";
    read_experts(config, block.mlp, experts, "num_experts_per_tok", "moe_intermediate_size");
    const std::int64_t shared = config.has("n_shared_experts") ? config.whole("n_shared_experts", 0, 65536) : 0;
    require_width(config, "n_shared_experts", shared, block.mlp.expert_inner);
    block.mlp.shared_inner = shared * block.mlp.expert_inner;
    add_gated_experts(block.tensors, "mlp", hidden, block.mlp);
    if (corrected_) block.tensors.push_back({"mlp.gate.e_score_correction_bias", block.mlp.experts});
    if (shared > 0) add_gated_mlp(block.tensors, "mlp.shared_experts", hidden, block.mlp.shared_inner, false);
  }

  bool corrected_;
};

class DeepSeekV2 : public DeepSeek {
 public:
  DeepSeekV2() : DeepSeek(false) {}
};
class DeepSeekV3 : public DeepSeek {
 public:
  DeepSeekV3() : DeepSeek(true) {}
};

const Registration<ModelFamily, DeepSeekV2> v2("deepseek_v2",
                                               "DeepSeek-V2: latent attention, shared and routed experts");
const Registration<ModelFamily, DeepSeekV3> v3("deepseek_v3", "DeepSeek-V3 and R1: as V2, with corrected routing");

}  // namespace
}  // namespace weft
