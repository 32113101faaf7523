// SPDX-License-Identifier: GPL-2.0-only
// How far the hosts of a machine are from each other.
#pragma once

#include <cstdint>
#include <map>

#include "graph/machine/cluster_graph.hpp"

namespace weft {

/// Facts about ordered pairs of different hosts. Distances are counted in links, host links included.
struct HostDistances {
  std::map<std::uint32_t, std::uint64_t> histogram;  ///< distance -> pairs
  std::uint32_t diameter = 0;                        ///< 0 if there is only one host
  double mean = 0;
  /// Number of shortest paths of a pair; parallel links make different paths. Up to 2^53 exact.
  double fewest_paths = 0;
  double mean_paths = 0;
  double max_paths = 0;
  /// Hosts from which was searched: all of them, or an even sample if that would take more than `max_steps` visits of
  /// links. Pairs are those that begin at one of these.
  std::uint64_t sources = 0;
};

/// Links between the two hosts farthest from each other, as far as a few searches tell: each begins at the farthest
/// host of the one before, until none is farther. Exact on trees, grids and every graph that looks the same from all
/// hosts; never above the diameter. 0 if there is only one host.
std::uint32_t estimate_diameter(const ClusterGraph& graph);

/// Breadth-first search from every host (for hosts on one switch together).
HostDistances measure_distances(const ClusterGraph& graph, std::uint64_t max_steps = 4'000'000'000);

}  // namespace weft
