// SPDX-License-Identifier: GPL-2.0-only
// The path that a routing algorithm gives to a flow.
#pragma once

#include <cstdint>
#include <vector>

#include "routing/algorithm/routing_algorithm.hpp"

namespace weft {

/// One hop: `node` sends through its port `port`, which is the directed link `directed_link` (2 * link + direction).
struct PathHop {
  NodeId node;
  std::uint16_t port = 0;
  std::uint32_t directed_link = 0;
};

/// Hops from the source to the destination of a flow, the source's first; none if they are the same host. Throws
/// InternalError if the algorithm leads nowhere or in a cycle. `routing` has been prepared for `topology`. If it
/// decides packet by packet: the way of packet 0 while all queues are empty.
std::vector<PathHop> trace_path(const Topology& topology, const RoutingAlgorithm& routing, const RouteRequest& flow);

}  // namespace weft
