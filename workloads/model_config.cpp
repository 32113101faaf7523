// SPDX-License-Identifier: GPL-2.0-only
// The shape of a transformer, from a config.json as published on the Hugging Face hub.
#include "workloads/model_config.hpp"

#include <fmt/format.h>

#include "support/spec.hpp"
#include "workloads/reading.hpp"

namespace weft {
namespace {

/// Keeps all sums over tensors, bytes of gradients and optimizer state within 64 bits.
void require_plausible(const ModelConfig& model, const JsonConfig& config) {
  constexpr std::int64_t most = std::int64_t{1} << 48;
  const auto blocks =
      static_cast<unsigned __int128>(model.layers) * static_cast<unsigned __int128>(elements_of(model.block));
  if (blocks > static_cast<unsigned __int128>(most))
    throw InputError({config.file(), 0}, fmt::format("{} layers of {} parameters are more than {}", model.layers,
                                                     grouped(elements_of(model.block)), grouped(most)));
}

}  // namespace

std::int64_t elements_of(const std::vector<Tensor>& tensors) {
  std::int64_t elements = 0;
  for (const Tensor& tensor : tensors) elements += tensor.elements;
  return elements;
}

std::int64_t ModelConfig::parameters() const {
  return elements_of(embedding) + layers * elements_of(block) + elements_of(head);
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
  require_plausible(model, config);
  return model;
}

}  // namespace weft
