// SPDX-License-Identifier: GPL-2.0-only
// Nodes by the names that ClusterGraph gives them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "graph/machine/cluster_graph.hpp"

namespace weft {

/// The node called "host3" or "switch7", or, by its role, "leaf2"; nothing if the machine has none of that name.
std::optional<NodeId> node_named(const ClusterGraph& graph, std::string_view name);

/// For errors: "host0..host7 and switch0..switch5 (leaf0..spine1)".
std::string names_of_nodes(const ClusterGraph& graph);

}  // namespace weft
