// SPDX-License-Identifier: GPL-2.0-only
// Which port a packet takes where ports have queues: for all arrivals of an epoch at once, or one by one where that
// depends on the moment.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fabric/local/local_network.hpp"
#include "fabric/packet/arrival_order.hpp"
#include "routing/algorithm/routing_algorithm.hpp"
#include "transport/messages/packet.hpp"

namespace weft {

struct QueuedModel;

/// Asks the routing algorithm, and the discipline of load balancing, for the port of each packet.
class PacketRouter {
 public:
  PacketRouter(QueuedModel& model, LocalNetwork& net) : q_(model), net_(net) {}

  RouteRequest request_of(Packet& packet) const;
  /// The ports of the node for all arrivals, in their order; until the next call.
  std::span<const std::uint16_t> route(const LocalNode& node, std::span<const Arrival> arrivals);
  /// The packet's port where it depends on the moment: on queues, on what routing decided before, on which links work.
  std::uint16_t route_now(const LocalNode& node, PortId in_port, Packet& packet, Time now);

 private:
  void fetch_telemetry(std::span<const Arrival> arrivals) const;

  std::vector<RouteRequest> requests_;
  std::vector<std::uint16_t> routes_;
  std::vector<Bytes> queued_;  // waiting at each port of a node
  static constexpr Time never = Time::max();

  QueuedModel& q_;
  LocalNetwork& net_;
};

}  // namespace weft
