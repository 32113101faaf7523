// SPDX-License-Identifier: GPL-2.0-only
// Partitioning any machine by METIS.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/machine/cluster_graph.hpp"

namespace weft {

/// Owner of each node, few cut links, parts of about equal weight (ports). With at least as many switches as parts, a
/// host is always with its switch. Some parts may stay empty. The same answer always (fixed seed). Method: Karypis and
/// Kumar, SIAM J. Sci. Comput. 20(1), 1998, doi:10.1137/S1064827595287997.
std::vector<std::uint16_t> metis_partition(const ClusterGraph& graph, std::uint32_t parts);

/// Halves [nodes] with as many hosts each (differing by 1 if their number is odd) and little bandwidth between them,
/// for estimating the bisection. The hosts decide the balance, switches weigh nothing.
std::vector<std::uint16_t> metis_halves_of_hosts(const ClusterGraph& graph);

}  // namespace weft
