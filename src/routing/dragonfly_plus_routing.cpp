// SPDX-License-Identifier: GPL-2.0-only
// Minimal routing of a dragonfly+ by formula: up to a spine with a link to the destination's group, over, down (A.
// Shpiner et al., HiPINEB 2017, section III).
#include "graph/dragonfly_shape.hpp"
#include "routing/range_routing.hpp"
#include "routing/reciprocal.hpp"

namespace weft {
namespace {

class DragonflyPlusMinimalRouting final : public RoutingAlgorithm {
 public:
  void prepare(const Topology& topology, std::uint64_t seed) override {
    shape_ = *require_shape<DragonflyPlusShape>(topology, "dragonfly_plus_minimal", "dragonfly_plus");
    hosts_ = topology.graph.host_count();
    seed_ = seed;
    by_p_ = Reciprocal(shape_.p);
    by_leaves_ = Reciprocal(shape_.leaves);
    by_group_ = Reciprocal(shape_.leaves + shape_.spines);
    by_h_ = Reciprocal(shape_.h > 0 ? shape_.h : 1);
  }

  void route(NodeId at, std::span<const RouteRequest> requests, std::uint16_t* ports) const override {
    if (at.value() < hosts_) {
      std::fill_n(ports, requests.size(), std::uint16_t{0});
      return;
    }
    const Place here = place(at.value() - hosts_);
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const Choices next = choices(here, requests[i].destination);
      ports[i] =
          port(here, next, next.count == 1 ? 0 : ecmp_choice(ecmp_hash(requests[i], at.value(), seed_), next.count));
    }
  }

  std::vector<std::uint16_t> candidates(NodeId at, NodeId destination) const override {
    if (at.value() < hosts_) return {0};
    const Place here = place(at.value() - hosts_);
    const Choices next = choices(here, destination.value());
    std::vector<std::uint16_t> ports;
    for (std::uint32_t i = 0; i < next.count; ++i) ports.push_back(port(here, next, i));
    return ports;
  }

 private:
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

  Place place(std::uint32_t node) const {
    const std::uint32_t group = by_group_.quotient(node);
    return {group, node - group * (shape_.leaves + shape_.spines)};
  }

  Choices choices(const Place& here, std::uint32_t destination) const {
    const std::uint32_t leaf = by_p_.quotient(destination);
    const std::uint32_t group = by_leaves_.quotient(leaf);
    const std::uint32_t target = leaf - group * shape_.leaves;
    if (here.within < shape_.leaves) {
      if (group != here.group) return {group, shape_.wiring.links_per_pair(), true};
      if (target == here.within) return {destination - leaf * shape_.p, 1};
      return {shape_.p, shape_.spines};
    }
    if (group == here.group) return {target, 1};
    const std::uint32_t own = own_links(here, group);
    if (own > 0) return {group, own, true};
    return {0, shape_.leaves};  // a spine without a link to that group, where a minimal route never comes
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
  std::uint32_t hosts_ = 0;
  std::uint64_t seed_ = 0;
};

const Registration<RoutingAlgorithm, DragonflyPlusMinimalRouting> registration(
    "dragonfly_plus_minimal", "dragonfly+ by formula: up to a spine with a link to the group, over, down");

}  // namespace
}  // namespace weft
