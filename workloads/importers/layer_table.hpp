// SPDX-License-Identifier: GPL-2.0-only
// ASTRA-sim 1.0's text workloads and those of SimAI and AICB: a line for each layer (docs/reference/traces.md).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "schedule/collective/collective.hpp"
#include "workloads/reading/byte_source.hpp"

namespace weft {

/// The group that communicates in a column. Layers with policies of their own may have all ranks, or neighbours among
/// the data's ranks where others have them among the model's.
enum class LayerGroup : std::uint8_t { model, data, expert, expert_data, everyone, model_apart, neighbouring_data };
constexpr std::size_t layer_groups = 7;

struct LayerCollective {
  CollectiveKind kind = CollectiveKind::all_reduce;
  LayerGroup group = LayerGroup::data;
  Bytes bytes;
};

/// Forward, input gradient, weight gradient: what is computed, and then communicated.
struct LayerPass {
  double compute = 0;  ///< in units of the file
  std::optional<LayerCollective> collective;
};

struct Layer {
  std::string name;
  int line = 0;
  LayerPass forward, input_gradient, weight_gradient;
  double update = 0;
  std::string policy;       ///< of this layer, if the file's is HYBRID_CUSTOMIZED
  bool checkpoint = false;  ///< its input is kept
  bool recomputes = false;  ///< its backward pass begins with the forward pass from the last checkpoint on
};

/// The content of a file.
struct LayerTable {
  std::string policy;
  bool simai = false;  ///< the header or the policy is one that only SimAI's files have
  std::uint32_t model_ranks = 0, expert_ranks = 1, all_ranks = 0;  ///< 0: not said
  std::size_t last_bottom_layer = 0;                               ///< of HYBRID_DLRM
  std::vector<Layer> layers;
};

/// Throws InputError with file and line.
LayerTable read_layer_table(ByteSource source);

}  // namespace weft
