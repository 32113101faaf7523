// SPDX-License-Identifier: GPL-2.0-only
#include <algorithm>
#include <utility>

#include "fabric/queued/queued_hot.hpp"
#include "support/basics/contract.hpp"

namespace weft {

// As RdmaNic::serve(), compiled as one function with its callees.
[[gnu::flatten]] void NicReceiver::receive(const LocalNode& node, PortId port_index, const Packet& packet) {
  if (lane_of(packet).in(q_.state.ports[port_index].credited))
    q_.control.give_room(port_index, lane_of(packet), net_.sizes.frame_bytes(packet), packet.time);
  switch (packet.kind) {
    case PacketKind::data:
      return receive_data(node, port_index, packet);
    case PacketKind::ack:
    case PacketKind::nack:
    case PacketKind::cnp:
      return q_.nics.receive_answer(node, packet);
    case PacketKind::credit:
      return q_.credits.receive(node, port_index, packet);
    case PacketKind::credit_ack:
      return q_.credits.receive_ack(node, packet);
    case PacketKind::pull:
      return q_.nics.receive_pull(node, packet);
    case PacketKind::frame:
      return;  // ns-3 has had it at this time, before the packets
    case PacketKind::pause:
    case PacketKind::grant:
    case PacketKind::report:
      break;
  }
  WEFT_EXPECT(false, "host {}: packet of kind {}", node.id.value(), static_cast<int>(packet.kind));
}

void NicReceiver::receive_data(const LocalNode& node, PortId port_index, const Packet& packet) {
  QueuedState& state = q_.state;
  const Time now = packet.time;
  WEFT_EXPECT(packet.destination() == node.id, "host {} has received a packet for {}", node.id.value(),
              packet.destination().value());
  const bool last = (packet.flags & packet_last) != 0;
  std::uint32_t telemetry = no_slot;
  if (state.services.telemetry) {
    telemetry = last ? std::exchange(net_.messages[packet.message].telemetry, no_slot) : packet.message;
  }
  if (last) net_.messages[packet.message].arrived = now;
  if (state.services.pulls) [[unlikely]]
    note_data(node, port_index, packet);
  ReliableReceiver& receiver = state.hosts[node.host].receivers.find(packet.source(), packet.queue_pair).receiver;
  const auto answer = receiver.on_data(packet.time, packet, net_.messages, state.rules, state.services.cnp_interval);

  if (answer.cnp) answer_with(PacketKind::cnp, node, port_index, packet, answer);
  if (answer.nack)
    answer_with(PacketKind::nack, node, port_index, packet, answer).flags = answer.trimmed ? packet_trimmed : 0;
  if (answer.ack_before) [[unlikely]]
    acknowledge_before(node, port_index, packet, answer);
  if (answer.ack) {
    Packet& ack = answer_with(PacketKind::ack, node, port_index, packet, answer);
    ack.flags = answer.ecn ? packet_ecn : 0;
    ack.message = std::exchange(telemetry, no_slot);
  }
  if (telemetry != no_slot) state.telemetry.release(telemetry);
  for (std::uint32_t i = 0; i < answer.delivered; ++i) {
    const std::uint32_t slot = receiver.take_delivered();
    Message message = net_.messages[slot];
    net_.messages.release(slot);
    message.repaired = (packet.flags & packet_again) != 0 ? 1 : 0;
    net_.client->on_message(node.id, now, message);
  }
}

// An ACK of the packets before this one.
void NicReceiver::acknowledge_before(const LocalNode& node, PortId port_index, const Packet& packet,
                                     const ReliableReceiver::Answer& answer) {
  ReliableReceiver::Answer before;
  before.expected = *answer.ack_before;
  before.caused_by = before.expected - 1;
  answer_with(PacketKind::ack, node, port_index, packet, before).flags = answer.ecn_before ? packet_ecn : 0;
}

// Sixteen bits name the packet that is answered. A packet that is further from the expected one stays unnamed: the
// sender sends it again when its timer expires.
Packet& NicReceiver::answer_with(PacketKind kind, const LocalNode& node, PortId port_index, const Packet& packet,
                                 const ReliableReceiver::Answer& answer) {
  const auto ahead = static_cast<std::int32_t>(answer.caused_by - answer.expected);
  const bool named = ahead >= INT16_MIN && ahead <= INT16_MAX;
  Packet& reply = q_.nics.add_urgent(node, port_index, packet.time);
  reply.set_ends(node.id, packet.source());
  reply.queue_pair = packet.queue_pair;
  reply.lane = q_.state.plan.control.value() & 0xfU;
  reply.psn = answer.expected;
  reply.payload = static_cast<std::uint16_t>(named ? ahead : -1);
  reply.message = no_slot;
  reply.entropy = packet.entropy;
  reply.kind = kind;
  return reply;
}

// Pulls ---------------------------------------------------------------------------------------------------------------

// The receiver's part of congestion control gets the packet, and may request others.
void NicReceiver::note_data(const LocalNode& node, PortId port_index, const Packet& packet) {
  pulls_of(node, port_index, packet)
      .on_data({packet.time, packet.source(), packet.queue_pair, (packet.flags & packet_trimmed) != 0,
                (packet.flags & packet_more) != 0});
  watch_pulls(node, port_index, packet.time);
}

// In a server packets come by each port of the NIC and over the links inside, none of which has the rate of the host's
// own link.
ReceiverControl& NicReceiver::pulls_of(const LocalNode& node, PortId port_index, const Packet& packet) {
  RdmaHost& host = q_.state.hosts[node.host];
  NicPort& nic = host.ports[port_index - node.first_port];
  std::uint32_t& way_in = host.receivers.find(packet.source(), packet.queue_pair).way_in;
  if (way_in == no_slot) way_in = net_.links.way_in(packet.source(), node.id, packet.queue_pair);
  for (const PullQueue& pulls : nic.pulls)
    if (pulls.way_in == way_in) return *pulls.receiver;
  const Time full = net_.links.packet_time(way_in, net_.links.mtu(packet.source(), node.id));
  nic.pulls.push_back({way_in, net_.parameters.congestion_control->make_receiver(full)});
  return *nic.pulls.back().receiver;
}

ReceiverControl& NicReceiver::next_to_pull(const NicPort& nic) {
  return *std::min_element(nic.pulls.begin(), nic.pulls.end(), [](const PullQueue& a, const PullQueue& b) {
            return a.receiver->next_pull() < b.receiver->next_pull();
          })->receiver;
}

// Makes sure that the next pull is sent.
void NicReceiver::watch_pulls(const LocalNode& node, PortId port_index, Time now) {
  NicPort& nic = q_.state.hosts[node.host].ports[port_index - node.first_port];
  const Time earliest = next_to_pull(nic).next_pull();
  if (earliest == Time::max()) return;
  const Time next = std::max(now, earliest);
  if (next >= nic.pull_at) return;
  nic.pull_at = next;
  q_.events.add(net_.nodes.local_of[node.id], {next, port_index, 0, NodeEvent::Kind::pull, {}, 0});
}

// Pulls carry the number of all pulls so far, so that the latest replaces lost ones.
bool NicReceiver::send_pull(const LocalNode& node, const NodeEvent& event) {
  RdmaHost& host = q_.state.hosts[node.host];
  NicPort& nic = host.ports[event.port - node.first_port];
  if (nic.pull_at != event.time) return false;
  nic.pull_at = never;
  const Pull pull = next_to_pull(nic).take_pull(event.time);
  Packet packet;
  packet.set_ends(node.id, pull.source);
  packet.queue_pair = pull.queue_pair;
  packet.psn = host.receivers.find(pull.source, pull.queue_pair).pulled += pull.packets;
  packet.kind = PacketKind::pull;
  packet.flags = pull.returned ? packet_returned : 0;
  packet.lane = q_.state.plan.control.value() & 0xfU;
  packet.message = no_slot;
  q_.nics.add_urgent(node, event.port, event.time) = packet;
  watch_pulls(node, event.port, event.time);
  return true;
}

}  // namespace weft
