// SPDX-License-Identifier: GPL-2.0-only
// Bandwidth between the halves of a machine, and ways between two switches that share no link.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/machine/cluster_graph.hpp"

namespace weft {

/// Two halves of the hosts and what can pass between them.
struct Bisection {
  std::int64_t cut_bps = 0;   ///< rates of the links between the halves as METIS cut the machine, one direction
  std::int64_t flow_bps = 0;  ///< largest flow from the hosts of one half to those of the other; <= cut_bps. -1: not
                              ///< computed, the machine is too large
};

/// An estimate from above of the bisection bandwidth: METIS looks for halves with as many hosts each (one more in one
/// of them if their number is odd) and little bandwidth between them, and the largest flow between these (Boykov and
/// Kolmogorov) is what they can really exchange. Deterministic. At least 2 hosts.
Bisection estimate_bisection(const ClusterGraph& graph);

/// Most paths between two nodes of which no two share a link (the largest flow with a capacity of 1 for each link:
/// Menger's theorem). Host links do not limit it if the nodes are switches.
std::uint32_t edge_disjoint_paths(const ClusterGraph& graph, NodeId from, NodeId to);

}  // namespace weft
