// SPDX-License-Identifier: GPL-2.0-only
// Paths that are written down for pairs of hosts.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/machine/cluster_graph.hpp"

namespace weft {

/// One way from a host to another.
struct StaticPath {
  struct Hop {
    NodeId node;
    std::uint16_t port;  ///< by which the packet leaves it
  };
  NodeId source;
  NodeId destination;
  std::vector<Hop> hops;  ///< the source first
};

/// In ascending order of (source, destination), those of one pair as listed.
using StaticPaths = std::vector<StaticPath>;

}  // namespace weft
