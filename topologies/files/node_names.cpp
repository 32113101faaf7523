// SPDX-License-Identifier: GPL-2.0-only
// Nodes as users name them: host3, switch7, leaf2.
#include "topologies/files/node_names.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "graph/machine/node_name.hpp"

namespace weft {

NodeId read_node(const Spec& spec, const ClusterGraph& graph) {
  const std::string name = spec.text();
  if (const auto node = node_named(graph, name)) return *node;
  std::vector<std::string> known;
  constexpr std::uint32_t enough = 1000;
  for (std::uint32_t i = 0; i < std::min(graph.node_count(), enough); ++i) known.push_back(graph.name(NodeId(i)));
  throw spec.error(
      fmt::format("unknown node '{}'{}; the nodes are {}", name, did_you_mean(name, known), names_of_nodes(graph)));
}

}  // namespace weft
