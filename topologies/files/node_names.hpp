// SPDX-License-Identifier: GPL-2.0-only
// Nodes as users name them: host3, switch7, leaf2.
#pragma once

#include "graph/machine/cluster_graph.hpp"
#include "support/documents/spec.hpp"

namespace weft {

/// The node with a name. Throws InputError that lists the existing names.
NodeId read_node(const Spec& spec, const ClusterGraph& graph);

}  // namespace weft
