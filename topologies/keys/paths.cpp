// SPDX-License-Identifier: GPL-2.0-only
// Paths written down for pairs of hosts: `paths:` beside the parameters of a family.
#include <algorithm>

#include <fmt/format.h>

#include "graph/topology/topology_builder.hpp"
#include "topologies/files/node_names.hpp"

namespace weft {
namespace {

/// The first port of a node that leads to another; of parallel links the first.
std::uint16_t port_towards(const ClusterGraph& graph, NodeId from, NodeId to, const Spec& place) {
  const auto ports = graph.ports(from);
  for (std::size_t port = 0; port < ports.size(); ++port)
    if (ports[port].peer == to) return static_cast<std::uint16_t>(port);
  throw place.error(fmt::format("{} has no link to {}", graph.name(from), graph.name(to)));
}

StaticPath read_path(const Spec& spec, const ClusterGraph& graph) {
  std::vector<NodeId> nodes;
  const auto items = spec.items();
  for (const Spec& item : items) nodes.push_back(read_node(item, graph));
  if (nodes.size() < 2 || !graph.is_host(nodes.front()) || !graph.is_host(nodes.back()) ||
      nodes.front() == nodes.back())
    throw spec.error("a path leads from a host to another: [host0, switch0, ..., host1]");
  StaticPath path;
  path.source = nodes.front();
  path.destination = nodes.back();
  for (std::size_t i = 0; i + 1 < nodes.size(); ++i) {
    if (i > 0 && graph.is_host(nodes[i]))
      throw items[i].error(fmt::format("{} in the middle of a path; hosts do not forward", graph.name(nodes[i])));
    for (const StaticPath::Hop& hop : path.hops)
      if (hop.node == nodes[i])
        throw items[i].error(fmt::format("{} appears twice in this path", graph.name(nodes[i])));
    path.hops.push_back({nodes[i], port_towards(graph, nodes[i], nodes[i + 1], items[i + 1])});
  }
  return path;
}

class Paths final : public TopologyExtension {
 public:
  Topology extend(const Spec& value, Topology machine) const override {
    auto paths = std::make_shared<StaticPaths>();
    for (const Spec& item : value.items()) paths->push_back(read_path(item, machine.graph));
    std::stable_sort(paths->begin(), paths->end(), [](const StaticPath& a, const StaticPath& b) {
      return std::pair(a.source, a.destination) < std::pair(b.source, b.destination);
    });
    machine.paths = std::move(paths);
    machine.routing = "static";
    return machine;
  }
};

const Registration<TopologyExtension, Paths> paths_registration("paths", "paths written down for pairs of hosts");

}  // namespace
}  // namespace weft
