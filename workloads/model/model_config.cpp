// SPDX-License-Identifier: GPL-2.0-only
// The shape of a transformer, from a config.json as published on the Hugging Face hub.
#include "workloads/model/model_config.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "support/documents/spec.hpp"
#include "workloads/model/transformer_tensors.hpp"
#include "workloads/reading/reading.hpp"

namespace weft {
void require_plausible(const ModelConfig& model, const SourceLine& where) {
  constexpr std::int64_t max = std::int64_t{1} << 48;
  unsigned __int128 sum = 0;
  for (std::int64_t layer = 0; layer < model.layers() + model.prediction_blocks; ++layer)
    sum += static_cast<unsigned __int128>(elements_of(model.layer_shape(layer).tensors));
  if (sum > static_cast<unsigned __int128>(max))
    throw InputError(where, fmt::format("{} layers have more than {} parameters in all", model.layers(), grouped(max)));
}

std::int64_t elements_of(const std::vector<Tensor>& tensors) {
  std::int64_t elements = 0;
  for (const Tensor& tensor : tensors) elements += tensor.elements;
  return elements;
}

std::int64_t ModelConfig::parameters() const {
  std::int64_t sum = elements_of(embedding) + elements_of(head) +
                     prediction_blocks * (elements_of(prediction_input) + elements_of(prediction_head));
  for (std::int64_t layer = 0; layer < layers() + prediction_blocks; ++layer)
    sum += elements_of(layer_shape(layer).tensors);
  return sum;
}

std::int64_t ModelConfig::active_parameters() const {
  std::int64_t sum = parameters();
  for (std::int64_t layer = 0; layer < layers() + prediction_blocks; ++layer) {
    const MlpShape& mlp = layer_shape(layer).mlp;
    for (const Tensor& tensor : layer_shape(layer).tensors)
      if (tensor.split == Split::expert) sum -= tensor.elements / mlp.experts * (mlp.experts - mlp.experts_per_token);
  }
  return sum;
}

void ModelConfig::repeat(BlockShape shape, std::int64_t layers) {
  blocks.insert(blocks.end(), static_cast<std::size_t>(layers), static_cast<std::uint32_t>(shapes.size()));
  shapes.push_back(std::move(shape));
}

// Megatron-LM, megatron/core/transformer/multi_token_prediction.py: enorm, hnorm, eh_proj; final_layernorm.
void ModelConfig::predict(std::int64_t layers) {
  prediction_blocks = layers;
  prediction_input.clear();
  prediction_head.clear();
  if (layers == 0) return;
  const bool shift = std::count_if(head.begin(), head.end(), [this](const Tensor& one) {
                       return one.split == Split::none && one.elements == hidden;
                     }) > 1;
  for (const char* norm : {"enorm", "hnorm"}) add_norm(prediction_input, norm, hidden, shift);
  add_columns(prediction_input, "eh_proj", 2 * hidden, hidden, false);
  add_norm(prediction_head, "final_layernorm", hidden, shift);
}

ModelConfig read_model(const JsonConfig& config) {
  const std::string type = config.text("model_type");
  const auto* family = ModelFamilyRegistry::instance().find(type);
  if (family == nullptr) {
    const auto known = ModelFamilyRegistry::instance().names();
    throw config.error("model_type", fmt::format("unknown model type '{}'{}; known here: {}", type,
                                                 did_you_mean(type, known), listed(known)));
  }
  ModelConfig model = family->make()->read(config);
  model.family = type;
  require_plausible(model, {config.file(), 0});
  return model;
}

}  // namespace weft
