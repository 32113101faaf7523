// SPDX-License-Identifier: GPL-2.0-only
#include <algorithm>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "fabric/queued/queued_hot.hpp"
#include "support/basics/contract.hpp"
#include "support/basics/error.hpp"
#include "transport/messages/ideal_time.hpp"
#include "units/text.hpp"

namespace weft {
namespace {

Moment moment_of(const Connection& connection, Time now) {
  return {now, connection.sent, connection.sender.sent_packets()};
}

NodeEvent pacing_event(const Connection& connection, Time end) {
  return {end, connection.port, connection.sender.number(), NodeEvent::Kind::pacing, {}, 0};
}

// The packets that fill the idle path there and back.
std::uint32_t round_trip_packets(const FlowPath& flow) {
  const std::int64_t packet = serialization_time(flow.wire_packet(), flow.nic_rate).ps();
  return static_cast<std::uint32_t>(std::min<std::int64_t>((flow.base_rtt.ps() + packet - 1) / packet, UINT32_MAX));
}

// std::min() takes references, for which the compiler keeps all times in memory.
constexpr Time first_of(Time a, Time b) { return a < b ? a : b; }

}  // namespace

// Time passes ---------------------------------------------------------------------------------------------------------

void RdmaNic::run(std::uint32_t local, Time end) {
  const LocalNode& node = net_.nodes.all[local];
  const EventHeap& events = q_.state.events[local];
  RdmaHost& host = q_.state.hosts[node.host];
  HostTimers& timers = host.timers;
  const std::span<const Arrival> arrivals = net_.gather(node, end);
  if (net_.fetches_ahead && q_.state.services.telemetry) fetch_telemetry(arrivals);
  const Arrival* came = arrivals.data();
  const Arrival* const last = came + arrivals.size();
  while (true) {
    const Time arrival = came != last ? came->time : never;
    const Time event = events.next();
    const Time timer = timers.next();
    const Time pacing = host.pacing.time;
    const PortId port = next_port(node);
    const Time own = first_of(first_of(event, pacing), first_of(timer, q_.state.ports[port].event_at));
    const Time now = first_of(arrival, own);
    if (now >= end) break;
    if (arrival == now) {
      q_.receivers.receive(node, came->port, *came->packet);
      ++came;
    } else if (timer == now) {
      net_.client->on_timer(node.id, now, timers.take().token);
    } else if (pacing == now && (event != now || pacing_ends_first(local, host))) {
      host.pacing.time = never;
      if (!end_pacing(node, host.pacing.connection, now)) continue;
      // Mostly its port is free, and nothing else happens before the port sends: it is served without another round.
      const PortId woken = next_port(node);
      if (q_.state.ports[woken].event_at == now && events.next() > now) {
        net_.clock.happen(now);
        q_.state.ports[woken].event_at = never;
        serve(node, woken, now);
      }
    } else if (event == now) {
      if (!q_.events.handle_first(local)) continue;
    } else {
      q_.state.ports[port].event_at = never;
      serve(node, port, now);
    }
    net_.clock.happen(now);
  }
}

// The telemetry of ACKs is scattered in memory: it is in the cache when the ACKs are read.
void RdmaNic::fetch_telemetry(std::span<const Arrival> arrivals) const {
  for (const Arrival& came : arrivals)
    if (came.packet->kind == PacketKind::ack && came.packet->message != no_slot)
      q_.state.telemetry.fetch_all(came.packet->message);
}

// Serves a port of a host as QueuedPorts::kick() does, without the checks that a plain host does not need. Its callees
// have no other caller on the path of most packets, so all of them become one function.
[[gnu::flatten]] void RdmaNic::serve(const LocalNode& node, PortId port_index, Time now) {
  if (!q_.state.plain) [[unlikely]]
    return q_.ports.kick(port_index, now);
  const OutputPort& port = net_.outputs[port_index];
  const NicPort& nic = q_.state.hosts[node.host].ports[port_index - node.first_port];
  if (port.free_at <= now && !(nic.has_urgent() && send_urgent(node, port_index, now)) &&
      !send_data(node, port_index, now))
    return;
  if (nic.has_urgent() || nic.has_ready()) q_.ports.look_again(port_index, port.free_at);
}

// Sending -------------------------------------------------------------------------------------------------------------

// There is a packet, and the window has space for it. One packet is always allowed.
bool RdmaNic::window_allows(const Connection& connection) const {
  if (!connection.sender.has_packet() || connection.sender.sent_packets() >= connection.allowance.max_packets)
    return false;
  const Bytes in_flight = connection.sender.in_flight();
  const Bytes window = connection.allowance.window;
  // Whatever the next packet's payload is, it is no more than a full one's.
  return in_flight == Bytes() || in_flight + connection.sender.mtu() <= window ||
         in_flight + connection.sender.next_payload(net_.messages) <= window;
}

// What a connection waits for whose window is full: acknowledgements, if the window is the experiment's; congestion
// control, if that has set a smaller one, or for a pull of the receiver.
SendWaits::Reason RdmaNic::full_window(const Connection& connection) const {
  if (connection.sender.sent_packets() >= connection.allowance.max_packets) return SendWaits::Reason::pacing;
  const Bytes given = q_.state.window_limits ? net_.sizes.window(connection.sender.mtu()) : Bytes::max();
  return q_.state.services.acks && connection.allowance.window < given ? SendWaits::Reason::pacing
                                                                       : SendWaits::Reason::window;
}

// Puts a connection into the round of those that may send, or schedules that for the right time.
void RdmaNic::list(const LocalNode& node, Connection& connection, Time now) {
  using Reason = SendWaits::Reason;
  if (connection.listed) return;
  if (!window_allows(connection))
    return connection.waits.wait_for(connection.sender.has_packet() ? full_window(connection) : Reason::none, now);
  if (connection.next_send > now) {
    connection.waits.wait_for(Reason::pacing, now);
    // One event at a time is enough, unless the rate has risen since and makes the packet due before it.
    if (connection.next_send < connection.pacing_at) await_pacing(node, connection);
    return;
  }
  if (connection.pacing_at != never) [[unlikely]]
    forget_pacing(node, connection);
  connection.listed = true;
  QueuedState& state = q_.state;
  NicPort& nic = state.hosts[node.host].ports[connection.port - node.first_port];
  if (connection.lane.in(state.ports[connection.port].blocked)) {
    connection.held_since = now;
    connection.waits.wait_for(Reason::paused, now);
    nic.held.push_back(connection.sender.number());
  } else {
    connection.waits.wait_for(Reason::nic, now);
    nic.ready.push_back(connection.sender.number());
  }
  wake(connection.port, now);
}

// Most hosts have one connection that its rate holds back: that needs no event.
void RdmaNic::await_pacing(const LocalNode& node, Connection& connection) {
  const std::uint32_t local = net_.nodes.local_of[node.id];
  PacingEnd& pacing = q_.state.hosts[node.host].pacing;
  const std::uint32_t number = connection.sender.number();
  connection.pacing_at = connection.next_send;
  if ((pacing.time == never || pacing.connection == number) && local == net_.clock.running)
    pacing = {connection.next_send, number};
  else
    q_.events.add(local, pacing_event(connection, connection.next_send));
}

// It sends, or something else holds it back, before the time for which it waited. An event of that time finds nothing.
void RdmaNic::forget_pacing(const LocalNode& node, Connection& connection) {
  PacingEnd& pacing = q_.state.hosts[node.host].pacing;
  connection.pacing_at = never;
  if (pacing.connection == connection.sender.number()) pacing.time = never;
}

// Simultaneous actions have the order of events.
bool RdmaNic::pacing_ends_first(std::uint32_t local, const RdmaHost& host) const {
  return q_.state.events[local].precedes(pacing_event(host.connections[host.pacing.connection], host.pacing.time));
}

// The NIC decides what to send after all arrivals of the same time.
void RdmaNic::wake(PortId port_index, Time now) {
  q_.ports.look_again(port_index, std::max(now, net_.outputs[port_index].free_at));
}

void RdmaNic::unhold(const LocalNode& node, PortId port_index, LaneId lane, Time now) {
  RdmaHost& host = q_.state.hosts[node.host];
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

// Written where it waits: a copy would load what was just stored by wider words, for which processors wait.
Packet& RdmaNic::add_urgent(const LocalNode& node, PortId port_index, Time now) {
  wake(port_index, now);
  return q_.state.hosts[node.host].ports[port_index - node.first_port].urgent.emplace_back();
}

// ACKs and their like.
bool RdmaNic::send_urgent(const LocalNode& node, PortId port_index, Time now) {
  QueuedState& state = q_.state;
  NicPort& nic = state.hosts[node.host].ports[port_index - node.first_port];
  OutputPort& port = net_.outputs[port_index];
  if (net_.sampler.due(port, now)) net_.sampler.flush(port, now, q_.state.sampled_bytes(port, port_index));
  const PortState& ps = state.ports[port_index];
  if (!nic.has_urgent() || state.plan.control.in(ps.blocked) ||
      !q_.control.takes_credit(port_index, state.plan.control, net_.sizes.control_wire - net_.sizes.wire_overhead, now))
    return false;
  Packet& packet = nic.urgent[nic.urgent_head];
  q_.departures.launch(port_index, now, packet, net_.sizes.wire_time(port, packet));
  if (++nic.urgent_head == nic.urgent.size()) {
    nic.urgent.clear();
    nic.urgent_head = 0;
  }
  return true;
}

// One packet of each ready connection in turn.
bool RdmaNic::send_data(const LocalNode& node, PortId port_index, Time now) {
  QueuedState& state = q_.state;
  RdmaHost& host = state.hosts[node.host];
  NicPort& nic = host.ports[port_index - node.first_port];
  while (nic.has_ready()) {
    const std::uint32_t number = nic.ready[nic.ready_head++];
    if (nic.ready_head == nic.ready.size()) {
      nic.ready.clear();
      nic.ready_head = 0;
    } else if (nic.ready_head * 2 > nic.ready.size()) {
      nic.ready.erase(nic.ready.begin(), nic.ready.begin() + static_cast<std::ptrdiff_t>(nic.ready_head));
      nic.ready_head = 0;
    }
    Connection& connection = host.connections[number];
    if (send_from(node, connection, now)) return true;
  }
  return false;
}

bool RdmaNic::send_from(const LocalNode& node, Connection& connection, Time now) {
  QueuedState& state = q_.state;
  const PortId port_index = connection.port;
  connection.listed = false;
  if (connection.next_sample <= now) [[unlikely]]
    q_.samples.flush(node, connection, now);
  if (!may_send(connection, now)) {
    list(node, connection, now);
    return false;
  }
  if (connection.held > Time()) [[unlikely]]
    net_.messages[connection.sender.next_message(net_.messages)].paused += std::exchange(connection.held, Time());
  Packet packet = connection.sender.next_packet(now, node.id, net_.messages, connection.waits);
  packet.lane = connection.lane.value() & 0xfU;
  if (state.services.ecn) packet.flags &= static_cast<std::uint8_t>(~packet_ecn);
  if (state.services.telemetry && (packet.flags & packet_last) == 0) packet.message = no_slot;
  if (state.services.pulls && connection.sender.has_packet()) packet.flags |= packet_more;
  if (state.rules.ack_interval > 1 && !window_allows(connection)) packet.flags |= packet_ask;
  if (connection.balancer) [[unlikely]]
    packet.entropy = connection.balancer->entropy({net_.seed, node.id, connection.sender.number(), connection.sent});
  const Bytes payload = Bytes(packet.payload);
  const Bytes wire = payload + net_.sizes.data_overhead;
  connection.last_send = now;
  connection.last_wire = wire;
  connection.sent += wire;
  pace(connection);
  const bool again = (packet.flags & packet_again) != 0;
  const WireTime size = net_.sizes.wire_time(net_.outputs[port_index], packet);
  const Time longer = q_.outages.slows() ? q_.outages.longer(port_index, size.busy) : Time();
  if (longer > Time() && (packet.flags & packet_last) != 0) net_.messages[packet.message].slower += longer;
  q_.departures.launch(port_index, now, packet, size);
  if (connection.waits.has_slower_link()) [[unlikely]]
    connection.waits.occupy_slower_link(now, payload, net_.links.profile(connection.path_profile),
                                        net_.parameters.data_overhead());
  connection.waits.put_on_wire(now, net_.outputs[port_index].free_at, again);
  if (longer > Time()) [[unlikely]]
    connection.waits.slow_down(longer);
  watch(node, connection);
  if (connection.sent >= connection.allowance.next_bytes) {
    connection.allowance = connection.control->on_bytes_sent(moment_of(connection, now));
    obey(node, connection, now);
  }
  list(node, connection, now);
  return true;
}

// The conditions may have changed since it was listed: a pause, a smaller window, a lower rate, an ACK of what was to
// be sent again. Takes a credit where the link has some.
bool RdmaNic::may_send(const Connection& connection, Time now) const {
  const PortState& ps = q_.state.ports[connection.port];
  if (connection.lane.in(ps.blocked) || !window_allows(connection) || connection.next_send > now) return false;
  if (!connection.lane.in(ps.credited)) [[likely]]
    return true;
  const Bytes payload = connection.sender.next_payload(net_.messages);
  return q_.control.takes_credit(connection.port, connection.lane, payload + net_.parameters.header, now);
}

// The next packet not before the last one has had its time at the allowed rate: the division is made again when packets
// have another size or the rate has changed.
void RdmaNic::pace(Connection& connection) {
  const Bandwidth rate = connection.allowance.rate;
  if (rate == Bandwidth()) {
    connection.next_send = Time();
    return;
  }
  if (rate != connection.paced_rate || connection.last_wire != connection.paced_wire) {
    connection.paced_rate = rate;
    connection.paced_wire = connection.last_wire;
    connection.pace = std::min(serialization_time(connection.last_wire, rate), Time::longest_wait());
  }
  connection.next_send = connection.last_send + connection.pace;
}

// The congestion control has decided.
void RdmaNic::obey(const LocalNode& node, Connection& connection, Time now) {
  limit_window(connection);
  pace(connection);
  // A timer that expired while the connection was idle fires at once.
  const Time timer = std::max(connection.allowance.next_timer, now);
  if (timer != never && timer != connection.timer_at && !connection.sender.idle()) {
    connection.timer_at = timer;
    q_.events.add(net_.nodes.local_of[node.id],
                  {timer, connection.port, connection.sender.number(), NodeEvent::Kind::control, {}, 0});
  }
  list(node, connection, now);
}

// When its retransmission timer expires; never while nothing is in flight.
Time RdmaNic::deadline_of(const Connection& connection) const {
  const Time deadline = connection.sender.deadline(q_.state.rules);
  return deadline == never ? never : deadline + Time::from_ns(connection.timers_longer_ns);
}

// Makes sure that the retransmission timer is checked.
void RdmaNic::watch(const LocalNode& node, Connection& connection) {
  const Time deadline = deadline_of(connection);
  if (deadline >= connection.timeout_at) return;  // checked before then
  connection.timeout_at = deadline;
  q_.events.add(net_.nodes.local_of[node.id],
                {deadline, connection.port, connection.sender.number(), NodeEvent::Kind::timeout, {}, 0});
}

// Events --------------------------------------------------------------------------------------------------------------

bool RdmaNic::end_pacing(const LocalNode& node, std::uint32_t number, Time now) {
  Connection& connection = q_.state.hosts[node.host].connections[number];
  if (connection.pacing_at != now) return false;
  connection.pacing_at = never;
  if (!connection.sender.has_packet()) return false;
  list(node, connection, now);
  return true;
}

bool RdmaNic::time_out(const LocalNode& node, const NodeEvent& event) {
  Connection& connection = q_.state.hosts[node.host].connections[event.data];
  if (connection.timeout_at != event.time) return false;
  connection.timeout_at = never;
  const bool late = deadline_of(connection) <= event.time;
  if (late) {
    if (connection.next_sample <= event.time) q_.samples.flush(node, connection, event.time);
    const std::uint64_t next_psn = connection.sender.next();
    const auto progress = connection.sender.on_timeout(event.time, net_.messages, q_.state.rules);
    if (connection.balancer) connection.balancer->lost(event.time);
    lose(node, connection, progress, next_psn, event.time, true);
  }
  watch(node, connection);
  return late;
}

bool RdmaNic::control_timer(const LocalNode& node, const NodeEvent& event) {
  Connection& connection = q_.state.hosts[node.host].connections[event.data];
  if (connection.timer_at != event.time) return false;
  connection.timer_at = Time();
  // An idle connection's timers wait until it has something to send: any event brings its state up to date.
  if (connection.sender.idle()) return false;
  if (connection.next_sample <= event.time) [[unlikely]]
    q_.samples.flush(node, connection, event.time);
  connection.allowance = connection.control->on_timer(moment_of(connection, event.time));
  obey(node, connection, event.time);
  return true;
}

void RdmaNic::lose(const LocalNode& node, Connection& connection, const ReliableSender::Progress& progress,
                   std::uint64_t next_psn, Time now, bool timeout) {
  connection.sender.learn_of_loss(connection.waits.learn_of_loss(now), net_.messages);
  LossEvent loss;
  loss.at = moment_of(connection, now);
  loss.lost = progress.lost;
  loss.acked_psn = connection.sender.acked();
  loss.next_psn = next_psn;
  loss.in_flight = connection.sender.in_flight();
  loss.repeated = connection.sender.repeated();
  loss.waiting = connection.sender.lost();
  loss.timeout = timeout;
  connection.allowance = connection.control->on_loss(loss);
  obey(node, connection, now);
}

// Answers -------------------------------------------------------------------------------------------------------------

void RdmaNic::receive_answer(const LocalNode& node, const Packet& packet) {
  QueuedState& state = q_.state;
  const Time now = packet.time;
  Connection& connection = state.hosts[node.host].connections[packet.queue_pair];
  if (connection.next_sample <= now) [[unlikely]]
    q_.samples.flush(node, connection, now);
  if (packet.kind == PacketKind::cnp) {
    ++connection.cnps;
    connection.allowance = connection.control->on_cnp(moment_of(connection, now));
    return obey(node, connection, now);
  }
  const auto caused_by = packet.psn + static_cast<std::uint32_t>(static_cast<std::int16_t>(packet.payload));
  ReliableSender& sender = connection.sender;
  const std::uint64_t next_psn = sender.next();
  ReliableSender::Progress progress;
  if (packet.kind == PacketKind::ack)
    progress = sender.on_ack(now, packet.psn, caused_by, net_.messages, state.rules);
  else if ((packet.flags & packet_trimmed) != 0)
    progress = sender.on_trimmed(now, caused_by, net_.messages, state.rules);
  else
    progress = sender.on_nack(now, packet.psn, net_.messages, state.rules);
  const bool marked = (packet.flags & packet_ecn) != 0;
  if (connection.balancer && packet.kind == PacketKind::ack) [[unlikely]] {
    connection.balancer->acknowledged(packet.entropy, marked, now, connection.round_trip_packets);
    if (progress.lost > Bytes()) connection.balancer->lost(now);
  }
  if (state.services.acks && packet.kind == PacketKind::ack) {
    AckEvent ack;
    ack.at = moment_of(connection, now);
    ack.acked = progress.acked;
    ack.acked_psn = sender.acked();
    ack.next_psn = sender.next();
    ack.ecn = marked;
    ack.rtt = progress.rtt;
    ack.in_flight = sender.in_flight();
    if (packet.message != no_slot && state.services.telemetry) {
      ack.hops = state.telemetry.hops(packet.message);
      ack.rates = state.telemetry.rates();
    }
    connection.allowance = connection.control->on_ack(ack);
  }
  if (packet.message != no_slot && state.services.telemetry) state.telemetry.release(packet.message);
  if (progress.lost > Bytes())
    lose(node, connection, progress, next_psn, now, false);
  else if (state.services.acks)
    obey(node, connection, now);
  else
    list(node, connection, now);  // it has been obeyed before
  // Few packets in flight have a shorter timer.
  if (state.rules.timeout_low < state.rules.timeout) watch(node, connection);
  if (progress.done > 0) finish_sent(node, connection, progress.done, now);
}

// Messages that are acknowledged as a whole. The client may open connections meanwhile, so that references die.
void RdmaNic::finish_sent(const LocalNode& node, const Connection& connection, std::uint32_t done, Time now) {
  const std::uint32_t number = connection.sender.number();
  for (std::uint32_t i = 0; i < done; ++i) {
    const std::uint32_t slot = q_.state.hosts[node.host].connections[number].sender.take_done(net_.messages);
    const Message message = net_.messages[slot];
    net_.messages.release(slot);
    if (message.notify != 0) net_.client->on_sent(node.id, now, message.token);
  }
}

void RdmaNic::receive_pull(const LocalNode& node, const Packet& packet) {
  Connection& connection = q_.state.hosts[node.host].connections[packet.queue_pair];
  const auto more = static_cast<std::int32_t>(packet.psn - connection.pulls);
  if (more <= 0) return;  // overtaken by a later one
  connection.pulls = packet.psn;
  connection.allowance = connection.control->on_pull(
      moment_of(connection, packet.time), static_cast<std::uint32_t>(more), (packet.flags & packet_returned) != 0);
  obey(node, connection, packet.time);
}

// For the software of the host ----------------------------------------------------------------------------------------

std::uint32_t RdmaNic::open(const LocalNode& node, NodeId destination) {
  auto& connections = q_.state.hosts[node.host].connections;
  const auto number = static_cast<std::uint32_t>(connections.size());
  const Bytes mtu = net_.links.mtu(node.id, destination);
  Connection& connection = connections.emplace_back(destination, number, mtu);
  connection.path_profile = net_.links.profile_of_path(node.id, destination, number);
  const SlowestLink slowest(net_.links.profile(connection.path_profile), mtu, net_.parameters.data_overhead());
  if (slowest.is_later()) {
    const std::uint32_t out = net_.links.way_out(node.id, destination, number);
    const bool inside = net_.links.packet_time(out, mtu) == slowest.of_full_packet();
    connection.waits.follow(slowest, inside ? &q_.state.hosts[node.host].shared_links.of(out) : nullptr);
  }
  std::uint16_t port = 0;
  const RouteRequest request{node.id, destination, number};
  if (node.ports > 1) net_.routing.route(node.id, {&request, 1}, &port);
  connection.port = node.first_port + port;
  connection.lane = q_.state.plan.data;
  connection.balancer = net_.parameters.fabric.load_balancing->at_sender();
  return number;
}

std::uint64_t RdmaNic::post(const LocalNode& node, std::uint32_t queue_pair, Time now, Message message) {
  RdmaHost& host = q_.state.hosts[node.host];
  Connection& connection = host.connections[queue_pair];
  const auto& path = net_.links.profile(connection.path_profile);
  if (!connection.control) {
    const FlowPath flow = flow_path(path, connection.sender.mtu());
    try {
      check(flow);
    } catch (const InputError& error) {
      refusal.note({now, node.id, queue_pair, error.what()});
      return 0;  // The run ends as soon as it is known which refusal is the first.
    }
    connection.control = net_.parameters.congestion_control->make(flow);
    const std::int64_t longer = (q_.state.rules.longer_by(flow.base_rtt).ps() + 999) / 1000;
    connection.round_trip_packets = round_trip_packets(flow);
    connection.timers_longer_ns = static_cast<std::uint32_t>(std::min<std::int64_t>(longer, UINT32_MAX));
    connection.allowance = connection.control->start(now);
    q_.samples.open(node, connection, now);
  }
  message.id = message_id(node.id, host.messages++);
  message.destination = connection.sender.destination();
  message.queue_pair = queue_pair;
  message.issued = now;
  message.ideal = ideal_message_time(path, message.bytes, connection.sender.mtu(), net_.parameters.data_overhead());
  ++connection.messages;
  connection.posted += message.bytes;
  if (connection.next_sample <= now) q_.samples.flush(node, connection, now);
  const bool was_idle = connection.sender.idle();
  connection.waits.post(now);
  message.begin(connection.waits.until(now));
  connection.sender.post(net_.messages.add(message), net_.messages);
  if (was_idle)
    obey(node, connection, now);
  else
    list(node, connection, now);
  return message.id;
}

// Without congestion control the window of the network is the only limit; beside one it counts if it was set.
void RdmaNic::limit_window(Connection& connection) const {
  if (q_.state.window_limits)
    connection.allowance.window = std::min(connection.allowance.window, net_.sizes.window(connection.sender.mtu()));
}

// Parameters that do not suit the path are the user's.
void RdmaNic::check(const FlowPath& flow) const {
  net_.parameters.congestion_control->check(flow);
  const auto& place = net_.parameters.timeout_place;
  const Time timeout = q_.state.rules.timeout_low;
  if (place && timeout <= flow.base_rtt)
    throw InputError(*place,
                     fmt::format("found a timeout of {}, but an idle path takes {} there and back; expected more "
                                 "than that, or each packet is sent again",
                                 to_text(timeout), to_text(flow.base_rtt)));
}

/// The path as congestion control sees it. The way back of ACKs has the same links. In a server the NIC's port is the
/// slowest link on the way to the network, or inside the slowest one to the other host: the host's own link is as fast
/// as all of them together.
FlowPath RdmaNic::flow_path(const std::vector<PathLink>& path, Bytes mtu) const {
  FlowPath flow;
  flow.nic_rate = path.front().rate;
  for (const PathLink& link : path) {
    flow.nic_rate = std::min(flow.nic_rate, link.rate);
    if (!link.to_end) break;
  }
  flow.mtu = mtu;
  flow.data_overhead = net_.parameters.data_overhead();
  flow.hops = static_cast<std::uint32_t>(path.size());
  flow.base_rtt = ideal_message_time(path, mtu, mtu, net_.parameters.data_overhead());
  flow.base_rtt += ideal_message_time(path, net_.parameters.control_wire(), net_.parameters.control_wire(), Bytes());
  return flow;
}

}  // namespace weft
