// SPDX-License-Identifier: GPL-2.0-only
// Names of nodes by their role: leaf2, group4/router2, server3/gpu1.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "units/id.hpp"

namespace weft {

/// The names that a family of machines gives its nodes. Every node also has a plain name, host3 or switch7.
class NodeRoles {
 public:
  virtual ~NodeRoles() = default;
  /// Empty if the node has only its plain name. Names are unique.
  virtual std::string name(NodeId node) const = 0;
};

/// Of machines whose nodes follow each other tier by tier, and within a tier group by group.
class TierRoles final : public NodeRoles {
 public:
  struct Part {
    std::string word;         ///< "leaf"
    std::uint32_t count = 0;  ///< in each group
  };
  /// Nodes from `first` on, up to the next tier: in each group the parts one after the other, numbered from 0. `group`:
  /// what a group is called, such as "pod"; empty: there is one.
  struct Tier {
    std::uint32_t first = 0;
    std::string group;
    std::vector<Part> parts;
  };
  /// Tiers in ascending order. Nodes before the first have no role.
  explicit TierRoles(std::vector<Tier> tiers) : tiers_(std::move(tiers)) {}
  std::string name(NodeId node) const override;

 private:
  std::vector<Tier> tiers_;
};

/// Of switches on a grid: router1.0.2 has the coordinates 1, 0, 2, and is node first + 1 + k_0 (0 + k_1 2).
class GridRoles final : public NodeRoles {
 public:
  GridRoles(std::uint32_t first, std::vector<std::uint32_t> dims) : first_(first), dims_(std::move(dims)) {}
  std::string name(NodeId node) const override;

 private:
  std::uint32_t first_;
  std::vector<std::uint32_t> dims_;
};

}  // namespace weft
