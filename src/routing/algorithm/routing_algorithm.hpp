// SPDX-License-Identifier: GPL-2.0-only
// Which port a packet leaves by.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "graph/topology/topology_builder.hpp"
#include "support/basics/random.hpp"
#include "support/basics/registry.hpp"
#include "units/bytes.hpp"

namespace weft {

/// The facts about a packet that routing may use. Plain data, copied from the packet.
struct RouteRequest {
  NodeId source;                 ///< a host
  NodeId destination;            ///< a host
  std::uint32_t queue_pair = 0;  ///< of the source: the entropy that RoCEv2 puts into the UDP source port
};

/// The same for decisions that depend on more than the flow: on what routing has decided before (virtual lanes, phases
/// of a detour) and on the queues of the node.
struct AdaptiveRequest {
  RouteRequest flow;
  std::uint32_t psn = 0;            ///< packet sequence number: entropy of the single packet
  std::uint16_t in_port = no_port;  ///< of this node; no_port at the host that sends
  std::uint8_t lane = 0;   ///< virtual lane in which it has arrived, counted from the first lane of its traffic
  std::uint8_t state = 0;  ///< what the choice before has left; 0 at the source
  /// [ports of the node][max_reported()] what waits in the queues that the node behind each port reports, as last heard
  /// of; empty if no switch reports.
  std::span<const Bytes> reported = {};
  static constexpr std::uint16_t no_port = 0xffff;
};

/// Where the packet goes on.
struct RouteChoice {
  std::uint16_t port = 0;
  std::uint8_t lane = 0;   ///< virtual lane on the link behind that port, below lanes()
  std::uint8_t state = 0;  ///< given back at the next node
};

/// Ports of a node whose queues it reports to the nodes behind others of its ports.
struct QueueReports {
  std::uint32_t first = 0;  ///< the first of `count` ports that are reported
  std::uint32_t count = 0;
  std::uint32_t first_listener = 0;  ///< the first of `listeners` ports through which that is told
  std::uint32_t listeners = 0;
};

/// The common part of the ECMP hashes of all flows at a node: the node (so that the choices of tiers are independent)
/// and the seed (mixed, or the next seed would give each node the choices of its neighbour in number).
constexpr std::uint64_t ecmp_salt(NodeId node, std::uint64_t seed) { return node.value() + mix64(seed); }
/// ECMP hash of a flow at a node, for callers with many flows at the same node.
constexpr std::uint32_t ecmp_hash(const RouteRequest& flow, std::uint64_t salt) {
  std::uint64_t x = (std::uint64_t{flow.source.value()} << 32 | flow.destination.value()) * 0x9e3779b97f4a7c15U;
  x ^= (static_cast<std::uint64_t>(flow.queue_pair) << 32) + salt;
  return static_cast<std::uint32_t>(mix64(x) >> 32);
}
constexpr std::uint32_t ecmp_hash(const RouteRequest& flow, NodeId node, std::uint64_t seed) {
  return ecmp_hash(flow, ecmp_salt(node, seed));
}
/// One of n equal choices, without division: floor(hash * n / 2^32).
constexpr std::uint32_t ecmp_choice(std::uint32_t hash, std::uint32_t n) {
  return static_cast<std::uint32_t>((static_cast<std::uint64_t>(hash) * n) >> 32);
}

/// Next hops for any node and destination. Called in batches, so that the one virtual call is shared by the packets of
/// an epoch.
class RoutingAlgorithm {
 public:
  virtual ~RoutingAlgorithm() = default;
  /// Called once before use. Throws InputError (with an empty place) if the topology does not suit.
  virtual void prepare(const Topology& topology, std::uint64_t seed) = 0;
  /// The same on a machine some of whose links do not work (`dead`: by link number). route() then gives no_route where
  /// there is no way. Throws InputError if the algorithm cannot do that.
  virtual void prepare_without(const Topology& topology, std::uint64_t seed, const std::vector<bool>& dead);
  static constexpr std::uint16_t no_route = 0xffff;
  /// The algorithm that routes such a machine while some of its links do not work; it has prepare_without().
  virtual std::string_view after_failures() const { return "shortest_path"; }
  /// ports[i] = port of `at` by which requests[i] leaves; `at` is not its destination. Pure: same answer always.
  virtual void route(NodeId at, std::span<const RouteRequest> requests, std::uint16_t* ports) const = 0;

  /// Virtual lanes that it needs to be free of deadlock on lossless links.
  virtual unsigned lanes() const { return 1; }
  /// choose() has to be called for each packet: route() is not enough. Switches then keep queues lane by lane.
  virtual bool per_packet() const { return false; }
  /// Packets of one connection may overtake each other, for the way of each depends on more than its flow. Receivers
  /// then have to keep packets that arrive early.
  virtual bool reorders() const { return false; }
  /// What a switch reports, if routing looks at queues elsewhere; and the most queues that any of them reports.
  virtual QueueReports reports(NodeId) const { return {}; }
  virtual std::uint32_t max_reported() const { return 0; }
  /// The way of one packet. `queued`: [ports of `at`] frames that wait there. Pure. Called once per packet and switch,
  /// and only if per_packet(): a decision on the queues of the moment cannot be shared by a batch.
  virtual RouteChoice choose(NodeId at, const AdaptiveRequest& request, std::span<const Bytes> queued) const {
    (void)queued;
    RouteChoice choice;
    route(at, {&request.flow, 1}, &choice.port);
    choice.lane = request.lane;
    choice.state = request.state;
    return choice;
  }
  /// All equal-cost ports towards `destination` in ascending order; route() picks number
  /// ecmp_choice(ecmp_hash(request, at, seed), candidates.size()) of them.
  virtual std::vector<std::uint16_t> candidates(NodeId at, NodeId destination) const = 0;
  /// Those of candidates() among which a switch may choose for each packet of `flow`: whatever each switch chooses, the
  /// packet comes closer to one and the same end. Where candidates() leads to several ends of a destination, such as
  /// the ports of its NIC, or along paths that turn back, one of them is taken by the flow.
  virtual std::vector<std::uint16_t> candidates_of(NodeId at, const RouteRequest& flow) const {
    return candidates(at, flow.destination);
  }
};
using RoutingRegistry = Registry<RoutingAlgorithm>;

}  // namespace weft
