// SPDX-License-Identifier: GPL-2.0-only
// Which port a packet takes where ports have queues: for all arrivals of a window at once, or one by one where that
// depends on the moment.
#include <algorithm>

#include "fabric/buffered_state.hpp"
#include "fabric/fabric.hpp"
#include "fabric/fabric_hot.hpp"

namespace weft {
namespace {

constexpr std::size_t flowlet_entries = 4096;  // per switch

}  // namespace

RouteRequest Fabric::route_request(const Packet& packet) const {
  RouteRequest request{packet.source, packet.destination, packet.queue_pair};
  if (!state_spreads_ || packet.kind != PacketKind::data) return request;
  // What UDP source ports do in reality: one per path that the sender wants.
  if (parameters_.fabric.load_balancing == LoadBalancing::spray)
    request.queue_pair =
        static_cast<std::uint32_t>(mix64(static_cast<std::uint64_t>(packet.queue_pair) << 32 | packet.psn));
  else if (parameters_.fabric.load_balancing == LoadBalancing::reps)
    request.queue_pair =
        static_cast<std::uint32_t>(mix64(static_cast<std::uint64_t>(packet.queue_pair) << 8 | packet.entropy));
  return request;
}

void Fabric::route_arrivals(const Node& node) {
  requests_.resize(arrivals_.size());
  routes_.resize(arrivals_.size());
  for (std::size_t i = 0; i < arrivals_.size(); ++i) requests_[i] = route_request(*arrivals_[i].packet);
  if (!requests_.empty()) routing_.route(NodeId(node.id), requests_, routes_.data());
}

// The packet's way where it depends on the moment: on queues, on what routing decided before, on which links work.
std::uint16_t Fabric::route_now(const Node& node, std::uint32_t in_port, Packet& packet, std::int64_t now) {
  BufferedState& state = *buffered_;
  const RouteRequest request = route_request(packet);
  const RoutingAlgorithm& routing = routing_at(now);
  if (routing.per_packet()) {
    state.queued.resize(node.ports);
    for (std::uint32_t p = 0; p < node.ports; ++p) state.queued[p] = queued_bytes(node.first_port + p);
    AdaptiveRequest adaptive{request, packet.psn, static_cast<std::uint16_t>(in_port - node.first_port), 0,
                             static_cast<std::uint8_t>(packet.route)};
    const std::size_t slots = state.reports.slots;
    if (slots > 0) adaptive.reported = {state.reports.heard.data() + node.first_port * slots, node.ports * slots};
    if (state.plan.is_data(packet.lane)) adaptive.lane = static_cast<std::uint8_t>(packet.lane - state.plan.data);
    const RouteChoice choice = routing.choose(NodeId(node.id), adaptive, state.queued);
    packet.route = choice.state;
    if (state.plan.is_data(packet.lane)) packet.lane = static_cast<std::uint8_t>(state.plan.data + choice.lane) & 0xfU;
    return choice.port;
  }
  const LoadBalancing balancing = parameters_.fabric.load_balancing;
  if (packet.kind != PacketKind::data ||
      (balancing != LoadBalancing::flowlet && balancing != LoadBalancing::adaptive)) {
    std::uint16_t port = 0;
    routing.route(NodeId(node.id), {&request, 1}, &port);
    return port;
  }
  const auto ports = routing.candidates(NodeId(node.id), NodeId(packet.destination));
  if (ports.size() == 1) return ports[0];
  // One of the ports whose queue is within a packet of the least, by a hash of the packet: if the very least decided,
  // switches that move in step would all choose alike.
  const auto least_loaded = [&] {
    std::int64_t least = never;
    for (const std::uint16_t port : ports) least = std::min(least, port_load(node.first_port + port, now));
    const std::uint32_t hash = ecmp_hash(
        {request.source, request.destination, request.queue_pair ^ (packet.psn * 0x9e3779b9U)}, node.id, seed_);
    const std::size_t first = ecmp_choice(hash, static_cast<std::uint32_t>(ports.size()));
    for (std::size_t i = 0; i < ports.size(); ++i) {
      const std::uint16_t port = ports[(first + i) % ports.size()];
      if (port_load(node.first_port + port, now) <= least + outputs_[node.first_port + port].full_packet) return port;
    }
    return ports[first];
  };
  if (balancing == LoadBalancing::adaptive) return least_loaded();
  auto& table = state.flowlets[local_of_[node.id]];
  if (table.empty()) table.resize(flowlet_entries);
  Flowlet& flowlet = table[ecmp_hash(request, node.id, seed_ + 1) % flowlet_entries];
  const bool known = std::find(ports.begin(), ports.end(), flowlet.port) != ports.end();
  if (!known || now - flowlet.last > parameters_.fabric.flowlet_gap.ps()) flowlet.port = least_loaded();
  flowlet.last = now;
  return flowlet.port;
}

std::int64_t Fabric::queued_bytes(std::uint32_t port) const {
  std::int64_t bytes = 0;
  for (std::uint32_t lane = 0; lane < buffered_->plan.count; ++lane) bytes += buffered_->queue_of(port, lane).bytes;
  return bytes;
}

}  // namespace weft
