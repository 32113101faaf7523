// SPDX-License-Identifier: GPL-2.0-only
// Where a dragonfly's minimal route goes: local, global, local.
#pragma once

#include <vector>

#include "graph/shapes/dragonfly_shape.hpp"
#include "routing/algorithm/reciprocal.hpp"

namespace weft {

/// Hierarchical minimal routing (J. Kim et al., ISCA 2008, section 4.1): at most one local hop to a router with a link
/// to the destination's group, that global link, at most one local hop. That is not always the path of fewest links:
/// two global links through a third group can be shorter than three hops.
class DragonflyMinimal {
 public:
  DragonflyMinimal() = default;
  explicit DragonflyMinimal(const DragonflyShape& shape)
      : shape_(shape), by_p_(shape.p), by_a_(shape.a), by_h_(shape.h > 0 ? shape.h : 1) {}

  struct Place {
    std::uint32_t group;
    std::uint32_t router;  ///< within the group
  };
  /// Of a router counted from the first.
  Place place(std::uint32_t router) const {
    const std::uint32_t group = by_a_.quotient(router);
    return {group, router - group * shape_.a};
  }
  /// Of the router of a host.
  Place place_of_host(NodeId host) const { return place(by_p_.quotient(host.value())); }

  /// Links to `group` that leave from this router itself.
  std::uint32_t own_links(const Place& at, std::uint32_t group) const {
    std::uint32_t count = 0;
    for_each_link(at.group, group, [&](std::uint32_t port) { count += by_h_.quotient(port) == at.router ? 1 : 0; });
    return count;
  }
  /// Number of choices towards another group, and choice number `which` of them: own links if there are any, else local
  /// ports to the routers that have one, once per link.
  std::uint32_t choices(const Place& at, std::uint32_t group) const {
    const std::uint32_t own = own_links(at, group);
    return own > 0 ? own : shape_.wiring.links_per_pair();
  }
  std::uint16_t choice(const Place& at, std::uint32_t group, std::uint32_t which) const {
    const bool own = own_links(at, group) > 0;
    std::uint32_t result = 0;
    for_each_link(at.group, group, [&](std::uint32_t port) {
      const std::uint32_t router = by_h_.quotient(port);
      if (own && router != at.router) return;
      if (which-- == 0)
        result = own ? shape_.global_port(port - router * shape_.h) : shape_.local_port(at.router, router);
    });
    return static_cast<std::uint16_t>(result);
  }
  /// Of choice number `which` if it leads to another router of the group: which of that router's global ports goes on
  /// to `group`. Without meaning if the link is this router's own.
  std::uint32_t global_at_peer(const Place& at, std::uint32_t group, std::uint32_t which) const {
    const std::uint32_t port = shape_.wiring.first_port(at.group, group) + which * (shape_.g - 1);
    return port - by_h_.quotient(port) * shape_.h;
  }
  /// The port towards a host of this router's group.
  std::uint16_t port_within(const Place& at, NodeId host) const {
    const std::uint32_t router = by_p_.quotient(host.value());
    const std::uint32_t target = router - at.group * shape_.a;
    return static_cast<std::uint16_t>(target == at.router ? host.value() - router * shape_.p
                                                          : shape_.local_port(at.router, target));
  }
  /// All ports from which a minimal path continues to a host.
  std::vector<std::uint16_t> candidates(const Place& at, NodeId host) const {
    const std::uint32_t group = place_of_host(host).group;
    if (group == at.group) return {port_within(at, host)};
    std::vector<std::uint16_t> ports;
    for (std::uint32_t i = 0; i < choices(at, group); ++i) ports.push_back(choice(at, group, i));
    return ports;
  }

  const DragonflyShape& shape() const { return shape_; }

 private:
  template <class Visit>
  void for_each_link(std::uint32_t from, std::uint32_t to, const Visit& visit) const {
    std::uint32_t port = shape_.wiring.first_port(from, to);
    for (std::uint32_t round = 0; round < shape_.wiring.links_per_pair(); ++round) {
      visit(port);
      port += shape_.g - 1;
    }
  }

  DragonflyShape shape_;
  Reciprocal by_p_;
  Reciprocal by_a_;
  Reciprocal by_h_;
};

}  // namespace weft
