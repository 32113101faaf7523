// SPDX-License-Identifier: GPL-2.0-only
// Code shared by routings by formula whose choices at a node are consecutive ports.
#pragma once

#include <algorithm>
#include <typeinfo>

#include <fmt/format.h>

#include "routing/algorithm/routing_algorithm.hpp"
#include "support/basics/error.hpp"

namespace weft {

/// Ports first .. first + count - 1 of a node.
struct PortRange {
  std::uint32_t first = 0;
  std::uint32_t count = 1;
};

/// The shape that a routing by formula needs, or an InputError that says what was expected.
template <class Family>
std::shared_ptr<const Family> require_shape(const Topology& topology, const std::string& routing,
                                            const std::string& kinds) {
  auto shape = std::dynamic_pointer_cast<const Family>(topology.shape);
  if (!shape)
    throw InputError(SourceLine{}, fmt::format("routing '{}' is for topologies of kind {}, found '{}'; 'shortest_path' "
                                               "routes any topology",
                                               routing, kinds, topology.kind));
  return shape;
}

/// `Formula` gives `Node place(node)`, computed once per batch, and `PortRange ports(place, destination)` for switches;
/// a flow takes one of them by its hash. Hosts have one port.
template <class Formula>
class RangeRouting : public RoutingAlgorithm {
 public:
  void route(NodeId at, std::span<const RouteRequest> requests, std::uint16_t* ports) const final {
    if (at.value() < hosts_) {
      std::fill_n(ports, requests.size(), std::uint16_t{0});
      return;
    }
    const auto place = formula().place(at.value() - hosts_);
    const std::uint64_t salt = ecmp_salt(at, seed_);
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const PortRange range = formula().ports(place, requests[i].destination);
      const std::uint32_t choice = range.count == 1 ? 0 : ecmp_choice(ecmp_hash(requests[i], salt), range.count);
      ports[i] = static_cast<std::uint16_t>(range.first + choice);
    }
  }

  std::vector<std::uint16_t> candidates(NodeId at, NodeId destination) const final {
    if (at.value() < hosts_) return {0};
    const PortRange range = formula().ports(formula().place(at.value() - hosts_), destination);
    std::vector<std::uint16_t> ports;
    for (std::uint32_t i = 0; i < range.count; ++i) ports.push_back(static_cast<std::uint16_t>(range.first + i));
    return ports;
  }

 protected:
  std::uint32_t hosts_ = 0;
  std::uint64_t seed_ = 0;

 private:
  const Formula& formula() const { return static_cast<const Formula&>(*this); }
};

}  // namespace weft
