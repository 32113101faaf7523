// SPDX-License-Identifier: GPL-2.0-only
// Hosts with reliable connections: what their NIC does with what comes in, and which connection may send next.
#include <algorithm>
#include <utility>

#include "fabric/network/buffered_state.hpp"
#include "fabric/network/fabric.hpp"
#include "fabric/network/fabric_hot.hpp"
#include "support/contract.hpp"

namespace weft {
namespace {

Moment moment_of(const Connection& connection, std::int64_t now) {
  return {now, connection.sent_bytes, connection.sender.sent_packets()};
}

}  // namespace
// Sending ------------------------------------------------------------------------------------------------------------

// There is a packet, and the window has room for it. One packet is always allowed.
bool Fabric::window_allows(const Connection& connection) const {
  if (!connection.sender.has_packet() || connection.sender.sent_packets() >= connection.allowance.most_packets)
    return false;
  const std::int64_t in_flight = connection.sender.in_flight();
  return in_flight == 0 ||
         in_flight + connection.sender.next_payload(messages_, buffered_->rules) <= connection.allowance.window;
}

// Puts a connection into the round of those that may send, or sees to it that it gets there in time.
void Fabric::nic_list(const Node& node, Connection& connection, std::int64_t now) {
  using Reason = SendWaits::Reason;
  if (connection.listed) return;
  if (!window_allows(connection))
    return connection.waits.wait_for(connection.sender.has_packet() ? Reason::window : Reason::none, now);
  if (connection.next_send > now) {
    connection.waits.wait_for(Reason::pacing, now);
    if (connection.pacing_pending) return;
    connection.pacing_pending = true;
    return add_event(local_of_[node.id], {connection.next_send, connection.port, connection.sender.number(),
                                          NodeEvent::Kind::pacing, 0, 0});
  }
  connection.listed = true;
  BufferedState& state = *buffered_;
  NicPort& nic = state.hosts[node.host].ports[connection.port - node.first_port];
  if ((state.ports[connection.port].blocked >> connection.lane & 1U) != 0) {
    connection.held_since = now;
    connection.waits.wait_for(Reason::paused, now);
    nic.held.push_back(connection.sender.number());
  } else {
    connection.waits.wait_for(Reason::nic, now);
    nic.ready.push_back(connection.sender.number());
  }
  nic_wake(connection.port, now);
}

// The NIC decides what to send after all that comes in at the same time.
void Fabric::nic_wake(std::uint32_t port_index, std::int64_t now) {
  look_again(port_index, std::max(now, outputs_[port_index].free_at));
}

void Fabric::nic_unhold(const Node& node, std::uint32_t port_index, std::uint8_t lane, std::int64_t now) {
  ReliableHost& host = buffered_->hosts[node.host];
  NicPort& nic = host.ports[port_index - node.first_port];
  std::size_t kept = 0;
  for (const std::uint32_t number : nic.held) {
    Connection& connection = host.connections[number];
    if (connection.lane == lane) {
      connection.held += now - connection.held_since;
      connection.waits.wait_for(SendWaits::Reason::nic, now);
      nic.ready.push_back(number);
    } else {
      nic.held[kept++] = number;
    }
  }
  nic.held.resize(kept);
}

void Fabric::nic_push_urgent(const Node& node, std::uint32_t port_index, const Packet& packet, std::int64_t now) {
  buffered_->hosts[node.host].ports[port_index - node.first_port].urgent.push_back(packet);
  nic_wake(port_index, now);
}

// ACKs and their like.
bool Fabric::nic_send_urgent(const Node& node, std::uint32_t port_index, std::int64_t now) {
  BufferedState& state = *buffered_;
  NicPort& nic = state.hosts[node.host].ports[port_index - node.first_port];
  OutputPort& port = outputs_[port_index];
  if (sampling_ != 0 && now >= port.next_sample) flush_samples(port, now, queued_bytes(port_index));
  const PortState& ps = state.ports[port_index];
  if (!nic.has_urgent() || (ps.blocked >> state.plan.control & 1U) != 0 ||
      !takes_credit(port_index, state.plan.control, control_wire_ - wire_overhead_, now))
    return false;
  Packet packet = nic.urgent[nic.urgent_head++];
  if (!nic.has_urgent()) {
    nic.urgent.clear();
    nic.urgent_head = 0;
  }
  launch(port_index, now, packet, wire_time(port, packet));
  return true;
}

// One packet of each ready connection in turn.
bool Fabric::nic_send_data(const Node& node, std::uint32_t port_index, std::int64_t now) {
  BufferedState& state = *buffered_;
  ReliableHost& host = state.hosts[node.host];
  NicPort& nic = host.ports[port_index - node.first_port];
  while (nic.has_ready()) {
    const std::uint32_t number = nic.ready[nic.ready_head++];
    if (nic.ready_head * 2 > nic.ready.size()) {
      nic.ready.erase(nic.ready.begin(), nic.ready.begin() + static_cast<std::ptrdiff_t>(nic.ready_head));
      nic.ready_head = 0;
    }
    Connection& connection = host.connections[number];
    if (nic_send_from(node, connection, now)) return true;
  }
  return false;
}

bool Fabric::nic_send_from(const Node& node, Connection& connection, std::int64_t now) {
  BufferedState& state = *buffered_;
  const std::uint32_t port_index = connection.port;
  connection.listed = false;
  if (connection.next_sample <= now) [[unlikely]]
    flush_samples(node, connection, now);
  // Things may have changed since it was listed: a pause, a smaller window, a lower rate, an ACK of what was to be sent
  // again.
  const bool stopped = (state.ports[port_index].blocked >> connection.lane & 1U) != 0;
  const auto frame = [&] {
    return connection.sender.next_payload(messages_, state.rules) + parameters_.header.count();
  };
  if (stopped || !window_allows(connection) || connection.next_send > now ||
      !takes_credit(port_index, connection.lane, frame(), now)) {
    nic_list(node, connection, now);
    return false;
  }
  if (connection.held > 0) [[unlikely]]
    messages_[connection.sender.next_message(messages_)].paused += std::exchange(connection.held, 0);
  Packet packet = connection.sender.next_packet(now, node.id, messages_, state.rules, connection.waits);
  packet.lane = connection.lane & 0xfU;
  if (state.services.ecn) packet.flags &= static_cast<std::uint8_t>(~packet_ecn);
  if (state.services.telemetry && (packet.flags & packet_last) == 0) packet.message = no_slot;
  if (state.services.pulls && connection.sender.has_packet()) packet.flags |= packet_more;
  if (state.rules.ack_interval > 1 && !window_allows(connection)) packet.flags |= packet_ask;
  if (connection.balancer) [[unlikely]]
    packet.entropy = connection.balancer->entropy({seed_, node.id, connection.sender.number(), connection.sent_bytes});
  const std::int64_t wire = packet.payload + data_overhead_;
  connection.last_send = now;
  connection.last_wire = wire;
  connection.sent_bytes += wire;
  pace(connection);
  const bool again = (packet.flags & packet_again) != 0;
  launch(port_index, now, packet, wire_time(outputs_[port_index], packet));
  connection.waits.put_on_wire(now, outputs_[port_index].free_at, again);
  nic_watch(node, connection);
  if (connection.sent_bytes >= connection.allowance.next_bytes) {
    connection.allowance = connection.control->on_bytes_sent(moment_of(connection, now));
    nic_obey(node, connection, now);
  }
  nic_list(node, connection, now);
  return true;
}

// The next packet not before the last one has had its time at the allowed rate.
void Fabric::pace(Connection& connection) {
  const std::int64_t rate = connection.allowance.rate_bps;
  connection.next_send =
      rate == 0
          ? 0
          : connection.last_send + std::min(serialization_time(Bytes(connection.last_wire), Bandwidth::from_bps(rate)),
                                            Time::longest_wait())
                                       .ps();
}

// The congestion control has decided.
void Fabric::nic_obey(const Node& node, Connection& connection, std::int64_t now) {
  limit_window(connection);
  pace(connection);
  // A timer that ran out while the connection was idle is due at once.
  const std::int64_t timer = std::max(connection.allowance.next_timer, now);
  if (timer != Allowance::never && timer != connection.timer_at && !connection.sender.idle()) {
    connection.timer_at = timer;
    add_event(local_of_[node.id], {timer, connection.port, connection.sender.number(), NodeEvent::Kind::control, 0, 0});
  }
  nic_list(node, connection, now);
}

// Sees to it that the retransmission timer is looked at.
void Fabric::nic_watch(const Node& node, Connection& connection) {
  const std::int64_t deadline = connection.sender.deadline(buffered_->rules);
  if (deadline >= connection.timeout_at) return;  // looked at before then
  connection.timeout_at = deadline;
  add_event(local_of_[node.id],
            {deadline, connection.port, connection.sender.number(), NodeEvent::Kind::timeout, 0, 0});
}

// Events -------------------------------------------------------------------------------------------------------------

void Fabric::nic_pace(const Node& node, const NodeEvent& event) {
  Connection& connection = buffered_->hosts[node.host].connections[event.data];
  connection.pacing_pending = false;
  nic_list(node, connection, event.time);
}

bool Fabric::nic_timeout(const Node& node, const NodeEvent& event) {
  Connection& connection = buffered_->hosts[node.host].connections[event.data];
  if (connection.timeout_at != event.time) return false;
  connection.timeout_at = never;
  const bool late = connection.sender.deadline(buffered_->rules) <= event.time;
  if (late) {
    if (connection.next_sample <= event.time) flush_samples(node, connection, event.time);
    const auto progress = connection.sender.on_timeout(event.time, messages_, buffered_->rules);
    nic_lost(node, connection, progress, event.time, true);
  }
  nic_watch(node, connection);
  return late;
}

bool Fabric::nic_control_timer(const Node& node, const NodeEvent& event) {
  Connection& connection = buffered_->hosts[node.host].connections[event.data];
  if (connection.timer_at != event.time) return false;
  connection.timer_at = 0;
  // An idle connection's timers wait until it has something to send: any event brings its state up to date.
  if (connection.sender.idle()) return false;
  if (connection.next_sample <= event.time) [[unlikely]]
    flush_samples(node, connection, event.time);
  connection.allowance = connection.control->on_timer(moment_of(connection, event.time));
  nic_obey(node, connection, event.time);
  return true;
}

void Fabric::nic_lost(const Node& node, Connection& connection, const ReliableSender::Progress& progress,
                      std::int64_t now, bool timeout) {
  connection.sender.learn_of_loss(connection.waits.learn_of_loss(now), messages_);
  LossEvent loss;
  loss.at = moment_of(connection, now);
  loss.lost_bytes = progress.lost_bytes;
  loss.acked_psn = connection.sender.acked();
  loss.next_psn = connection.sender.next();
  loss.in_flight = connection.sender.in_flight();
  loss.timeout = timeout;
  connection.allowance = connection.control->on_loss(loss);
  nic_obey(node, connection, now);
}

// Receiving ----------------------------------------------------------------------------------------------------------

void Fabric::nic_receive(const Node& node, std::uint32_t port_index, const Packet& packet) {
  if ((buffered_->ports[port_index].credited >> packet.lane & 1U) != 0)
    give_room(port_index, packet.lane, frame_bytes(packet), packet.time);
  switch (packet.kind) {
    case PacketKind::data:
      return nic_receive_data(node, port_index, packet);
    case PacketKind::ack:
    case PacketKind::nack:
    case PacketKind::cnp:
      return nic_receive_answer(node, packet);
    case PacketKind::credit:
      return nic_receive_credit(node, port_index, packet);
    case PacketKind::credit_ack:
      return nic_receive_credit_ack(node, packet);
    case PacketKind::pull:
      return nic_receive_pull(node, packet);
    case PacketKind::frame:
      return;  // ns-3 has had it at this time, before the packets
    case PacketKind::pause:
    case PacketKind::grant:
    case PacketKind::report:
      break;
  }
  WEFT_EXPECT(false, "host {}: packet of kind {}", node.id, static_cast<int>(packet.kind));
}

void Fabric::nic_receive_data(const Node& node, std::uint32_t port_index, const Packet& packet) {
  BufferedState& state = *buffered_;
  const std::int64_t now = packet.time;
  WEFT_EXPECT(packet.destination == node.id, "host {} has received a packet for {}", node.id, +packet.destination);
  const bool last = (packet.flags & packet_last) != 0;
  std::uint32_t telemetry = no_slot;
  if (state.services.telemetry) {
    telemetry = last ? std::exchange(messages_[packet.message].telemetry, no_slot) : packet.message;
  }
  if (last) messages_[packet.message].arrived = now;
  if (state.services.pulls) [[unlikely]]
    nic_note_data(node, port_index, packet);
  ReliableReceiver& receiver = state.hosts[node.host].receivers.find(packet.source, packet.queue_pair).receiver;
  const auto answer = receiver.on_data(now, packet, messages_, state.rules, state.services.cnp_interval.ps());

  Packet reply;
  reply.set_ends(node.id, packet.source);
  reply.queue_pair = packet.queue_pair;
  reply.lane = state.plan.control & 0xfU;
  reply.psn = answer.expected;
  const auto ahead = static_cast<std::int32_t>(answer.caused_by - answer.expected);
  WEFT_EXPECT(ahead >= INT16_MIN && ahead <= INT16_MAX, "host {}: packet {} is {} packets from the expected one",
              node.id, packet.psn, ahead);
  reply.payload = static_cast<std::uint16_t>(ahead);
  reply.message = no_slot;
  reply.entropy = packet.entropy;
  if (answer.cnp) {
    reply.kind = PacketKind::cnp;
    nic_push_urgent(node, port_index, reply, now);
  }
  if (answer.nack) {
    reply.kind = PacketKind::nack;
    reply.flags = answer.trimmed ? packet_trimmed : 0;
    nic_push_urgent(node, port_index, reply, now);
  }
  if (answer.ack) {
    reply.kind = PacketKind::ack;
    reply.flags = answer.ecn ? packet_ecn : 0;
    reply.message = std::exchange(telemetry, no_slot);
    nic_push_urgent(node, port_index, reply, now);
  }
  if (telemetry != no_slot) state.telemetry.release(telemetry);
  for (std::uint32_t i = 0; i < answer.delivered; ++i) {
    const std::uint32_t slot = receiver.take_delivered();
    Message message = messages_[slot];
    messages_.release(slot);
    message.repaired = (packet.flags & packet_again) != 0 ? 1 : 0;
    client_->on_message(node.id, Time::from_ps(now), message);
  }
}

// The receiver's part of congestion control learns of a packet, and asks for others when it wants to.
void Fabric::nic_note_data(const Node& node, std::uint32_t port_index, const Packet& packet) {
  NicPort& nic = buffered_->hosts[node.host].ports[port_index - node.first_port];
  if (!nic.receiver)
    nic.receiver = parameters_.congestion_control->make_receiver(Time::from_ps(outputs_[port_index].full_packet));
  nic.receiver->on_data({packet.time, packet.source, packet.queue_pair, (packet.flags & packet_trimmed) != 0,
                         (packet.flags & packet_more) != 0});
  nic_watch_pulls(node, port_index, packet.time);
}

// Sees to it that the next pull is sent.
void Fabric::nic_watch_pulls(const Node& node, std::uint32_t port_index, std::int64_t now) {
  NicPort& nic = buffered_->hosts[node.host].ports[port_index - node.first_port];
  if (nic.receiver->next_pull() == Allowance::never) return;
  const std::int64_t next = std::max(now, nic.receiver->next_pull());
  if (next >= nic.pull_at) return;
  nic.pull_at = next;
  add_event(local_of_[node.id], {next, port_index, 0, NodeEvent::Kind::pull, 0, 0});
}

// Pulls tell how many there were in all, so that the latest makes up for those that are lost.
bool Fabric::nic_send_pull(const Node& node, const NodeEvent& event) {
  ReliableHost& host = buffered_->hosts[node.host];
  NicPort& nic = host.ports[event.port - node.first_port];
  if (nic.pull_at != event.time) return false;
  nic.pull_at = never;
  const Pull pull = nic.receiver->take_pull(event.time);
  Packet packet;
  packet.set_ends(node.id, pull.source);
  packet.queue_pair = pull.queue_pair;
  packet.psn = host.receivers.find(pull.source, pull.queue_pair).pulled += pull.packets;
  packet.kind = PacketKind::pull;
  packet.lane = buffered_->plan.control & 0xfU;
  packet.message = no_slot;
  nic_push_urgent(node, event.port, packet, event.time);
  nic_watch_pulls(node, event.port, event.time);
  return true;
}

void Fabric::nic_receive_pull(const Node& node, const Packet& packet) {
  Connection& connection = buffered_->hosts[node.host].connections[packet.queue_pair];
  const auto more = static_cast<std::int32_t>(packet.psn - connection.pulls);
  if (more <= 0) return;  // overtaken by a later one
  connection.pulls = packet.psn;
  connection.allowance =
      connection.control->on_pull(moment_of(connection, packet.time), static_cast<std::uint32_t>(more));
  nic_obey(node, connection, packet.time);
}

// A count that is not above what is known already has been overtaken, or comes a second time because its
// acknowledgement was lost.
void Fabric::nic_receive_credit(const Node& node, std::uint32_t port_index, const Packet& packet) {
  std::uint32_t credits = 1;
  if (buffered_->loses_credits) {
    Connection& connection = buffered_->hosts[node.host].connections[packet.queue_pair];
    const auto more = static_cast<std::int32_t>(packet.psn - connection.credits);
    credits = static_cast<std::uint32_t>(std::max(more, 0));
    connection.credits += credits;
    Packet reply;
    reply.set_ends(node.id, packet.source);
    reply.queue_pair = packet.queue_pair;
    reply.lane = buffered_->plan.control & 0xfU;
    reply.psn = connection.credits;
    reply.kind = PacketKind::credit_ack;
    nic_push_urgent(node, port_index, reply, packet.time);
  }
  for (std::uint32_t i = 0; i < credits; ++i)
    client_->on_credit(node.id, Time::from_ps(packet.time), packet.queue_pair);
}

void Fabric::nic_receive_credit_ack(const Node& node, const Packet& packet) {
  ReliableHost& host = buffered_->hosts[node.host];
  GivenCredits& credits = host.credits[host.receivers.find(packet.source, packet.queue_pair).credits];
  if (static_cast<std::int32_t>(packet.psn - credits.known) > 0) credits.known = packet.psn;
}

bool Fabric::nic_credit_timeout(const Node& node, const NodeEvent& event) {
  GivenCredits& credits = buffered_->hosts[node.host].credits[event.data];
  credits.timeout_at = never;
  if (credits.known == credits.given) return false;
  const std::int64_t deadline = credits.sent_at + buffered_->rules.timeout_low;
  if (deadline <= event.time) {
    push_counted_credit(node, event.data, event.time);
    return true;
  }
  credits.timeout_at = deadline;  // another credit has followed
  add_event(local_of_[node.id], {deadline, event.port, event.data, NodeEvent::Kind::credit, 0, 0});
  return false;
}

void Fabric::nic_receive_answer(const Node& node, const Packet& packet) {
  BufferedState& state = *buffered_;
  const std::int64_t now = packet.time;
  Connection& connection = state.hosts[node.host].connections[packet.queue_pair];
  if (connection.next_sample <= now) [[unlikely]]
    flush_samples(node, connection, now);
  if (packet.kind == PacketKind::cnp) {
    ++connection.cnps;
    connection.allowance = connection.control->on_cnp(moment_of(connection, now));
    return nic_obey(node, connection, now);
  }
  const auto caused_by = packet.psn + static_cast<std::uint32_t>(static_cast<std::int16_t>(packet.payload));
  ReliableSender& sender = connection.sender;
  ReliableSender::Progress progress;
  if (packet.kind == PacketKind::ack)
    progress = sender.on_ack(now, packet.psn, caused_by, messages_, state.rules);
  else if ((packet.flags & packet_trimmed) != 0)
    progress = sender.on_trimmed(now, caused_by, messages_, state.rules);
  else
    progress = sender.on_nack(now, packet.psn, messages_, state.rules);
  const bool marked = (packet.flags & packet_ecn) != 0;
  if (connection.balancer && packet.kind == PacketKind::ack) [[unlikely]]
    connection.balancer->acknowledged(packet.entropy, marked);
  if (state.services.acks && packet.kind == PacketKind::ack) {
    AckEvent ack;
    ack.at = moment_of(connection, now);
    ack.acked_bytes = progress.acked_bytes;
    ack.acked_psn = sender.acked();
    ack.next_psn = sender.next();
    ack.ecn = marked;
    ack.rtt = progress.rtt;
    ack.in_flight = sender.in_flight();
    if (packet.message != no_slot && state.services.telemetry) ack.hops = state.telemetry[packet.message].view();
    connection.allowance = connection.control->on_ack(ack);
  }
  if (packet.message != no_slot && state.services.telemetry) state.telemetry.release(packet.message);
  if (progress.lost_bytes > 0)
    nic_lost(node, connection, progress, now, false);
  else
    nic_obey(node, connection, now);
  // Few packets in flight have a shorter timer.
  if (state.rules.timeout_low < state.rules.timeout) nic_watch(node, connection);
  finish_sent(node, connection, progress.done, now);
}

// Messages that are acknowledged as a whole. The client may open connections meanwhile, so that references die.
void Fabric::finish_sent(const Node& node, const Connection& connection, std::uint32_t done, std::int64_t now) {
  const std::uint32_t number = connection.sender.number();
  for (std::uint32_t i = 0; i < done; ++i) {
    const std::uint32_t slot = buffered_->hosts[node.host].connections[number].sender.take_done(messages_);
    const Message message = messages_[slot];
    messages_.release(slot);
    if (message.notify != 0) client_->on_sent(node.id, Time::from_ps(now), message.token);
  }
}

// For the software of the host ---------------------------------------------------------------------------------------

std::uint32_t Fabric::open_connection(const Node& node, std::uint32_t destination) {
  auto& connections = buffered_->hosts[node.host].connections;
  const auto number = static_cast<std::uint32_t>(connections.size());
  Connection& connection = connections.emplace_back(destination, number);
  connection.path_profile = path_profile(node.id, destination, number);
  std::uint16_t port = 0;
  const RouteRequest request{node.id, destination, number};
  if (node.ports > 1) routing_.route(NodeId(node.id), {&request, 1}, &port);
  connection.port = node.first_port + port;
  connection.lane = buffered_->plan.data;
  connection.balancer = parameters_.fabric.load_balancing->at_sender();
  return number;
}

void Fabric::post_reliably(const Node& node, std::uint32_t queue_pair, Time now, Message message) {
  Connection& connection = buffered_->hosts[node.host].connections[queue_pair];
  const auto& path = profiles_[connection.path_profile];
  if (!connection.control) {
    connection.control = parameters_.congestion_control->make(flow_path(connection.port, path));
    connection.allowance = connection.control->start(now.ps());
    start_sampling(node, connection, now.ps());
  }
  message.destination = connection.sender.destination();
  message.queue_pair = queue_pair;
  message.issued = now.ps();
  message.ideal = ideal_message_time(path, Bytes(message.bytes), parameters_.mtu, parameters_.data_overhead()).ps();
  ++connection.messages;
  connection.message_bytes += message.bytes;
  if (connection.next_sample <= now.ps()) flush_samples(node, connection, now.ps());
  const bool was_idle = connection.sender.idle();
  message.begin(connection.waits.until(now.ps()));
  connection.sender.post(messages_.add(message), messages_, buffered_->rules);
  if (was_idle)
    nic_obey(node, connection, now.ps());
  else
    nic_list(node, connection, now.ps());
}

void Fabric::send_reliable_credit(const Node& node, Packet credit, Time now) {
  if (!buffered_->loses_credits) {
    push_credit(node, credit, now.ps());
    return;
  }
  ReliableHost& host = buffered_->hosts[node.host];
  ReceivingConnection& connection = host.receivers.find(credit.destination, credit.queue_pair);
  if (connection.credits == no_slot) {
    connection.credits = static_cast<std::uint32_t>(host.credits.size());
    host.credits.push_back({credit.destination, credit.queue_pair});
  }
  ++host.credits[connection.credits].given;
  push_counted_credit(node, connection.credits, now.ps());
}

// Gives the port through which it leaves.
std::uint32_t Fabric::push_credit(const Node& node, Packet credit, std::int64_t now) {
  credit.lane = buffered_->plan.control & 0xfU;
  std::uint16_t port = 0;
  const RouteRequest request{credit.source, credit.destination, credit.queue_pair};
  if (node.ports > 1) routing_.route(NodeId(node.id), {&request, 1}, &port);
  nic_push_urgent(node, node.first_port + port, credit, now);
  return node.first_port + port;
}

// Tells how many credits there were, and looks later whether that has arrived.
void Fabric::push_counted_credit(const Node& node, std::uint32_t position, std::int64_t now) {
  GivenCredits& credits = buffered_->hosts[node.host].credits[position];
  Packet credit;
  credit.set_ends(node.id, credits.to);
  credit.queue_pair = credits.queue_pair;
  credit.psn = credits.given;
  credit.kind = PacketKind::credit;
  const std::uint32_t port = push_credit(node, credit, now);
  credits.sent_at = now;
  if (credits.timeout_at != never) return;  // looked at before
  credits.timeout_at = now + buffered_->rules.timeout_low;
  add_event(local_of_[node.id], {credits.timeout_at, port, position, NodeEvent::Kind::credit, 0, 0});
}

// Without congestion control the window of the network is the only limit; beside one it counts if it was asked for.
void Fabric::limit_window(Connection& connection) const {
  if (parameters_.window_given || parameters_.congestion_control_name == "none")
    connection.allowance.window = std::min(connection.allowance.window, window_);
}

/// The path as congestion control sees it. The way back of ACKs has the same links.
FlowPath Fabric::flow_path(std::uint32_t port, const std::vector<PathLink>& path) const {
  FlowPath flow;
  flow.nic_rate = Bandwidth::from_bps(outputs_[port].rate_bps);
  flow.mtu = parameters_.mtu;
  flow.data_overhead = parameters_.data_overhead();
  flow.hops = static_cast<std::uint32_t>(path.size());
  flow.base_rtt = ideal_message_time(path, parameters_.mtu, parameters_.mtu, parameters_.data_overhead());
  flow.base_rtt += ideal_message_time(path, parameters_.control_wire(), parameters_.control_wire(), Bytes());
  return flow;
}

}  // namespace weft
