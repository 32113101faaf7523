// SPDX-License-Identifier: GPL-2.0-only
#include <algorithm>

#include "fabric/queued/queued_model.hpp"
#include "transport/messages/late.hpp"

namespace weft {

void SlotCredits::send(const LocalNode& node, const Packet& credit, Time now) {
  if (!q_.state.loses_credits) {
    push(node, credit, now);
    return;
  }
  RdmaHost& host = q_.state.hosts[node.host];
  ReceivingConnection& connection = host.receivers.find(credit.destination(), credit.queue_pair);
  if (connection.credits == no_slot) {
    connection.credits = static_cast<std::uint32_t>(host.credits.size());
    GivenCredits& given = host.credits.emplace_back();
    given.to = credit.destination();
    given.queue_pair = credit.queue_pair;
  }
  ++host.credits[connection.credits].given;
  host.credits[connection.credits].late = credit.message;
  push_counted(node, connection.credits, now);
}

// Gives the port through which it leaves.
PortId SlotCredits::push(const LocalNode& node, Packet credit, Time now) {
  credit.lane = q_.state.plan.control.value() & 0xfU;
  std::uint16_t port = 0;
  const RouteRequest request{credit.source(), credit.destination(), credit.queue_pair};
  if (node.ports > 1) net_.routing.route(node.id, {&request, 1}, &port);
  q_.nics.add_urgent(node, node.first_port + port, now) = credit;
  return node.first_port + port;
}

// Sends the number of credits so far, and checks later whether it has arrived.
void SlotCredits::push_counted(const LocalNode& node, std::uint32_t position, Time now) {
  GivenCredits& credits = q_.state.hosts[node.host].credits[position];
  Packet credit;
  credit.set_ends(node.id, credits.to);
  credit.queue_pair = credits.queue_pair;
  credit.psn = credits.given;
  credit.kind = PacketKind::credit;
  credit.message = credits.late;
  const PortId port = push(node, credit, now);
  credits.sent_at = now;
  if (credits.timeout_at != never) return;  // checked before
  credits.timeout_at = now + q_.state.rules.timeout_low;
  q_.events.add(net_.nodes.local_of[node.id], {credits.timeout_at, port, position, NodeEvent::Kind::credit, {}, 0});
}

// A count that is not above the known one has been overtaken, or arrives a second time because its acknowledgement was
// lost.
void SlotCredits::receive(const LocalNode& node, PortId port_index, const Packet& packet) {
  std::uint32_t credits = 1;
  if (q_.state.loses_credits) {
    Connection& connection = q_.state.hosts[node.host].connections[packet.queue_pair];
    const auto more = static_cast<std::int32_t>(packet.psn - connection.credits);
    credits = static_cast<std::uint32_t>(std::max(more, 0));
    connection.credits += credits;
    Packet reply;
    reply.set_ends(node.id, packet.source());
    reply.queue_pair = packet.queue_pair;
    reply.lane = q_.state.plan.control.value() & 0xfU;
    reply.psn = connection.credits;
    reply.kind = PacketKind::credit_ack;
    q_.nics.add_urgent(node, port_index, packet.time) = reply;
  }
  for (std::uint32_t i = 0; i < credits; ++i)
    net_.client->on_credit(node.id, packet.time, packet.queue_pair, late_from_bits(packet.message));
}

void SlotCredits::receive_ack(const LocalNode& node, const Packet& packet) {
  RdmaHost& host = q_.state.hosts[node.host];
  GivenCredits& credits = host.credits[host.receivers.find(packet.source(), packet.queue_pair).credits];
  if (static_cast<std::int32_t>(packet.psn - credits.known) > 0) credits.known = packet.psn;
}

bool SlotCredits::time_out(const LocalNode& node, const NodeEvent& event) {
  GivenCredits& credits = q_.state.hosts[node.host].credits[event.data];
  credits.timeout_at = never;
  if (credits.known == credits.given) return false;
  const Time deadline = credits.sent_at + q_.state.rules.timeout_low;
  if (deadline <= event.time) {
    push_counted(node, event.data, event.time);
    return true;
  }
  credits.timeout_at = deadline;  // another credit has followed
  q_.events.add(net_.nodes.local_of[node.id], {deadline, event.port, event.data, NodeEvent::Kind::credit, {}, 0});
  return false;
}

}  // namespace weft
