// SPDX-License-Identifier: GPL-2.0-only
// Encoders with decoders as T5 has them, dense or with experts.
#include "workloads/families/encoder_decoder.hpp"

#include <map>
#include <tuple>

#include <fmt/format.h>

namespace weft {
namespace {

class Builder {
 public:
  Builder(const JsonConfig& config, const EncoderDecoderMlp& mlp) : config_(config), mlp_(mlp) {
    model_.hidden = config.count("d_model");
    model_.vocabulary = config.count("vocab_size");
    model_.tied = config.boolean_or("tie_word_embeddings", true);
    attention_.heads = attention_.kv_heads = config.count("num_heads");
    attention_.head_size = attention_.value_size = config.count("d_kv");
    require_width(config, "d_kv", attention_.heads, attention_.head_size);
    buckets_ = config.count_or("relative_attention_num_buckets", 32);
  }

  ModelConfig build() {
    model_.encoder_blocks = read_layers(config_, "num_layers");
    const std::int64_t decoders =
        config_.has("num_decoder_layers") ? read_layers(config_, "num_decoder_layers") : model_.encoder_blocks;
    add_columns(model_.embedding, "shared", model_.vocabulary, model_.hidden, false);
    for (std::int64_t layer = 0; layer < model_.encoder_blocks; ++layer)
      add_block(false, layer == 0, sparse(mlp_.encoder_step, layer));
    for (std::int64_t layer = 0; layer < decoders; ++layer)
      add_block(true, layer == 0, sparse(mlp_.decoder_step, layer));
    add_norm(model_.head, "decoder.final_layer_norm", model_.hidden, false);
    if (!model_.tied) add_columns(model_.head, "lm_head", model_.hidden, model_.vocabulary, false);
    return std::move(model_);
  }

 private:
  /// SwitchTransformersStack of transformers, modeling_switch_transformers.py.
  static bool sparse(std::int64_t step, std::int64_t layer) { return step == 1 || (step > 0 && layer % step == 1); }

  void add_block(bool decoder, bool first, bool sparse) {
    const auto [at, is_new] =
        kinds_.emplace(std::tuple(decoder, first, sparse), static_cast<std::uint32_t>(model_.shapes.size()));
    if (is_new) model_.shapes.push_back(block(decoder, first, sparse));
    model_.blocks.push_back(at->second);
  }

  BlockShape block(bool decoder, bool first, bool sparse) const {
    BlockShape block;
    block.name = fmt::format("{}{}", sparse ? "expert " : "", decoder ? "decoder block" : "encoder block");
    block.attention = attention_;
    block.attention.causal = decoder;
    block.cross_attention = decoder;
    block.mlp = sparse ? mlp_.sparse : mlp_.dense;
    // The encoder's last norm is registered after its blocks, and works on the input of all decoder blocks.
    if (decoder && first) add_norm(block.tensors, "encoder.final_layer_norm", model_.hidden, false);
    add_attention(block.tensors, "SelfAttention", first);
    if (decoder) add_attention(block.tensors, "EncDecAttention", false);
    sparse ? add_mixture(block.tensors) : add_dense(block.tensors);
    return block;
  }

  void add_attention(std::vector<Tensor>& tensors, const std::string& name, bool with_positions) const {
    const std::int64_t width = attention_.heads * attention_.head_size;
    for (const char* matrix : {".q", ".k", ".v"}) add_columns(tensors, name + matrix, model_.hidden, width, false);
    add_rows(tensors, name + ".o", width, model_.hidden, false);
    if (with_positions) add_whole(tensors, name + ".relative_attention_bias", buckets_, attention_.heads, false);
    add_norm(tensors, name + ".layer_norm", model_.hidden, false);
  }

  void add_dense(std::vector<Tensor>& tensors) const {
    add_columns(tensors, "mlp.wi", model_.hidden, mlp_.dense.inner, false);
    if (mlp_.dense.gated) add_columns(tensors, "mlp.wi_1", model_.hidden, mlp_.dense.inner, false);
    add_rows(tensors, "mlp.wo", mlp_.dense.inner, model_.hidden, false);
    add_norm(tensors, "mlp.layer_norm", model_.hidden, false);
  }

  void add_mixture(std::vector<Tensor>& tensors) const {
    const MlpShape& mlp = mlp_.sparse;
    add_whole(tensors, "mlp.router.classifier", model_.hidden, mlp.experts, mlp_.router_bias);
    add_experts(tensors, "mlp.experts.wi", mlp.experts, model_.hidden, mlp.expert_inner);
    add_experts(tensors, "mlp.experts.wo", mlp.experts, mlp.expert_inner, model_.hidden);
    add_norm(tensors, "mlp.layer_norm", model_.hidden, false);
  }

  const JsonConfig& config_;
  const EncoderDecoderMlp& mlp_;
  ModelConfig model_;
  AttentionShape attention_;
  std::int64_t buckets_ = 0;
  std::map<std::tuple<bool, bool, bool>, std::uint32_t> kinds_;
};

}  // namespace

ModelConfig read_encoder_decoder(const JsonConfig& config, const EncoderDecoderMlp& mlp) {
  return Builder(config, mlp).build();
}

}  // namespace weft
