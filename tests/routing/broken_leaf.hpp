// SPDX-License-Identifier: GPL-2.0-only
// A leaf-spine whose first leaf has lost links to spines: two hosts below each of two leaves, four spines.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "routing/algorithm/routing_algorithm.hpp"
#include "tests/topologies/machine.hpp"

namespace weft::test {

constexpr std::uint64_t broken_leaf_seed = 7;
constexpr std::uint32_t broken_leaf_flows = 20'000;

inline std::unique_ptr<RoutingAlgorithm> shortest_paths(const Topology& topology, const std::vector<bool>& dead) {
  auto result = RoutingRegistry::instance().find("shortest_path")->make();
  result->prepare_without(topology, broken_leaf_seed, dead);
  return result;
}

/// The links of the leaf of host 0 to the first `spines` are dead.
struct BrokenLeaf {
  explicit BrokenLeaf(std::size_t spines)
      : topology(machine("{kind: leaf_spine, leaves: 2, hosts_per_leaf: 2, spines: 4, link_rate: 400 Gb/s, "
                         "link_delay: 500 ns}")) {
    const ClusterGraph& graph = topology.graph;
    leaf = graph.ports(NodeId(0)).front().peer;
    other_leaf = graph.ports(NodeId(2)).front().peer;
    dead.assign(graph.link_count(), false);
    const auto ports = graph.ports(leaf);
    for (std::size_t p = 0; p < ports.size() && dead_ports.size() < spines; ++p) {
      if (graph.is_host(ports[p].peer)) continue;
      dead[ports[p].link.value()] = true;
      dead_ports.push_back(static_cast<std::uint16_t>(p));
    }
    usual = shortest_paths(topology, {});
    plain = shortest_paths(topology, dead);
  }

  static std::vector<RouteRequest> requests(std::uint32_t from, std::uint32_t to) {
    std::vector<RouteRequest> result;
    for (std::uint32_t q = 0; q < broken_leaf_flows; ++q) result.push_back({NodeId(from), NodeId(to), q});
    return result;
  }
  static std::vector<std::uint16_t> ports(const RoutingAlgorithm& routing, NodeId at, std::uint32_t from,
                                          std::uint32_t to) {
    std::vector<std::uint16_t> result(broken_leaf_flows);
    routing.route(at, requests(from, to), result.data());
    return result;
  }
  bool is_dead(std::uint16_t port) const {
    return std::find(dead_ports.begin(), dead_ports.end(), port) != dead_ports.end();
  }

  Topology topology;
  NodeId leaf, other_leaf;
  std::vector<std::uint16_t> dead_ports;
  std::vector<bool> dead;                   ///< by link number
  std::unique_ptr<RoutingAlgorithm> usual;  ///< while all links work
  std::unique_ptr<RoutingAlgorithm> plain;  ///< ECMP that knows of the dead links
};

}  // namespace weft::test
