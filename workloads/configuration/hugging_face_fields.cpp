// SPDX-License-Identifier: GPL-2.0-only
// Fields of a config.json that do not affect shapes.
#include "workloads/configuration/hugging_face_fields.hpp"

#include <algorithm>
#include <set>

namespace weft {
namespace {

/// From the configuration classes of huggingface/transformers (src/transformers/models/*/configuration_*.py and
/// configuration_utils.py).
const std::set<std::string>& silent_fields() {
  static const std::set<std::string> fields = {
      // all models
      "_name_or_path", "architectures", "auto_map", "bos_token_id", "decoder_start_token_id", "dtype", "eos_token_id",
      "finetuning_task", "gradient_checkpointing", "id2label", "is_decoder", "is_encoder_decoder", "label2id",
      "language", "name", "num_labels", "output_past", "pad_token_id", "prefix", "problem_type", "quantization_config",
      "sep_token_id", "task_specific_params", "tokenizer_class", "torch_dtype", "transformers_version", "unk_token_id",
      "use_cache", "vocab_type",
      // initial values, dropout, activations, norms
      "activation_dropout", "activation_function", "attention_dropout", "attention_probs_dropout_prob", "attn_pdrop",
      "classifier_dropout", "dense_act_fn", "dropout", "dropout_rate", "embd_pdrop", "hidden_act", "hidden_activation",
      "hidden_dropout_prob", "init_std", "initializer_factor", "initializer_range", "is_gated_act",
      "layer_norm_epsilon", "layer_norm_eps", "layerdrop", "norm_eps", "pretraining_tp", "resid_pdrop", "rms_norm_eps",
      "scale_attn_by_inverse_layer_idx", "scale_attn_weights", "reorder_and_upcast_attn", "word_embed_dropout",
      // positions
      "n_ctx", "partial_rotary_factor", "position_embedding_type", "relative_attention_max_distance", "rope_interleave",
      "rope_parameters", "rope_scaling", "rope_theta",
      // windows and layer kinds that other fields give as well
      "layer_types", "max_window_layers", "sliding_window", "use_sliding_window",
      // routing
      "add_router_probs", "aux_loss_alpha", "ep_size", "expert_capacity", "n_group", "norm_topk_prob",
      "output_router_logits", "routed_scaling_factor", "router_aux_loss_coef", "router_dtype",
      "router_ignore_padding_tokens", "router_jitter_noise", "router_type", "router_z_loss_coef", "scoring_func",
      "seq_aux", "topk_group", "topk_method", "num_sparse_decoder_layers", "num_sparse_encoder_layers",
      "encoder_sparse_step", "decoder_sparse_step", "batch_prioritized_routing",
      // summaries of GPT-2
      "summary_activation", "summary_first_dropout", "summary_proj_to_labels", "summary_type", "summary_use_proj",
      // fields that follow from others, or are for inference
      "feed_forward_proj", "head_dim", "intermediate_size", "n_positions", "num_key_value_heads", "qk_head_dim",
      "out_features", "out_indices", "stage_names"};
  return fields;
}

}  // namespace

std::vector<std::string> unknown_fields(const JsonConfig& config) {
  std::vector<std::string> unknown = config.unasked();
  std::erase_if(unknown, [](const std::string& field) { return silent_fields().contains(field); });
  return unknown;
}

void read_hugging_face_model(const std::string& path, TrainingDescription& description) {
  const JsonConfig config = JsonConfig::load(path);
  description.model = read_model(config);
  description.where["model"] = {path, 0};
  for (const std::string& field : unknown_fields(config))
    if (std::find(description.ignored.begin(), description.ignored.end(), field) == description.ignored.end())
      description.ignored.push_back(field);
}

}  // namespace weft
