// SPDX-License-Identifier: GPL-2.0-only
#include <algorithm>

#include "fabric/queued/queued_model.hpp"

namespace weft {

RouteRequest PacketRouter::request_of(Packet& packet) const {
  RouteRequest request{packet.source(), packet.destination(), packet.queue_pair};
  if (!q_.state.spreads) return request;
  const Arrival arrival{packet.time, 0, &packet, PortId::none()};
  net_.parameters.fabric.load_balancing->spread({&arrival, 1}, &request);
  return request;
}

std::span<const std::uint16_t> PacketRouter::route(const LocalNode& node, std::span<const Arrival> arrivals) {
  if (requests_.size() < arrivals.size()) {
    requests_.resize(arrivals.size());
    routes_.resize(arrivals.size());
  }
  for (std::size_t i = 0; i < arrivals.size(); ++i) {
    const Packet& packet = *arrivals[i].packet;
    requests_[i] = {packet.source(), packet.destination(), packet.queue_pair};
  }
  if (arrivals.empty()) return {};
  if (net_.fetches_ahead && q_.state.services.telemetry) fetch_telemetry(arrivals);
  if (q_.state.spreads) net_.parameters.fabric.load_balancing->spread(arrivals, requests_.data());
  net_.routing.route(node.id, {requests_.data(), arrivals.size()}, routes_.data());
  return {routes_.data(), arrivals.size()};
}

// The telemetry of packets is scattered in memory: it is in the cache when they leave.
void PacketRouter::fetch_telemetry(std::span<const Arrival> arrivals) const {
  for (const Arrival& came : arrivals) {
    const Packet& packet = *came.packet;
    if (packet.kind == PacketKind::data && (packet.flags & packet_last) == 0 && packet.message != no_slot)
      q_.state.telemetry.fetch_next(packet.message);
  }
}

std::uint16_t PacketRouter::route_now(const LocalNode& node, PortId in_port, Packet& packet, Time now) {
  QueuedState& state = q_.state;
  const RouteRequest request = request_of(packet);
  const RoutingAlgorithm& routing = q_.outages.routing_at(now, packet);
  if (routing.per_packet()) {
    queued_.resize(node.ports);
    for (std::uint32_t p = 0; p < node.ports; ++p) queued_[p] = state.queued_bytes(node.first_port + p);
    AdaptiveRequest adaptive{request, packet.psn, static_cast<std::uint16_t>(in_port - node.first_port), 0,
                             static_cast<std::uint8_t>(packet.route)};
    const std::size_t slots = state.reports.slots;
    if (slots > 0)
      adaptive.reported = {state.reports.heard.data() + node.first_port.value() * slots, node.ports * slots};
    if (state.plan.is_data(lane_of(packet)))
      adaptive.lane = static_cast<std::uint8_t>(lane_of(packet) - state.plan.data);
    const RouteChoice choice = routing.choose(node.id, adaptive, queued_);
    packet.route = choice.state;
    if (state.plan.is_data(lane_of(packet))) packet.lane = (state.plan.data + choice.lane).value() & 0xfU;
    return choice.port;
  }
  packet.route = LinkOutages::led_off;
  if (state.balancers.empty() || !is_spread(packet.kind)) {
    std::uint16_t port = 0;
    routing.route(node.id, {&request, 1}, &port);
    return port;
  }
  const auto ports = routing.candidates_of(node.id, request);
  if (ports.size() == 1) return ports[0];
  if (ports.empty()) return RoutingAlgorithm::no_route;  // failures have cut the destination off
  const SwitchPorts at(node.id, net_.seed, &net_.outputs[node.first_port], &state.ports[node.first_port]);
  return state.balancers[net_.nodes.local_of[node.id]]->choose(at, ports, request, packet.psn, now);
}

}  // namespace weft
