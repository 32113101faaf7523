// SPDX-License-Identifier: GPL-2.0-only
// Local repair: a switch leaves out those of its own ports whose links are down, before the others know of it.
#pragma once

#include <memory>
#include <vector>

#include "routing/algorithm/routing_algorithm.hpp"

namespace weft {

/// A switch notices that a link of its own is down within some microseconds, and its hardware takes the port out of the
/// groups of equal-cost ports that have it, long before a routing protocol has told the other switches (RFC 5714,
/// section 3: equal-cost paths are the first of the repairs that need no other router). A flow whose port is down moves
/// to another port that leads as close to its destination; where there is none, the switch still sends into the link
/// that is down. `resilient`: only such flows move; otherwise all flows of the group are hashed over the ports that are
/// left. `usual` is prepared; `dead`: by link number; both and `topology` stay alive as long as the result.
std::unique_ptr<RoutingAlgorithm> local_repair_routing(const RoutingAlgorithm& usual, const Topology& topology,
                                                       std::uint64_t seed, std::vector<bool> dead, bool resilient);

}  // namespace weft
