// SPDX-License-Identifier: GPL-2.0-only
// The shape of a transformer: dimensions and parameter tensors, from a config.json as published on the Hugging Face
// hub.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "support/registry.hpp"
#include "workloads/json_config.hpp"

namespace weft {

/// One parameter tensor.
struct Tensor {
  std::string name;
  std::int64_t elements = 0;
};

/// A decoder-only transformer: embedding, `layers` equal blocks, head. Symbols of the formulas in brackets.
struct ModelConfig {
  std::string family;
  std::int64_t layers = 0;      ///< [L]
  std::int64_t hidden = 0;      ///< [h]
  std::int64_t heads = 0;       ///< query heads [a]
  std::int64_t kv_heads = 0;    ///< key and value heads [k]
  std::int64_t head_size = 0;   ///< [d], h/a unless the file says otherwise
  std::int64_t ffn = 0;         ///< inner width of the MLP [f]
  std::int64_t vocabulary = 0;  ///< [V]
  std::int64_t positions = 0;   ///< longest sequence
  bool gated = false;           ///< the MLP has a gate matrix beside the up projection (SwiGLU)
  bool tied = false;            ///< the logits use the matrix of the token embedding
  bool learned_positions = false;
  /// Parameters in the order in which the framework registers them, which is the forward order.
  std::vector<Tensor> embedding, block, head;

  std::int64_t parameters() const;
};

/// Parameters of all tensors of a part.
std::int64_t elements_of(const std::vector<Tensor>& tensors);

/// Reads the fields of one `model_type`. Registered under that name: a further family is one new file.
class ModelFamily {
 public:
  virtual ~ModelFamily() = default;
  virtual ModelConfig read(const JsonConfig& config) const = 0;
};
using ModelFamilyRegistry = Registry<ModelFamily>;

/// Reads a config.json by its `model_type`. Throws InputError with file and line; an unknown type is answered with the
/// list of known ones, as is a model whose number of parameters leaves 48 bits.
ModelConfig read_model(const JsonConfig& config);

}  // namespace weft
