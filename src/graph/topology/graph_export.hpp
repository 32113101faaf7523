// SPDX-License-Identifier: GPL-2.0-only
// Writing a machine for other programs.
#pragma once

#include <ostream>

#include "graph/topology/topology_builder.hpp"

namespace weft {

/// GraphML (http://graphml.graphdrawing.org), undirected. Nodes: name ("host3", "switch7"), kind ("host" or "switch"),
/// tier, group (-1: none). Edges: rate_bps, delay_ps, class.
void write_graphml(const Topology& topology, std::ostream& out);
/// Graphviz, with the same data as attributes.
void write_dot(const Topology& topology, std::ostream& out);
/// A `topology:` map of kind graph, which builds the same machine link by link.
void write_yaml(const Topology& topology, std::ostream& out);

}  // namespace weft
