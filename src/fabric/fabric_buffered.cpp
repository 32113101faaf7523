// SPDX-License-Identifier: GPL-2.0-only
// Nodes whose ports have queues: packets wait in classes, find room in the switch's memory or not, and leave when the
// port is free and the other end of the link agrees.
#include <algorithm>

#include "fabric/buffered_state.hpp"
#include "fabric/fabric.hpp"
#include "fabric/frame_table.hpp"
#include "support/contract.hpp"

namespace weft {
namespace {

constexpr std::size_t flowlet_entries = 4096;  // per switch

double uniform(std::uint64_t seed, std::uint64_t link, std::uint64_t count) {
  return static_cast<double>(mix64(mix64(seed ^ mix64(link + 1)) + count) >> 11) * 0x1p-53;
}

// Puts `event` in the place of the first of a heap.
void sink_first(std::vector<NodeEvent>& heap, const NodeEvent& event) {
  const std::size_t size = heap.size();
  std::size_t at = 0;
  while (true) {
    std::size_t child = 2 * at + 1;
    if (child >= size) break;
    if (child + 1 < size && heap[child] > heap[child + 1]) ++child;
    if (!(event > heap[child])) break;
    heap[at] = heap[child];
    at = child;
  }
  heap[at] = event;
}

}  // namespace

// Events of nodes ----------------------------------------------------------------------------------------------------

void Fabric::add_event(std::uint32_t local, const NodeEvent& event) {
  auto& heap = buffered_->events[local];
  if (local == running_node_) {  // looked at when the node is done
    if (first_event_spent_) {
      first_event_spent_ = false;
      return sink_first(heap, event);
    }
    heap.push_back(event);
    return std::push_heap(heap.begin(), heap.end(), std::greater<>());
  }
  heap.push_back(event);
  std::push_heap(heap.begin(), heap.end(), std::greater<>());
  if (drive_ == Drive::ns3_events)
    schedule_arrival(local, event.time);
  else
    calendar_.schedule(local, window_number(event.time));
}

void Fabric::run_buffered(std::uint32_t local, std::int64_t end) {
  const Node& node = nodes_[local];
  gather(node, end);
  const bool is_switch = node.host == no_slot;
  if (is_switch && !routes_one_by_one_) route_arrivals(node);
  auto& events = buffered_->events[local];
  std::size_t next_arrival = 0;
  while (true) {
    const std::int64_t arrival = next_arrival < arrivals_.size() ? arrivals_[next_arrival].time : never;
    const std::int64_t event = events.empty() ? never : events.front().time;
    const std::int64_t timer =
        is_switch || host_states_[node.host].timers.empty() ? never : host_states_[node.host].timers.front().time;
    const std::int64_t now = std::min({arrival, event, timer});
    if (now >= end) break;
    bool happened = true;
    if (arrival == now) {
      const Arrival& came = arrivals_[next_arrival];
      if (is_switch)
        switch_receive(node, came, routes_one_by_one_ ? 0 : routes_[next_arrival]);
      else
        nic_receive(node, came.port, *came.packet);
      ++next_arrival;
    } else if (timer == now) {
      fire_timer(node, host_states_[node.host]);
    } else {
      // What happens mostly leads to one later event, which then takes its place in the heap.
      const NodeEvent happens = events.front();
      first_event_spent_ = true;
      happened = handle_event(local, happens);
      if (first_event_spent_) {
        first_event_spent_ = false;
        std::pop_heap(events.begin(), events.end(), std::greater<>());
        events.pop_back();
      }
    }
    if (!happened) continue;
    now_ = std::max(now_, now);
    ++events_;
  }
}

// False if the event was out of date and nothing has happened: timers that have become needless must not make a run
// last longer.
bool Fabric::handle_event(std::uint32_t local, const NodeEvent& event) {
  switch (event.kind) {
    case NodeEvent::Kind::expiry:
      return expire_pause(event);
    case NodeEvent::Kind::refresh:
      return refresh_pause(event);
    case NodeEvent::Kind::timeout:
      return nic_timeout(nodes_[local], event);
    case NodeEvent::Kind::control:
      return nic_control_timer(nodes_[local], event);
    case NodeEvent::Kind::pause:
      read_pause(event);
      break;
    case NodeEvent::Kind::grant:
      read_grant(event);
      break;
    case NodeEvent::Kind::link:
      change_link(event);
      return false;
    case NodeEvent::Kind::report:
      hear_report(event);
      return false;
    case NodeEvent::Kind::reporting:
      report_queues(event);
      return false;
    case NodeEvent::Kind::pacing:
      nic_pace(nodes_[local], event);
      break;
    case NodeEvent::Kind::port_free: {
      PortState& state = buffered_->ports[event.port];
      if (state.event_at != event.time) return false;
      state.event_at = never;
      kick(event.port, event.time);
    }
  }
  return true;
}

std::int64_t Fabric::next_buffered_event(const Node& node) const {
  const auto& events = buffered_->events[local_of_[node.id]];
  return events.empty() ? never : events.front().time;
}

// Routing ------------------------------------------------------------------------------------------------------------

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

// Time until everything has left that is there now.
std::int64_t Fabric::port_load(std::uint32_t port, std::int64_t now) const {
  return std::max<std::int64_t>(0, outputs_[port].free_at - now) + buffered_->ports[port].queue_ps;
}

// Switches -----------------------------------------------------------------------------------------------------------

void Fabric::switch_receive(const Node& node, const Arrival& came, std::uint16_t route) {
  Packet packet = *came.packet;
  const std::uint8_t in_lane = packet.lane;
  if (routes_one_by_one_) {
    route = route_now(node, came.port, packet, came.time);
    if (route == RoutingAlgorithm::no_route) {
      if ((buffered_->ports[came.port].credited >> in_lane & 1U) != 0)
        give_room(came.port, in_lane, frame_bytes(packet), came.time);
      return drop(came.port, packet);
    }
  }
  enqueue(node, node.first_port + route, packet, came.port, in_lane, came.time);
}

// How long the other end has stopped a class until now, in all.
inline std::int64_t Fabric::paused_time(std::uint32_t port_index, std::uint32_t lane, std::int64_t now) const {
  const ClassQueue& queue = buffered_->queue_of(port_index, lane);
  const bool stopped = (buffered_->ports[port_index].blocked >> lane & 1U) != 0;
  return queue.paused + (stopped ? now - queue.paused_since : 0);
}

// The depth of a queue is about to change.
inline void Fabric::note_depth(std::uint32_t port_index, std::uint32_t lane, std::int64_t now) {
  BufferedState& state = *buffered_;
  if (state.depths.empty()) [[likely]]
    return;
  state.depths[port_index * state.plan.count + lane].hold(state.queue_of(port_index, lane).bytes, now);
}

void Fabric::enqueue(const Node& node, std::uint32_t out, Packet& packet, std::uint32_t in_port, std::uint8_t in_lane,
                     std::int64_t now) {
  BufferedState& state = *buffered_;
  OutputPort& port = outputs_[out];
  PortState& ps = state.ports[out];
  const bool bypass = is_bypass(packet.lane);
  WireTime size = wire_time(port, packet);
  std::int64_t frame = size.wire - wire_overhead_;
  if (state.finite && !bypass && !find_room(node, out, packet, in_port, in_lane, now, frame)) {
    if (!parameters_.fabric.trimming || packet.kind != PacketKind::data || packet.payload == 0)
      return drop(out, packet);
    trim(out, packet);
    return enqueue(node, out, packet, in_port, in_lane, now);
  }
  if (sampling_ != 0 && now >= port.next_sample) flush_samples(port, now, queued_bytes(out));
  const bool may_pass = port.free_at <= now && (ps.occupied | ps.tell_pause | ps.tell_credit) == 0 &&
                        (ps.blocked >> packet.lane & 1U) == 0;
  // What finds the port free and nobody waiting needs no queue.
  if (may_pass && takes_credit(out, packet.lane, frame, now)) {
    if (marks_at_arrival_) mark(out, packet, state.queue_of(out, packet.lane), 0);
    launch(out, now, packet, size);
    if (!bypass) give_room(in_port, in_lane, frame, now);
    return;
  }
  ClassQueue& queue = state.queue_of(out, packet.lane);
  if (marks_at_arrival_) mark(out, packet, queue, queue.bytes);
  packet.time = now;
  if (packet.kind == PacketKind::data && (packet.flags & packet_last) != 0)
    messages_[packet.message].pause_mark = paused_time(out, packet.lane, now);
  note_depth(out, packet.lane, now);
  queue.queue.push(
      {packet, bypass ? no_in_port : in_port, static_cast<std::uint32_t>(frame) | std::uint32_t{in_lane} << 24},
      state.blocks);
  queue.bytes += frame;
  queue.peak = std::max(queue.peak, queue.bytes);
  ps.occupied |= 1U << packet.lane;
  ps.queue_ps += size.busy;
  if (state.reports.slots > 0) queue_changed(out, now);
  port.peak_backlog = std::max(port.peak_backlog, port_load(out, now));
  if (port.free_at <= now)
    kick(out, now);
  else
    look_again(out, port.free_at);
}

// Takes memory for a frame, and stops its sender where that is due.
bool Fabric::find_room(const Node& node, std::uint32_t out, const Packet& packet, std::uint32_t in_port,
                       std::uint8_t in_lane, std::int64_t now, std::int64_t frame) {
  BufferedState& state = *buffered_;
  const PortState& came = state.ports[in_port];
  if ((came.credited >> in_lane & 1U) != 0) return true;  // its sender has had a credit for it
  const bool pausing = (came.pausing >> in_lane & 1U) != 0;
  if (!pausing && state.queue_of(out, packet.lane).bytes + frame > state.queue_limit) return false;
  if (!state.limited) return true;
  SharedBuffer& buffer = state.buffers[state.buffer_of[local_of_[node.id]]];
  const std::uint32_t queue = (in_port - node.first_port) * state.plan.count + in_lane;
  if (buffer.admit(queue, frame) == SharedBuffer::Place::none) return false;
  if (pausing && buffer.must_pause(queue, state.largest_frame)) stop_sender(in_port, in_lane, now);
  return true;
}

void Fabric::drop(std::uint32_t out, const Packet& packet) {
  ++buffered_->dropped;
  ++buffered_->queue_of(out, packet.lane).dropped;
  forget(packet);
}

// What a packet holds beyond itself.
void Fabric::forget(const Packet& packet) {
  if (packet.kind == PacketKind::data) {
    const bool last = (packet.flags & packet_last) != 0;
    const std::uint32_t telemetry = last ? messages_[packet.message].telemetry : packet.message;
    if (buffered_->services.telemetry && telemetry != no_slot) buffered_->telemetry.release(telemetry);
    if (last) messages_.release(packet.message);
  } else if (packet.kind == PacketKind::ack || packet.kind == PacketKind::nack) {
    if (buffered_->services.telemetry && packet.message != no_slot) buffered_->telemetry.release(packet.message);
  } else if (packet.kind == PacketKind::frame) {
    frames_->drop(packet);
  }
}

// Handley et al., "Re-architecting datacenter networks and stacks for low latency and high performance", SIGCOMM 2017,
// doi:10.1145/3098822.3098825: the header goes on with the control traffic.
void Fabric::trim(std::uint32_t out, Packet& packet) {
  ++buffered_->queue_of(out, packet.lane).trimmed;
  forget(packet);
  packet.message = no_slot;
  packet.payload = 0;
  packet.flags = static_cast<std::uint8_t>((packet.flags & ~packet_last) | packet_trimmed);
  packet.lane = buffered_->plan.control & 0xfU;
}

void Fabric::mark(std::uint32_t port, Packet& packet, ClassQueue& queue, std::int64_t bytes) {
  const bool frame = packet.kind == PacketKind::frame && !buffered_->ports[port].of_host;
  if (packet.kind != PacketKind::data && !(frame && (packet.flags & packet_ask) != 0)) return;
  const MarkingRule& rule = buffered_->marking[port];
  if (bytes <= rule.least) return;
  if (bytes <= rule.most) {
    const double probability =
        rule.probability * static_cast<double>(bytes - rule.least) / static_cast<double>(rule.most - rule.least);
    // Drawn for each packet: several may come between two departures.
    const std::uint64_t which = mix64(std::uint64_t{packet.source} << 32 | packet.queue_pair) + packet.psn;
    if (uniform(seed_ ^ 0xec11, outputs_[port].directed_link, mix64(which) + outputs_[port].packets) >= probability)
      return;
  }
  packet.flags |= packet_ecn;
  if (frame) frames_->mark(packet.message);
  ++queue.marked;
}

// Ports --------------------------------------------------------------------------------------------------------------

std::int64_t Fabric::wire_of(const Packet& packet) const {
  switch (packet.kind) {
    case PacketKind::data:
      return packet.payload + data_overhead_;
    case PacketKind::frame:
      return packet.payload + parameters_.wire_overhead.count();
    case PacketKind::pause:
      return pause_wire;
    case PacketKind::grant:
      return grant_wire;
    default:
      return control_wire_;
  }
}

/// Control traffic takes part in no limit, so that nothing that is lossless can depend on what is not.
inline bool Fabric::is_bypass(std::uint32_t lane) const { return (buffered_->bypass >> lane & 1U) != 0; }

std::int64_t Fabric::frame_bytes(const Packet& packet) const { return wire_of(packet) - wire_overhead_; }

Fabric::WireTime Fabric::wire_time(const OutputPort& port, const Packet& packet) const {
  if (packet.kind == PacketKind::data) {
    if (packet.payload == mtu_) [[likely]]
      return {mtu_ + data_overhead_, port.full_packet};
  } else if (packet.kind <= PacketKind::cnp) {
    return {control_wire_, port.control_packet};
  }
  const std::int64_t wire = wire_of(packet);
  return {wire, serialization_time(Bytes(wire), Bandwidth::from_bps(port.rate_bps)).ps()};
}

// Something may be there to be sent: now, or when the port is free.
void Fabric::kick(std::uint32_t port_index, std::int64_t now) {
  if (outputs_[port_index].free_at <= now && !send_next(port_index, now)) return;
  if (has_work(port_index)) look_again(port_index, outputs_[port_index].free_at);
}

// Sees to it that the port is looked at no later than at `time`.
inline void Fabric::look_again(std::uint32_t port_index, std::int64_t time) {
  PortState& ps = buffered_->ports[port_index];
  if (ps.event_at <= time) return;
  ps.event_at = time;
  add_event(local_of_port_[port_index], {time, port_index, 0, NodeEvent::Kind::port_free, 0, 0});
}

inline bool Fabric::has_work(std::uint32_t port_index) const {
  const PortState& ps = buffered_->ports[port_index];
  if ((ps.tell_pause | ps.tell_credit | (ps.occupied & ~ps.blocked)) != 0) return true;
  if (!ps.of_host) return false;
  const Node& node = nodes_[local_of_port_[port_index]];
  const NicPort& nic = buffered_->hosts[node.host].ports[port_index - node.first_port];
  return nic.has_urgent() || nic.has_ready();
}

// Sends one packet or link-control frame through a free port. False if there is nothing that may go.
bool Fabric::send_next(std::uint32_t port_index, std::int64_t now) {
  BufferedState& state = *buffered_;
  PortState& ps = state.ports[port_index];
  if (ps.tell_pause != 0) {
    send_pause(port_index, now);
    return true;
  }
  if (ps.tell_credit != 0) {
    send_grant(port_index, now);
    return true;
  }
  if (ps.of_host) {
    const Node& node = nodes_[local_of_port_[port_index]];
    if ((ps.occupied & ~ps.blocked) != 0) [[unlikely]]
      return nic_send_beside_frames(node, port_index, now);
    return nic_send_urgent(node, port_index, now) || nic_send_data(node, port_index, now);
  }
  std::uint32_t ready = ps.occupied & ~ps.blocked;
  while (ready != 0) {
    const std::uint32_t lane = choose_lane(port_index, ready);
    ClassQueue& queue = state.queue_of(port_index, lane);
    const auto frame = static_cast<std::int64_t>(queue.queue.front().frame & 0xffffffU);
    if (takes_credit(port_index, lane, frame, now)) {
      const std::uint32_t sharing = ready & state.plan.shared;
      if ((sharing >> lane & 1U) != 0 && !std::has_single_bit(sharing)) queue.deficit -= frame;
      leave_queue(port_index, lane, now);
      return true;
    }
    ready &= ~(1U << lane);
  }
  return false;
}

void Fabric::leave_queue(std::uint32_t port_index, std::uint32_t lane, std::int64_t now) {
  BufferedState& state = *buffered_;
  OutputPort& port = outputs_[port_index];
  PortState& ps = state.ports[port_index];
  if (sampling_ != 0 && now >= port.next_sample) flush_samples(port, now, queued_bytes(port_index));
  ClassQueue& queue = state.queue_of(port_index, lane);
  QueuedPacket sent = queue.queue.front();
  queue.queue.pop(state.blocks);
  note_depth(port_index, lane, now);
  const auto frame = static_cast<std::int64_t>(sent.frame & 0xffffffU);
  queue.bytes -= frame;
  if (state.reports.slots > 0) queue_changed(port_index, now);
  if (queue.queue.empty()) {
    ps.occupied &= ~(1U << lane);
    queue.deficit = 0;
  }
  const WireTime size = wire_time(port, sent.packet);
  const std::int64_t wait = now - sent.packet.time;
  ps.queue_ps -= size.busy;
  port.waited +=
      static_cast<unsigned __int128>(static_cast<std::uint64_t>(wait)) * static_cast<std::uint64_t>(size.wire);
  if (sent.packet.kind == PacketKind::data && (sent.packet.flags & packet_last) != 0) {
    Message& message = messages_[sent.packet.message];
    message.add_wait(port.directed_link, wait);
    message.paused += paused_time(port_index, lane, now) - message.pause_mark;
  }
  if (marks_at_departure_) mark(port_index, sent.packet, queue, queue.bytes);
  launch(port_index, now, sent.packet, size);
  if (sent.in_port != no_in_port) give_room(sent.in_port, static_cast<std::uint8_t>(sent.frame >> 24), frame, now);
}

// Strict priority, except among the classes that share by deficit round robin (Shreedhar and Varghese, "Efficient fair
// queueing using deficit round robin", SIGCOMM 1995, doi:10.1145/217382.217453).
std::uint32_t Fabric::choose_lane(std::uint32_t port_index, std::uint32_t ready) {
  BufferedState& state = *buffered_;
  const auto first = static_cast<std::uint32_t>(std::countr_zero(ready));
  const std::uint32_t sharing = ready & state.plan.shared;
  if ((state.plan.shared >> first & 1U) == 0 || std::has_single_bit(sharing)) return first;
  PortState& ps = state.ports[port_index];
  std::uint32_t lane = ps.round;
  while (true) {
    if ((sharing >> lane & 1U) != 0) {
      ClassQueue& queue = state.queue_of(port_index, lane);
      const auto frame = static_cast<std::int64_t>(queue.queue.front().frame & 0xffffffU);
      if (queue.deficit >= frame) {
        ps.round = static_cast<std::uint16_t>(lane);
        return lane;
      }
    }
    lane = lane + 1 == state.plan.count ? 0 : lane + 1;
    if ((sharing >> lane & 1U) != 0) state.queue_of(port_index, lane).deficit += state.plan.quantum[lane];
  }
}

// The first bit leaves now.
void Fabric::launch(std::uint32_t port_index, std::int64_t now, Packet& packet, WireTime size) {
  BufferedState& state = *buffered_;
  OutputPort& port = outputs_[port_index];
  PortState& ps = state.ports[port_index];
  if (packet.kind == PacketKind::data) {
    ++port.data_packets;
    port.payload_bytes += packet.payload;
    if (state.services.telemetry) [[unlikely]]
      record_hop(port_index, packet, now);
  }
  ++port.packets;
  ClassQueue& queue = state.queue_of(port_index, packet.lane);
  ++queue.packets;
  queue.frame_bytes += size.wire - wire_overhead_;
  port.free_at = now + size.busy;
  port.busy += size.busy;
  port.peak_backlog = std::max(port.peak_backlog, size.busy);
  ps.wire_bytes += size.wire;
  if (port.tapped) [[unlikely]]
    for (const auto& tap : taps_[port_index]) tap->transmitted(Time::from_ps(now), packet);
  const std::int64_t until_known = ps.header_time > 0 ? std::min(size.busy, ps.header_time) : size.busy;
  if (has_faults_ && link_loses(port_index, now, port.free_at, size.wire)) [[unlikely]] {
    ++ps.lost;
    give_back_credit(port_index, packet.lane, size.wire - wire_overhead_);
    return forget(packet);
  }
  const std::int64_t arrival = now + until_known + port.after;
  if (packet.kind == PacketKind::frame && (port.peer_port & OutputPort::remote) == 0) [[unlikely]]
    hand_up(port.peer_port, packet, arrival);
  if ((port.peer_port & OutputPort::remote) == 0)
    push_local(port.peer_port, packet, arrival, port.peer_node);
  else
    export_packet(port, packet, arrival);
}

void Fabric::record_hop(std::uint32_t port_index, Packet& packet, std::int64_t now) {
  std::uint32_t& slot = (packet.flags & packet_last) != 0 ? messages_[packet.message].telemetry : packet.message;
  if (slot == no_slot) {
    if ((packet.flags & packet_trimmed) != 0) return;
    slot = buffered_->telemetry.add();
  }
  const OutputPort& port = outputs_[port_index];
  const PortState& ps = buffered_->ports[port_index];
  buffered_->telemetry[slot].add({now, ps.wire_bytes, queued_bytes(port_index), port.rate_bps, port.directed_link});
}

}  // namespace weft
