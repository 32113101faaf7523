// SPDX-License-Identifier: GPL-2.0-only
// Nodes whose ports have queues: packets wait in classes, find room in the switch's memory or not, and leave when the
// port is free and the other end of the link agrees.
#include <algorithm>

#include "fabric/frames/frame_table.hpp"
#include "fabric/network/buffered_state.hpp"
#include "fabric/network/fabric.hpp"
#include "fabric/network/fabric_hot.hpp"
#include "fabric/probes/waits_by_job.hpp"
#include "support/contract.hpp"
#include "support/interrupt.hpp"

namespace weft {
// Events of nodes ----------------------------------------------------------------------------------------------------

void Fabric::add_event(std::uint32_t local, const NodeEvent& event) {
  buffered_->events[local].push(event);
  if (local == running_node_) return;  // looked at when the node is done
  wake_node_at(local, event.time);
}

void Fabric::run_buffered(std::uint32_t local, std::int64_t end) {
  const Node& node = nodes_[local];
  gather(node, end);
  if (node.host != no_slot)
    run_connections(local, end);
  else
    run_queues(local, end);
}

// A host: everything in the order of time, its few ports last.
void Fabric::run_connections(std::uint32_t local, std::int64_t end) {
  const Node& node = nodes_[local];
  EventHeap& events = buffered_->events[local];
  const std::vector<HostTimer>& timers = host_states_[node.host].timers;
  std::size_t next_arrival = 0;
  while (true) {
    const std::int64_t arrival = next_arrival < arrivals_.size() ? arrivals_[next_arrival].time : never;
    const std::int64_t event = events.empty() ? never : events.time();
    const std::int64_t timer = timers.empty() ? never : timers.front().time;
    const std::uint32_t port = next_port(node);
    const std::int64_t now = std::min({arrival, event, timer, buffered_->ports[port].event_at});
    if (now >= end) break;
    if (arrival == now) {
      const Arrival& came = arrivals_[next_arrival++];
      nic_receive(node, came.port, *came.packet);
    } else if (timer == now) {
      fire_timer(node, host_states_[node.host]);
    } else if (event == now) {
      if (!handle_first_event(local)) continue;
    } else {
      buffered_->ports[port].event_at = never;
      kick(port, now);
    }
    now_ = std::max(now_, now);
    ++events_;
  }
}

// The port of a host that is to be looked at first.
inline std::uint32_t Fabric::next_port(const Node& node) const {
  std::uint32_t first = node.first_port;
  for (std::uint32_t p = first + 1; p < node.first_port + node.ports; ++p)
    if (buffered_->ports[p].event_at < buffered_->ports[first].event_at) first = p;
  return first;
}

inline bool Fabric::handle_first_event(std::uint32_t local) {
  EventHeap& events = buffered_->events[local];
  events.take();
  const bool happened = handle_event(local, events.front());
  events.done();
  return happened;
}

// Of a switch, those before a time.
void Fabric::run_events(std::uint32_t local, std::int64_t before) {
  const EventHeap& events = buffered_->events[local];
  while (!events.empty() && events.time() < before) {
    const std::int64_t now = events.time();
    if (events.kind() != NodeEvent::Kind::port_free) catch_up(events.port(), now);
    if (!handle_first_event(local)) continue;
    now_ = std::max(now_, now);
    ++events_;
  }
}

// Ports that defer ----------------------------------------------------------------------------------------------------

// The same of all ports of a switch, which then decides by the whole of its memory.
void Fabric::catch_up_all(std::uint32_t local, std::int64_t before) {
  for (const std::uint32_t port : buffered_->deferred[local].ports) catch_up(port, before);
}

// The rest of the window; ports that have nothing more to send leave the list.
void Fabric::run_deferred(std::uint32_t local, std::int64_t end) {
  DeferredPorts& deferred = buffered_->deferred[local];
  std::size_t kept = 0;
  deferred.next = never;
  for (const std::uint32_t port : deferred.ports) {
    catch_up(port, end);
    PortState& ps = buffered_->ports[port];
    ps.deferred = ps.event_at != never;
    if (!ps.deferred) continue;
    deferred.next = std::min(deferred.next, ps.event_at);
    deferred.ports[kept++] = port;
  }
  deferred.ports.resize(kept);
}

// A sender is about to be stopped: from here on it counts when memory is given back. All ports have been caught up
// with.
void Fabric::stop_deferring(std::uint32_t local) {
  DeferredPorts& deferred = buffered_->deferred[local];
  if (!deferred.on) return;
  deferred.on = false;
  deferred.next = never;
  for (const std::uint32_t port : deferred.ports) {
    PortState& ps = buffered_->ports[port];
    ps.deferred = false;
    if (ps.event_at != never) add_event(local, {ps.event_at, port, 0, NodeEvent::Kind::port_free, 0, 0});
  }
  deferred.ports.clear();
}

// Whatever else looks at ports in the order of time wants events.
bool Fabric::may_defer() const {
  return drive_ == Drive::windows && !buffered_->credits && buffered_->reports.slots == 0 && !routes_one_by_one_ &&
         !frames_ && sampling_ == 0 && taps_.empty() && !after_advance_ && !several_jobs_;
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
      look_for_interrupt();
      return nic_timeout(nodes_[local], event);
    case NodeEvent::Kind::credit:
      return nic_credit_timeout(nodes_[local], event);
    case NodeEvent::Kind::control:
      return nic_control_timer(nodes_[local], event);
    case NodeEvent::Kind::pull:
      return nic_send_pull(nodes_[local], event);
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
    case NodeEvent::Kind::port_free:
      return look_at(event.port, event.time);
  }
  return true;
}

// The port may be free. False if it is looked at another time.
inline bool Fabric::look_at(std::uint32_t port_index, std::int64_t now) {
  PortState& ps = buffered_->ports[port_index];
  if (ps.event_at != now) return false;
  ps.event_at = never;
  kick(port_index, now);
  return true;
}

void Fabric::look_by_event(std::uint32_t port_index, std::int64_t time) {
  PortState& ps = buffered_->ports[port_index];
  const std::uint32_t local = local_of_port_[port_index];
  DeferredPorts& deferred = buffered_->deferred[local];
  if (deferred.on) {
    ps.deferred = true;
    deferred.ports.push_back(port_index);
  } else if (!ps.of_host) {
    add_event(local, {time, port_index, 0, NodeEvent::Kind::port_free, 0, 0});
  } else if (local != running_node_) {
    wake_node_at(local, time);
  }
}

// The node does something by itself.
void Fabric::wake_node_at(std::uint32_t local, std::int64_t time) {
  if (drive_ == Drive::ns3_events)
    schedule_arrival(local, time);
  else
    calendar_.schedule(local, window_number(time));
}

std::int64_t Fabric::next_buffered_event(const Node& node) const {
  const std::uint32_t local = local_of_[node.id];
  const EventHeap& events = buffered_->events[local];
  const std::int64_t by_ports =
      node.host == no_slot ? buffered_->deferred[local].next : buffered_->ports[next_port(node)].event_at;
  return events.empty() ? by_ports : std::min(by_ports, events.time());
}

// Switches -----------------------------------------------------------------------------------------------------------

// Takes memory for a frame, and stops its sender where that is due.
[[gnu::always_inline]] inline bool Fabric::find_room(const Node& node, std::uint32_t out, const Packet& packet,
                                                     std::uint32_t in_port, std::uint8_t in_lane, std::int64_t now,
                                                     std::int64_t frame) {
  BufferedState& state = *buffered_;
  const PortState& came = state.ports[in_port];
  if ((came.credited >> in_lane & 1U) != 0) return true;  // its sender has had a credit for it
  const bool pausing = (came.pausing >> in_lane & 1U) != 0;
  if (!pausing && state.queue_of(out, packet.lane).bytes + frame > state.queue_limit) return false;
  if (came.memory == nullptr) return true;
  SharedBuffer& buffer = *came.memory;
  const std::uint32_t queue = came.first_queue + in_lane;
  if (buffer.admit_easily(queue, frame, state.largest_frame)) [[likely]]
    return true;
  catch_up_all(local_of_[node.id], now);
  if (buffer.admit(queue, frame) == SharedBuffer::Place::none) return false;
  if (pausing && buffer.must_pause(queue, state.largest_frame)) stop_sender(in_port, in_lane, out, frame, now);
  return true;
}

[[gnu::always_inline]] inline void Fabric::enqueue(const Node& node, std::uint32_t out, Packet& packet,
                                                   std::uint32_t in_port, std::uint8_t in_lane, std::int64_t now) {
  BufferedState& state = *buffered_;
  OutputPort& port = outputs_[out];
  PortState& ps = state.ports[out];
  if (ps.deferred && ps.event_at < now) catch_up(out, now);
  bool bypass = is_bypass(packet.lane);
  WireTime size = wire_time(port, packet);
  std::int64_t frame = size.wire - wire_overhead_;
  while (state.finite && !bypass && !find_room(node, out, packet, in_port, in_lane, now, frame)) [[unlikely]] {
      if (!parameters_.fabric.trimming || packet.kind != PacketKind::data || packet.payload == 0)
        return drop(out, packet);
      trim(out, packet);
      bypass = is_bypass(packet.lane);
      size = wire_time(port, packet);
      frame = size.wire - wire_overhead_;
    }
  if (sampling_ != 0 && now >= port.next_sample) flush_samples(port, now, queued_bytes(out));
  const bool may_pass = port.free_at <= now && (ps.occupied | ps.tell_pause | ps.tell_credit) == 0 &&
                        (ps.blocked >> packet.lane & 1U) == 0;
  // What finds the port free and nobody waiting needs no queue.
  if (may_pass && takes_credit(out, packet.lane, frame, now)) {
    if (marks_passing_) mark(out, packet, 0, now, now);
    launch(out, now, packet, size);
    if (!bypass) give_room(in_port, in_lane, frame, now);
    return;
  }
  ClassQueue& queue = state.queue_of(out, packet.lane);
  if (marks_at_arrival_) mark(out, packet, queue.bytes, now, now);
  packet.time = now;
  if (packet.kind == PacketKind::data && (packet.flags & packet_last) != 0)
    messages_[packet.message].pause_mark = paused_time(out, packet.lane, now);
  note_depth(out, packet.lane, now);
  QueuedPacket& waiting = queue.queue.extend(state.blocks);
  waiting.packet = packet;
  waiting.in_port = bypass ? no_in_port : in_port;
  waiting.frame = static_cast<std::uint32_t>(frame) | std::uint32_t{in_lane} << 24;
  queue.bytes += frame;
  queue.peak = std::max(queue.peak, queue.bytes);
  ps.occupied |= 1U << packet.lane;
  ps.queue_ps += size.busy;
  if (state.reports.slots > 0) queue_changed(out, now);
  if (watches_credits_ && !bypass) note_credit_taken(in_port, in_lane, out, frame, now);
  port.peak_backlog = std::max(port.peak_backlog, port_load(out, now));
  if (port.free_at <= now)
    kick(out, now);
  else
    look_again(out, port.free_at);
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

void Fabric::mark_beyond_floor(std::uint32_t port, Packet& packet, std::int64_t queue, std::int64_t came,
                               std::int64_t now) {
  BufferedState& state = *buffered_;
  const bool frame = packet.kind == PacketKind::frame;
  if (packet.kind != PacketKind::data && !(frame && (packet.flags & packet_ask) != 0)) return;
  const std::uint64_t flow = std::uint64_t{packet.source} << 32 | packet.queue_pair;
  const MarkingDraw draw{seed_, outputs_[port].directed_link, flow, packet.psn, outputs_[port].packets};
  QueueMarker& marker = *state.markers[port * state.plan.count + packet.lane];
  if (!marker.marks({Time::from_ps(now), Time::from_ps(now - came), Bytes(queue), draw})) return;
  packet.flags |= packet_ecn;
  if (frame) frames_->mark(packet.message);
  ++state.queue_of(port, packet.lane).marked;
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

std::int64_t Fabric::frame_bytes(const Packet& packet) const { return wire_of(packet) - wire_overhead_; }

// Of a packet that is neither full nor of the usual control traffic.
Fabric::WireTime Fabric::odd_wire_time(const OutputPort& port, const Packet& packet) const {
  const std::int64_t wire = wire_of(packet);
  return {wire, odd_time(port, packet, wire)};
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
[[gnu::always_inline]] inline bool Fabric::send_next(std::uint32_t port_index, std::int64_t now) {
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
      if (competes(ready, lane)) state.schedulers[port_index]->sends(lane, Bytes(frame));
      leave_queue(port_index, lane, now);
      return true;
    }
    ready &= ~(1U << lane);
  }
  return false;
}

// Something may be there to be sent: now, or when the port is free.
void Fabric::kick(std::uint32_t port_index, std::int64_t now) {
  if (outputs_[port_index].free_at <= now && !send_next(port_index, now)) return;
  if (has_work(port_index)) look_again(port_index, outputs_[port_index].free_at);
}

// What the port has sent before a time.
void Fabric::catch_up(std::uint32_t port_index, std::int64_t before) {
  PortState& ps = buffered_->ports[port_index];
  while (ps.deferred && ps.event_at < before) {
    const std::int64_t now = std::exchange(ps.event_at, never);
    now_ = std::max(now_, now);
    ++events_;
    if (outputs_[port_index].free_at <= now && !send_next(port_index, now)) continue;
    if (has_work(port_index)) look_again(port_index, outputs_[port_index].free_at);
  }
}

void Fabric::receive_adaptively(const Node& node, const Arrival& came) {
  Packet& packet = *came.packet;
  const std::uint8_t in_lane = packet.lane;
  const std::uint16_t route = route_now(node, came.port, packet, came.time);
  if (route == RoutingAlgorithm::no_route) {
    if ((buffered_->ports[came.port].credited >> in_lane & 1U) != 0)
      give_room(came.port, in_lane, frame_bytes(packet), came.time);
    return drop(came.port, packet);
  }
  enqueue(node, node.first_port + route, packet, came.port, in_lane, came.time);
}

// A switch: arrivals in the order of time, and events before each.
void Fabric::run_queues(std::uint32_t local, std::int64_t end) {
  BufferedState& state = *buffered_;
  const Node& node = nodes_[local];
  const EventHeap& events = state.events[local];
  DeferredPorts& deferred = state.deferred[local];
  deferred.on = defers_ && deferred.stopped == 0;
  if (!routes_one_by_one_) route_arrivals(node);
  const std::size_t count = arrivals_.size();
  for (std::size_t i = 0; i < count; ++i) {
    const Arrival& came = arrivals_[i];
    if (!events.empty() && events.time() < came.time) [[unlikely]]
      run_events(local, came.time);
    if (routes_one_by_one_)
      receive_adaptively(node, came);
    else
      enqueue(node, node.first_port + routes_[i], *came.packet, came.port, came.packet->lane, came.time);
  }
  events_ += count;
  if (count > 0) now_ = std::max(now_, arrivals_[count - 1].time);
  if (!events.empty() && events.time() < end) run_events(local, end);
  if (!deferred.ports.empty()) run_deferred(local, end);
}

// Of classes that share the link.
std::uint32_t Fabric::choose_sharing(std::uint32_t port_index, std::uint32_t ready) {
  BufferedState& state = *buffered_;
  ReadyClasses classes;
  classes.lanes = ready & state.plan.shared;
  const bool of_host = state.ports[port_index].of_host;
  for (std::uint32_t rest = classes.lanes; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(rest));
    classes.frame[lane] = of_host ? Bytes(1) : Bytes(state.queue_of(port_index, lane).queue.front().frame & 0xffffffU);
  }
  tell_emptied(port_index);
  return state.schedulers[port_index]->choose(classes);
}

void Fabric::tell_emptied(std::uint32_t port_index) {
  PortState& ps = buffered_->ports[port_index];
  if (ps.emptied != 0) buffered_->schedulers[port_index]->emptied(ps.emptied);
  ps.emptied = 0;
}

// What launch() does where telemetry, taps, faults or ns-3 have a part in it.
void Fabric::launch_watched(std::uint32_t port_index, std::int64_t now, Packet& packet, WireTime size) {
  OutputPort& port = outputs_[port_index];
  if (packet.kind == PacketKind::data && buffered_->services.telemetry) record_hop(port_index, packet, now);
  count_departure(port, port_index, now, packet, size);
  if (port.tapped)
    for (const auto& tap : taps_[port_index]) tap->transmitted(Time::from_ps(now), packet);
  if (has_faults_ && link_loses(port_index, now, port.free_at, size.wire)) {
    ++buffered_->ports[port_index].lost;
    give_back_credit(port_index, packet.lane, size.wire - wire_overhead_);
    return forget(packet);
  }
  const std::int64_t arrival = arrival_of(port, port_index, now, size);
  if (packet.kind == PacketKind::frame && (port.peer_port & OutputPort::remote) == 0)
    hand_up(port.peer_port, packet, arrival);
  send_on(port, packet, arrival);
}

// When the packet came that has waited longest at a port, of those at the heads of its queues.
std::int64_t Fabric::oldest_wait(std::uint32_t port_index, std::int64_t now) const {
  std::int64_t oldest = now;
  for (std::uint32_t lanes = buffered_->ports[port_index].occupied; lanes != 0; lanes &= lanes - 1)
    oldest = std::min(
        oldest,
        buffered_->queue_of(port_index, static_cast<std::uint32_t>(std::countr_zero(lanes))).queue.front().packet.time);
  return oldest;
}

void Fabric::record_hop(std::uint32_t port_index, Packet& packet, std::int64_t now) {
  std::uint32_t& slot = (packet.flags & packet_last) != 0 ? messages_[packet.message].telemetry : packet.message;
  if (slot == no_slot) {
    if ((packet.flags & packet_trimmed) != 0) return;
    slot = buffered_->telemetry.add();
  }
  const OutputPort& port = outputs_[port_index];
  buffered_->telemetry[slot].add({now, buffered_->wire_bytes(port_index, wire_overhead_), queued_bytes(port_index),
                                  port.rate_bps, port.directed_link});
}

}  // namespace weft
