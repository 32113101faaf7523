// SPDX-License-Identifier: GPL-2.0-only
#include <algorithm>
#include <span>

#include "fabric/frames/frame_table.hpp"
#include "fabric/queued/queued_hot.hpp"

namespace weft {

// What comes in -------------------------------------------------------------------------------------------------------

// Takes memory for a frame, and stops its sender where that is necessary.
[[gnu::always_inline]] inline bool QueuedSwitch::find_room(const LocalNode& node, PortId out, const Packet& packet,
                                                           PortId in_port, LaneId in_lane, Time now, Bytes frame) {
  QueuedState& state = q_.state;
  const PortState& came = state.ports[in_port];
  if (in_lane.in(came.credited)) return true;  // its sender has had a credit for it
  const bool pausing = in_lane.in(came.pausing);
  if (!pausing && state.queue_of(out, lane_of(packet)).bytes + frame > state.queue_limit) return false;
  if (came.memory == nullptr) return true;
  SharedBuffer& buffer = *came.memory;
  const std::uint32_t queue = came.first_queue + in_lane.value();
  if (buffer.admit_easily(queue, frame)) [[likely]]
    return true;
  catch_up_all(net_.nodes.local_of[node.id], now);
  if (buffer.admit(queue, frame) == SharedBuffer::Place::none) return false;
  if (pausing && buffer.must_pause(queue)) q_.control.stop_sender(in_port, in_lane, out, frame, now);
  return true;
}

// A frame that leaves at once takes no memory where there is plenty. Its sender must not be stopped: it might continue
// then.
[[gnu::always_inline]] inline bool QueuedSwitch::needs_no_room(PortId in_port, LaneId lane, Bytes frame) const {
  const QueuedState& state = q_.state;
  if (!state.finite || state.is_bypass(lane)) return true;
  const PortState& came = state.ports[in_port];
  if (frame > state.queue_limit) return false;
  return came.memory == nullptr ||
         (came.stopped == 0 && came.memory->has_plenty(came.first_queue + lane.value(), frame));
}

// A packet that finds the port free and no other packet waiting needs no queue: most packets of plain ports. Returns
// false, with nothing changed, in all other cases.
[[gnu::always_inline]] inline bool QueuedSwitch::pass_at_once(PortId out, Packet& packet, PortId in_port, Time now) {
  const OutputPort& port = net_.outputs[out];
  const PortState& ps = q_.state.ports[out];
  if (port.free_at > now || ps.event_at < now || !ps.is_idle()) return false;
  const WireTime size = net_.sizes.wire_time(port, packet);
  if (!needs_no_room(in_port, lane_of(packet), net_.sizes.frame_bytes(size))) return false;
  ClassQueue& queue = ps.classes[packet.lane];
  if (q_.state.marks_passing) q_.marking.mark(out, queue, packet, Bytes(), now, now);
  q_.departures.launch_plain(out, queue, now, packet, size);
  return true;
}

[[gnu::noinline]] void QueuedSwitch::enqueue(const LocalNode& node, PortId out, Packet& packet, PortId in_port,
                                             LaneId in_lane, Time now) {
  const QueuedState& state = q_.state;
  // It defers, or has had its event.
  if (state.ports[out].event_at < now) q_.ports.catch_up(out, now);
  WireTime size = net_.sizes.wire_time(net_.outputs[out], packet);
  if (state.finite && !make_room(node, out, packet, in_port, in_lane, now, size)) return drop(out, packet);
  OutputPort& port = net_.outputs[out];
  if (net_.sampler.due(port, now)) net_.sampler.flush(port, now, state.sampled_bytes(port, out));
  if (!pass(out, packet, in_port, in_lane, now, size)) wait(out, packet, in_port, in_lane, now, size);
}

// If memory is short: trims the packet if that helps. Returns false if it has to be dropped.
[[gnu::always_inline]] inline bool QueuedSwitch::make_room(const LocalNode& node, PortId out, Packet& packet,
                                                           PortId in_port, LaneId in_lane, Time now, WireTime& size) {
  while (!q_.state.is_bypass(lane_of(packet)) &&
         !find_room(node, out, packet, in_port, in_lane, now, net_.sizes.frame_bytes(size)))
    [[unlikely]] {
      if (!net_.parameters.fabric.trimming || packet.kind != PacketKind::data || packet.payload == 0) return false;
      trim(out, packet);
      size = net_.sizes.wire_time(net_.outputs[out], packet);
    }
  return true;
}

// Through a free port at which nothing waits that may go.
[[gnu::always_inline]] inline bool QueuedSwitch::pass(PortId out, Packet& packet, PortId in_port, LaneId in_lane,
                                                      Time now, WireTime size) {
  const PortState& ps = q_.state.ports[out];
  const LaneId lane = lane_of(packet);
  const Bytes frame = net_.sizes.frame_bytes(size);
  if (net_.outputs[out].free_at > now || (ps.occupied | ps.tell_pause | ps.tell_credit) != 0 || lane.in(ps.blocked) ||
      !q_.control.takes_credit(out, lane, frame, now))
    return false;
  if (q_.state.marks_passing) q_.marking.mark(out, q_.state.queue_of(out, lane), packet, Bytes(), now, now);
  q_.departures.launch(out, now, packet, size);
  if (!q_.state.is_bypass(lane)) q_.control.give_room(in_port, in_lane, frame, now);
  return true;
}

// The packet's time is still that of its arrival here: `now`.
[[gnu::always_inline]] inline void QueuedSwitch::wait(PortId out, Packet& packet, PortId in_port, LaneId in_lane,
                                                      Time now, WireTime size) {
  QueuedState& state = q_.state;
  PortState& ps = state.ports[out];
  const LaneId lane = lane_of(packet);
  const Bytes frame = net_.sizes.frame_bytes(size);
  const bool bypass = state.is_bypass(lane);
  ClassQueue& queue = state.queue_of(out, lane);
  if (state.marks_at_arrival) q_.marking.mark(out, queue, packet, queue.bytes, now, now);
  if (packet.kind == PacketKind::data && (packet.flags & packet_last) != 0) [[unlikely]]
    net_.messages[packet.message].pause_mark = state.paused_time(out, lane, now);
  state.note_depth(out, lane, now);
  state.append(ps, lane, packet, bypass ? PortId::none() : in_port, in_lane, frame);
  ps.queue_time += size.busy;
  if (state.reports.slots > 0) q_.reporter.queue_changed(out, now);
  if (q_.control.watches_credits() && !bypass) q_.control.note_credit_taken(in_port, in_lane, out, frame, now);
  q_.ports.note_peak(out, now);
  const Time free_at = net_.outputs[out].free_at;
  if (free_at <= now)
    q_.ports.kick(out, now);
  else
    q_.ports.look_again(out, free_at);
}

void QueuedSwitch::drop(PortId out, const Packet& packet) {
  ++q_.state.dropped;
  ++q_.state.queue_of(out, lane_of(packet)).dropped;
  q_.departures.forget(packet);
}

// Handley et al., "Re-architecting datacenter networks and stacks for low latency and high performance", SIGCOMM 2017,
// doi:10.1145/3098822.3098825: the header continues with the control traffic.
void QueuedSwitch::trim(PortId out, Packet& packet) {
  ++q_.state.queue_of(out, lane_of(packet)).trimmed;
  q_.departures.forget(packet);
  packet.message = no_slot;
  packet.payload = 0;
  packet.flags = static_cast<std::uint8_t>((packet.flags & ~packet_last) | packet_trimmed);
  packet.lane = q_.state.plan.control.value() & 0xfU;
}

void QueuedSwitch::receive_adaptively(const LocalNode& node, const Arrival& came) {
  Packet& packet = *came.packet;
  const LaneId in_lane = lane_of(packet);
  const std::uint16_t route = q_.router.route_now(node, came.port, packet, came.time);
  if (route == RoutingAlgorithm::no_route) {
    if (in_lane.in(q_.state.ports[came.port].credited))
      q_.control.give_room(came.port, in_lane, net_.sizes.frame_bytes(packet), came.time);
    return drop(came.port, packet);
  }
  enqueue(node, node.first_port + route, packet, came.port, in_lane, came.time);
}

// An epoch ------------------------------------------------------------------------------------------------------------

void QueuedSwitch::run(std::uint32_t local, Time end) {
  QueuedState& state = q_.state;
  const EventHeap& events = state.events[local];
  DeferredPorts& deferred = state.deferred[local];
  deferred.on = state.defers && deferred.stopped == 0;
  const LocalNode& node = net_.nodes.all[local];
  const ArrivalOrder& collected = net_.collect(node, end);
  if (state.plain && deferred.on && (events.empty() || events.time() >= end) && has_room_for_all(node, collected)) {
    send_by_port(local, collected, end);
    if (!deferred.ports.empty()) run_deferred(local, end);
    return;
  }
  const std::span<const Arrival> arrivals = net_.in_order();
  send_arrivals(local, arrivals);
  if (!arrivals.empty()) net_.clock.happen(arrivals.back().time, arrivals.size());
  if (!events.empty() && events.time() < end) run_events(local, end);
  if (!deferred.ports.empty()) run_deferred(local, end);
}

// The same for the next nodes one by one, where no port works independently.
[[gnu::noinline]] void QueuedSwitch::fetch_queues_beyond(const LocalNode& node,
                                                         std::span<const std::uint16_t> routes) const {
  if (net_.cut.on_boundary(net_.clock.running)) return;  // links that leave the process have none here
  for (const std::uint16_t route : routes)
    __builtin_prefetch(&net_.inputs[net_.outputs[node.first_port + route].peer()], 1);
}

inline void QueuedSwitch::send_arrivals(std::uint32_t local, std::span<const Arrival> arrivals) {
  const LocalNode& node = net_.nodes.all[local];
  const EventHeap& events = q_.state.events[local];
  const bool one_by_one = q_.state.routes_one_by_one;
  const bool plain = q_.state.plain;
  const std::span<const std::uint16_t> routes =
      one_by_one ? std::span<const std::uint16_t>() : q_.router.route(node, arrivals);
  if (net_.fetches_ahead) fetch_queues_beyond(node, routes);
  for (std::size_t i = 0; i < arrivals.size(); ++i) {
    const Arrival& came = arrivals[i];
    if (!events.empty() && events.time() < came.time) [[unlikely]]
      run_events(local, came.time);
    if (one_by_one)
      receive_adaptively(node, came);
    else if (!plain || !pass_at_once(node.first_port + routes[i], *came.packet, came.port, came.time))
      enqueue(node, node.first_port + routes[i], *came.packet, came.port, lane_of(*came.packet), came.time);
  }
}

// Runs the events of a switch before a time.
void QueuedSwitch::run_events(std::uint32_t local, Time before) {
  const EventHeap& events = q_.state.events[local];
  while (!events.empty() && events.time() < before) {
    const Time now = events.time();
    if (events.kind() != NodeEvent::Kind::port_free) q_.ports.catch_up(events.port(), now);
    if (!q_.events.handle_first(local)) continue;
    net_.clock.happen(now);
  }
}

// Ports that defer ----------------------------------------------------------------------------------------------------

// The same of all ports of a switch, which then decides by the whole of its memory.
void QueuedSwitch::catch_up_all(std::uint32_t local, Time before) {
  for (const PortId port : q_.state.deferred[local].ports) q_.ports.catch_up(port, before);
}

// Runs the rest of the epoch; ports that have nothing more to send leave the list.
void QueuedSwitch::run_deferred(std::uint32_t local, Time end) {
  DeferredPorts& deferred = q_.state.deferred[local];
  std::size_t kept = 0;
  deferred.next = never;
  for (const PortId port : deferred.ports) {
    q_.ports.catch_up(port, end);
    PortState& ps = q_.state.ports[port];
    ps.deferred = ps.event_at != never;
    if (!ps.deferred) continue;
    deferred.next = std::min(deferred.next, ps.event_at);
    deferred.ports[kept++] = port;
  }
  deferred.ports.resize(kept);
}

void QueuedSwitch::defer(PortId port) {
  q_.state.ports[port].deferred = true;
  q_.state.deferred[net_.nodes.of_port[port]].ports.push_back(port);
}

void QueuedSwitch::stop_deferring(std::uint32_t local) {
  DeferredPorts& deferred = q_.state.deferred[local];
  if (!deferred.on) return;
  deferred.on = false;
  deferred.next = never;
  for (const PortId port : deferred.ports) {
    PortState& ps = q_.state.ports[port];
    ps.deferred = false;
    if (ps.event_at != never) q_.events.add(local, {ps.event_at, port, 0, NodeEvent::Kind::port_free, {}, 0});
  }
  deferred.ports.clear();
}

bool QueuedSwitch::may_defer() const {
  return net_.clock.drive == Drive::epochs && !q_.state.credits && q_.state.reports.slots == 0 &&
         !q_.state.routes_one_by_one && !q_.frames.table && !net_.sampler.on() && !net_.observers.has_taps() &&
         !net_.observers.several_jobs();
}

}  // namespace weft
