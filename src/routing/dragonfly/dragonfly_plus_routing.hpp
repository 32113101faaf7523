// SPDX-License-Identifier: GPL-2.0-only
// Where a dragonfly+'s minimal route goes: up, over, down.
#pragma once

#include "graph/shapes/dragonfly_shape.hpp"
#include "routing/algorithm/reciprocal.hpp"

namespace weft {

/// Minimal routing (A. Shpiner et al., "Dragonfly+: low cost topology for scaling datacenters", HiPINEB 2017, section
/// III, doi:10.1109/HiPINEB.2017.11): up to a spine with a link to the destination's group, over it, down.
class DragonflyPlusMinimal {
 public:
  DragonflyPlusMinimal() = default;
  explicit DragonflyPlusMinimal(const DragonflyPlusShape& shape)
      : shape_(shape),
        by_p_(shape.p),
        by_leaves_(shape.leaves),
        by_group_(shape.leaves + shape.spines),
        by_h_(shape.h > 0 ? shape.h : 1) {}

  struct Place {
    std::uint32_t group;
    std::uint32_t within;  ///< leaves, then spines
  };
  /// `count` ports from `first` on, or, if `links`, the links to group `first`.
  struct Choices {
    std::uint32_t first;
    std::uint32_t count;
    bool links = false;
  };

  /// Of a leaf or spine counted from the first.
  Place place(std::uint32_t node) const {
    const std::uint32_t group = by_group_.quotient(node);
    return {group, node - group * (shape_.leaves + shape_.spines)};
  }
  bool is_leaf(const Place& at) const { return at.within < shape_.leaves; }
  std::uint32_t group_of_host(NodeId host) const { return by_leaves_.quotient(by_p_.quotient(host.value())); }

  Choices choices(const Place& here, NodeId destination) const {
    const std::uint32_t leaf = by_p_.quotient(destination.value());
    const std::uint32_t group = by_leaves_.quotient(leaf);
    const std::uint32_t target = leaf - group * shape_.leaves;
    if (here.within < shape_.leaves) {
      if (group != here.group) return towards_group(here, group);
      if (target == here.within) return {destination.value() - leaf * shape_.p, 1};
      return {shape_.p, shape_.spines};
    }
    if (group == here.group) return {target, 1};
    return towards_group(here, group);
  }
  /// Towards another group. A spine without a link to it, where a minimal route never comes, goes down to any leaf.
  Choices towards_group(const Place& here, std::uint32_t group) const {
    if (is_leaf(here)) return {group, shape_.wiring.links_per_pair(), true};
    const std::uint32_t own = own_links(here, group);
    return own > 0 ? Choices{group, own, true} : Choices{0, shape_.leaves};
  }
  /// Of choice number `which` of a leaf: which of the spine's global ports goes on to `group`.
  std::uint32_t global_at_spine(const Place& leaf, std::uint32_t group, std::uint32_t which) const {
    const std::uint32_t port = shape_.wiring.first_port(leaf.group, group) + which * (shape_.g - 1);
    return port - by_h_.quotient(port) * shape_.h;
  }

  std::uint16_t port(const Place& here, const Choices& choices, std::uint32_t which) const {
    if (!choices.links) return static_cast<std::uint16_t>(choices.first + which);
    const bool at_spine = here.within >= shape_.leaves;
    std::uint32_t global = shape_.wiring.first_port(here.group, choices.first);
    for (std::uint32_t round = 0; round < shape_.wiring.links_per_pair(); ++round, global += shape_.g - 1) {
      const std::uint32_t spine = by_h_.quotient(global);
      if (at_spine && spine != here.within - shape_.leaves) continue;
      if (which-- == 0)
        return static_cast<std::uint16_t>(at_spine ? shape_.leaves + global - spine * shape_.h : shape_.p + spine);
    }
    return 0;
  }
  /// All ports from which a minimal path continues to a host.
  std::vector<std::uint16_t> candidates(const Place& here, NodeId host) const {
    const Choices next = choices(here, host);
    std::vector<std::uint16_t> ports;
    for (std::uint32_t i = 0; i < next.count; ++i) ports.push_back(port(here, next, i));
    return ports;
  }

  const DragonflyPlusShape& shape() const { return shape_; }

 private:
  std::uint32_t own_links(const Place& here, std::uint32_t group) const {
    std::uint32_t count = 0;
    std::uint32_t global = shape_.wiring.first_port(here.group, group);
    for (std::uint32_t round = 0; round < shape_.wiring.links_per_pair(); ++round, global += shape_.g - 1)
      if (by_h_.quotient(global) == here.within - shape_.leaves) ++count;
    return count;
  }

  DragonflyPlusShape shape_;
  Reciprocal by_p_;
  Reciprocal by_leaves_;
  Reciprocal by_group_;
  Reciprocal by_h_;
};

}  // namespace weft
