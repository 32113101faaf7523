// SPDX-License-Identifier: GPL-2.0-only
// Which port a packet takes where ports have queues: for all arrivals of a window at once, or one by one where that
// depends on the moment.
#include <algorithm>

#include "fabric/network/buffered_state.hpp"
#include "fabric/network/fabric.hpp"
#include "fabric/network/fabric_hot.hpp"

namespace weft {
RouteRequest Fabric::route_request(Packet& packet) const {
  RouteRequest request{packet.source, packet.destination, packet.queue_pair};
  if (!spreads_) return request;
  const Arrival arrival{packet.time, 0, &packet, 0};
  parameters_.fabric.load_balancing->spread({&arrival, 1}, &request);
  return request;
}

void Fabric::route_arrivals(const Node& node) {
  requests_.resize(arrivals_.size());
  routes_.resize(arrivals_.size());
  for (std::size_t i = 0; i < arrivals_.size(); ++i) {
    const Packet& packet = *arrivals_[i].packet;
    requests_[i] = {packet.source, packet.destination, packet.queue_pair};
  }
  if (requests_.empty()) return;
  if (spreads_) parameters_.fabric.load_balancing->spread(arrivals_, requests_.data());
  routing_.route(NodeId(node.id), requests_, routes_.data());
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
  if (packet.kind != PacketKind::data || state.balancers.empty()) {
    std::uint16_t port = 0;
    routing.route(NodeId(node.id), {&request, 1}, &port);
    return port;
  }
  const auto ports = routing.candidates(NodeId(node.id), NodeId(packet.destination));
  if (ports.size() == 1) return ports[0];
  const SwitchPorts at(node.id, seed_, &outputs_[node.first_port], &state.ports[node.first_port]);
  return state.balancers[local_of_[node.id]]->choose(at, ports, request, packet.psn, Time::from_ps(now));
}

std::int64_t Fabric::queued_bytes(std::uint32_t port) const {
  std::int64_t bytes = 0;
  for (std::uint32_t lane = 0; lane < buffered_->plan.count; ++lane) bytes += buffered_->queue_of(port, lane).bytes;
  return bytes;
}

}  // namespace weft
