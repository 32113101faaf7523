// SPDX-License-Identifier: GPL-2.0-only
// Common code of the tests of routing by formula: walks along all candidates, and loads of links.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "routing/algorithm/path.hpp"
#include "tests/topologies/machine.hpp"

namespace weft::test {

inline std::unique_ptr<RoutingAlgorithm> prepared_routing(const std::string& name, const Topology& topology,
                                                          std::uint64_t seed = 42) {
  const auto* entry = RoutingRegistry::instance().find(name);
  if (entry == nullptr) throw std::runtime_error("routing " + name + " is not registered");
  auto algorithm = entry->make();
  algorithm->prepare(topology, seed);
  return algorithm;
}

/// Adds `amount` of traffic from a host to another to the loads of directed links, divided equally among the candidates
/// of each node. Returns the longest path. A walk that does not end is a failure.
inline std::uint32_t add_load(const Topology& topology, const RoutingAlgorithm& routing, std::uint32_t source,
                              std::uint32_t destination, double amount, std::vector<double>& loads) {
  std::map<std::uint32_t, double> here = {{source, amount}};
  std::uint32_t hops = 0;
  while (!here.empty()) {
    std::map<std::uint32_t, double> next;
    for (const auto& [node, load] : here) {
      const auto ports = routing.candidates(NodeId(node), NodeId(destination));
      for (const std::uint16_t port : ports) {
        const PortEnd& end = topology.graph.ports(NodeId(node))[port];
        const double share = load / static_cast<double>(ports.size());
        loads[directed(end.link, end.direction)] += share;
        if (end.peer.value() != destination) next[end.peer.value()] += share;
      }
    }
    here = std::move(next);
    if (++hops > topology.graph.node_count()) {
      ADD_FAILURE() << "no end of the way " << source << " -> " << destination;
      return hops;
    }
  }
  return hops;
}

/// Highest load among links of a class.
inline double most_loaded(const Topology& topology, const std::vector<double>& loads, const std::string& link_class) {
  double max = 0;
  for (std::size_t i = 0; i < loads.size(); ++i)
    if (topology.link_classes[topology.link_class[i / 2]] == link_class) max = std::max(max, loads[i]);
  return max;
}

/// Loads of all directed links if every host sends one unit, equally to all others.
inline std::vector<double> uniform_loads(const Topology& topology, const RoutingAlgorithm& routing) {
  const std::uint32_t hosts = topology.graph.host_count();
  std::vector<double> loads(2 * topology.graph.link_count(), 0);
  for (std::uint32_t source = 0; source < hosts; ++source)
    for (std::uint32_t destination = 0; destination < hosts; ++destination)
      if (source != destination) add_load(topology, routing, source, destination, 1.0 / (hosts - 1), loads);
  return loads;
}

/// Loads if every host sends one unit to one other.
inline std::vector<double> permutation_loads(const Topology& topology, const RoutingAlgorithm& routing,
                                             const std::function<std::uint32_t(std::uint32_t)>& to) {
  std::vector<double> loads(2 * topology.graph.link_count(), 0);
  for (std::uint32_t source = 0; source < topology.graph.host_count(); ++source)
    if (to(source) != source) add_load(topology, routing, source, to(source), 1, loads);
  return loads;
}

/// Every candidate at every node is a port that leads one link closer, and route() takes one of them by the flow's
/// hash.
inline void expect_minimal(const Topology& topology, const RoutingAlgorithm& routing, std::uint32_t every = 1,
                           std::uint64_t seed = 42) {
  const ClusterGraph& graph = topology.graph;
  for (std::uint32_t destination = 0; destination < graph.host_count(); destination += every) {
    const auto distances = distances_from(graph, NodeId(destination));
    for (std::uint32_t at = 0; at < graph.node_count(); ++at) {
      if (at == destination) continue;
      const auto ports = routing.candidates(NodeId(at), NodeId(destination));
      ASSERT_FALSE(ports.empty());
      for (const std::uint16_t port : ports) {
        ASSERT_LT(port, graph.ports(NodeId(at)).size()) << graph.name(NodeId(at)) << " -> " << destination;
        ASSERT_EQ(distances.hops[graph.ports(NodeId(at))[port].peer.value()] + 1, distances.hops[at])
            << graph.name(NodeId(at)) << " -> " << destination << " by port " << port;
      }
      const RouteRequest request{NodeId(at % graph.host_count()), NodeId(destination), at};
      std::uint16_t taken = 0;
      routing.route(NodeId(at), {&request, 1}, &taken);
      ASSERT_EQ(taken,
                ports[ecmp_choice(ecmp_hash(request, NodeId(at), seed), static_cast<std::uint32_t>(ports.size()))]);
    }
  }
}

}  // namespace weft::test
