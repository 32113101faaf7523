// SPDX-License-Identifier: GPL-2.0-only
// Can packets wait for each other in a cycle?
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "routing/algorithm/routing_algorithm.hpp"

namespace weft {

/// A directed link and a virtual lane on it.
struct Channel {
  std::uint32_t directed_link = 0;
  std::uint8_t lane = 0;
};

/// Dependencies between channels: from a channel to those on which a packet that holds it may go on.
struct DeadlockReport {
  std::uint64_t channels = 0;      ///< used by some packet
  std::uint64_t dependencies = 0;  ///< different ones
  std::vector<Channel> cycle;      ///< one cycle of dependencies if there is any: deadlock is possible
  bool free_of_deadlock() const { return cycle.empty(); }
};

struct DeadlockSearch {
  /// Flows per pair of hosts that are followed, with different entropy: the choices of hashes.
  std::uint32_t flows_per_pair = 4;
  /// At most so many pairs, evenly taken.
  std::uint64_t max_pairs = 40'000;
};

/// On lossless links a routing cannot deadlock if and, for routing without adaptivity, only if the graph of these
/// dependencies has no cycle (W. Dally, C. Seitz, IEEE Trans. Computers C-36(5), 1987). All candidates of each node
/// are followed; where the routing decides packet by packet, all that it answers to a queue of its choice being short
/// and the others long, or all being short. Choices by hash are sampled, so that a cycle that needs a rare flow may be
/// missed on machines with more than max_pairs pairs.
DeadlockReport check_deadlock(const Topology& topology, const RoutingAlgorithm& routing,
                              const DeadlockSearch& search = {});

/// "switch0 -> switch1 lane 0, switch1 -> switch2 lane 0, ..."
std::string to_text(const Topology& topology, const std::vector<Channel>& cycle);

}  // namespace weft
