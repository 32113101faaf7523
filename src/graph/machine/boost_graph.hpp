// SPDX-License-Identifier: GPL-2.0-only
// A machine as Boost.Graph's algorithms take it. Separate from cluster_graph.hpp, because few files need it and the
// library's headers are long.
#pragma once

#include <boost/graph/adjacency_list.hpp>

#include "graph/machine/cluster_graph.hpp"

namespace weft {

/// Vertices are nodes with their properties, edges carry the LinkId.
using BoostGraph = boost::adjacency_list<boost::vecS, boost::vecS, boost::undirectedS, NodeProperties, LinkId>;

inline BoostGraph boost_graph(const ClusterGraph& graph) {
  BoostGraph result(graph.node_count());
  for (std::uint32_t node = 0; node < graph.node_count(); ++node) result[node] = graph.node(NodeId(node));
  for (std::uint32_t link = 0; link < graph.link_count(); ++link) {
    const LinkProperties& properties = graph.link(LinkId(link));
    boost::add_edge(properties.ends[0].value(), properties.ends[1].value(), LinkId(link), result);
  }
  return result;
}

}  // namespace weft
