// SPDX-License-Identifier: GPL-2.0-only
// Which port a packet leaves by.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "graph/topology_builder.hpp"
#include "support/random.hpp"
#include "support/registry.hpp"

namespace weft {

/// What routing may look at. Plain data, copied from the packet.
struct RouteRequest {
  std::uint32_t source = 0;       ///< host node
  std::uint32_t destination = 0;  ///< host node
  std::uint32_t queue_pair = 0;   ///< of the source: the entropy that RoCEv2 puts into the UDP source port
};

/// ECMP hash of a flow at a node: the flow key, the node (so that tiers do not choose alike) and the seed (mixed, or
/// the next seed would give each node the choices of its neighbour in number).
constexpr std::uint32_t ecmp_hash(const RouteRequest& flow, std::uint32_t node, std::uint64_t seed) {
  std::uint64_t x = (static_cast<std::uint64_t>(flow.source) << 32 | flow.destination) * 0x9e3779b97f4a7c15U;
  x ^= (static_cast<std::uint64_t>(flow.queue_pair) << 32 | node) + mix64(seed);
  return static_cast<std::uint32_t>(mix64(x) >> 32);
}
/// One of n equal choices, without division: floor(hash * n / 2^32).
constexpr std::uint32_t ecmp_choice(std::uint32_t hash, std::uint32_t n) {
  return static_cast<std::uint32_t>((static_cast<std::uint64_t>(hash) * n) >> 32);
}

/// Next hops for any node and destination. Called in batches, so that the one virtual call is shared by the packets of
/// a window.
class RoutingAlgorithm {
 public:
  virtual ~RoutingAlgorithm() = default;
  /// Called once before use. Throws InputError (with an empty place) if the topology does not suit.
  virtual void prepare(const Topology& topology, std::uint64_t seed) = 0;
  /// ports[i] = port of `at` by which requests[i] leaves; `at` is not its destination. Pure: same answer always.
  virtual void route(NodeId at, std::span<const RouteRequest> requests, std::uint16_t* ports) const = 0;
  /// All equal-cost ports towards `destination` in ascending order; route() picks number
  /// ecmp_choice(ecmp_hash(request, at, seed), candidates.size()) of them.
  virtual std::vector<std::uint16_t> candidates(NodeId at, NodeId destination) const = 0;
};
using RoutingRegistry = Registry<RoutingAlgorithm>;

}  // namespace weft
