// SPDX-License-Identifier: GPL-2.0-only
// The shape of a transformer, from a config.json as published on the Hugging Face hub.
#include "workloads/model/model_config.hpp"

#include <fmt/format.h>

#include "support/documents/spec.hpp"
#include "workloads/reading/reading.hpp"

namespace weft {
void require_plausible(const ModelConfig& model, const SourceLine& where) {
  constexpr std::int64_t max = std::int64_t{1} << 48;
  unsigned __int128 sum = 0;
  for (const std::uint32_t shape : model.blocks)
    sum += static_cast<unsigned __int128>(elements_of(model.shapes[shape].tensors));
  if (sum > static_cast<unsigned __int128>(max))
    throw InputError(where, fmt::format("{} layers have more than {} parameters in all", model.layers(), grouped(max)));
}

std::int64_t elements_of(const std::vector<Tensor>& tensors) {
  std::int64_t elements = 0;
  for (const Tensor& tensor : tensors) elements += tensor.elements;
  return elements;
}

std::int64_t ModelConfig::parameters() const {
  std::int64_t sum = elements_of(embedding) + elements_of(head);
  for (const std::uint32_t shape : blocks) sum += elements_of(shapes[shape].tensors);
  return sum;
}

std::int64_t ModelConfig::active_parameters() const {
  std::int64_t sum = parameters();
  for (const std::uint32_t shape : blocks) {
    const MlpShape& mlp = shapes[shape].mlp;
    for (const Tensor& tensor : shapes[shape].tensors)
      if (tensor.split == Split::expert) sum -= tensor.elements / mlp.experts * (mlp.experts - mlp.experts_per_token);
  }
  return sum;
}

void ModelConfig::repeat(BlockShape shape, std::int64_t layers) {
  blocks.insert(blocks.end(), static_cast<std::size_t>(layers), static_cast<std::uint32_t>(shapes.size()));
  shapes.push_back(std::move(shape));
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
