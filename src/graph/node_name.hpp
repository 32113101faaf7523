// SPDX-License-Identifier: GPL-2.0-only
// Nodes by the names that ClusterGraph::name() gives them.
#pragma once

#include <optional>
#include <string_view>

#include "graph/cluster_graph.hpp"

namespace weft {

/// The node called "host3" or "switch7"; nothing if the machine has none of that name.
std::optional<NodeId> node_named(const ClusterGraph& graph, std::string_view name);

}  // namespace weft
