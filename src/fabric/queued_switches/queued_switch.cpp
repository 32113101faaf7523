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
  if (!pausing && state.queue_of(out, lane_of(packet)).bytes + frame.count() > state.queue_limit) return false;
  if (came.memory == nullptr) return true;
  SharedBuffer& buffer = *came.memory;
  const std::uint32_t queue = came.first_queue + in_lane.value();
  if (buffer.admit_easily(queue, frame.count(), state.largest_frame)) [[likely]]
    return true;
  catch_up_all(net_.nodes.local_of[node.id], now);
  if (buffer.admit(queue, frame.count()) == SharedBuffer::Place::none) return false;
  if (pausing && buffer.must_pause(queue, state.largest_frame))
    q_.control.stop_sender(in_port, in_lane, out, frame, now);
  return true;
}

[[gnu::always_inline]] inline void QueuedSwitch::enqueue(const LocalNode& node, PortId out, Packet& packet,
                                                         PortId in_port, LaneId in_lane, Time now) {
  QueuedState& state = q_.state;
  OutputPort& port = net_.outputs[out];
  PortState& ps = state.ports[out];
  if (ps.deferred && ps.event_at < now) q_.ports.catch_up(out, now);
  bool bypass = state.is_bypass(lane_of(packet));
  WireTime size = net_.sizes.wire_time(port, packet);
  Bytes frame = net_.sizes.frame_bytes(size);
  while (state.finite && !bypass && !find_room(node, out, packet, in_port, in_lane, now, frame)) [[unlikely]] {
      if (!net_.parameters.fabric.trimming || packet.kind != PacketKind::data || packet.payload == 0)
        return drop(out, packet);
      trim(out, packet);
      bypass = state.is_bypass(lane_of(packet));
      size = net_.sizes.wire_time(port, packet);
      frame = net_.sizes.frame_bytes(size);
    }
  if (net_.sampler.due(port, now)) net_.sampler.flush(port, now, q_.state.sampled_bytes(port, out));
  const bool may_pass =
      port.free_at <= now && (ps.occupied | ps.tell_pause | ps.tell_credit) == 0 && !lane_of(packet).in(ps.blocked);
  // What finds the port free and nobody waiting needs no queue.
  if (may_pass && q_.control.takes_credit(out, lane_of(packet), frame, now)) {
    if (state.marks_passing) q_.marking.mark(out, packet, 0, now, now);
    q_.departures.launch(out, now, packet, size);
    if (!bypass) q_.control.give_room(in_port, in_lane, frame, now);
    return;
  }
  ClassQueue& queue = state.queue_of(out, lane_of(packet));
  if (state.marks_at_arrival) q_.marking.mark(out, packet, queue.bytes, now, now);
  packet.time = now.ps();
  if (packet.kind == PacketKind::data && (packet.flags & packet_last) != 0)
    net_.messages[packet.message].pause_mark = state.paused_time(out, lane_of(packet), now).ps();
  state.note_depth(out, lane_of(packet), now);
  QueuedPacket& waiting = queue.queue.extend(state.blocks);
  waiting.packet = packet;
  waiting.in_port = bypass ? PortId::none() : in_port;
  waiting.frame = QueuedPacket::framed(frame, in_lane);
  queue.bytes += frame.count();
  queue.peak = std::max(queue.peak, queue.bytes);
  ps.occupied |= lane_of(packet).bit();
  ps.queue_time += size.busy;
  if (state.reports.slots > 0) q_.reporter.queue_changed(out, now);
  if (q_.control.watches_credits() && !bypass) q_.control.note_credit_taken(in_port, in_lane, out, frame, now);
  q_.ports.note_peak(out, now);
  if (port.free_at <= now)
    q_.ports.kick(out, now);
  else
    q_.ports.look_again(out, port.free_at);
}

void QueuedSwitch::drop(PortId out, const Packet& packet) {
  ++q_.state.dropped;
  ++q_.state.queue_of(out, lane_of(packet)).dropped;
  q_.departures.forget(packet);
}

// Handley et al., "Re-architecting datacenter networks and stacks for low latency and high performance", SIGCOMM 2017,
// doi:10.1145/3098822.3098825: the header goes on with the control traffic.
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
  const std::uint16_t route = q_.router.route_now(node, came.port, packet, came.when());
  if (route == RoutingAlgorithm::no_route) {
    if (in_lane.in(q_.state.ports[came.port].credited))
      q_.control.give_room(came.port, in_lane, net_.sizes.frame_bytes(packet), came.when());
    return drop(came.port, packet);
  }
  enqueue(node, node.first_port + route, packet, came.port, in_lane, came.when());
}

// An epoch ------------------------------------------------------------------------------------------------------------

void QueuedSwitch::run(std::uint32_t local, Time end) {
  QueuedState& state = q_.state;
  const LocalNode& node = net_.nodes.all[local];
  const EventHeap& events = state.events[local];
  DeferredPorts& deferred = state.deferred[local];
  deferred.on = state.defers && deferred.stopped == 0;
  const std::span<const Arrival> arrivals = net_.gather(node, end);
  const bool one_by_one = state.routes_one_by_one;
  const std::span<const std::uint16_t> routes =
      one_by_one ? std::span<const std::uint16_t>() : q_.router.route(node, arrivals);
  const std::size_t count = arrivals.size();
  for (std::size_t i = 0; i < count; ++i) {
    const Arrival& came = arrivals[i];
    if (!events.empty() && events.time() < came.when()) [[unlikely]]
      run_events(local, came.when());
    if (one_by_one)
      receive_adaptively(node, came);
    else
      enqueue(node, node.first_port + routes[i], *came.packet, came.port, lane_of(*came.packet), came.when());
  }
  if (count > 0) net_.clock.happen(arrivals[count - 1].when(), count);
  if (!events.empty() && events.time() < end) run_events(local, end);
  if (!deferred.ports.empty()) run_deferred(local, end);
}

// Of a switch, those before a time.
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

// The rest of the epoch; ports that have nothing more to send leave the list.
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
