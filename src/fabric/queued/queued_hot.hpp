// SPDX-License-Identifier: GPL-2.0-only
// Code of every packet-hop that several files use: small members of the parts, to be inlined. Rare code is called.
#pragma once

#include <algorithm>
#include <bit>

#include "fabric/probes/waits_by_job.hpp"
#include "fabric/queued/queued_model.hpp"

namespace weft {

inline bool QueuedPorts::competes(std::uint32_t ready, LaneId lane) const {
  const std::uint32_t sharing = ready & q_.state.plan.shared;
  return lane.in(sharing) && !std::has_single_bit(sharing);
}

inline Time QueuedPorts::load(PortId port, Time now) const {
  return std::max(Time(), net_.outputs[port].free_at - now) + q_.state.ports[port].queue_time;
}

inline void QueuedPorts::note_peak(PortId port_index, Time now) {
  OutputPort& port = net_.outputs[port_index];
  if (q_.state.watches_departures && net_.rates.sends_at_old_rate(port, now)) [[unlikely]]
    return net_.rates.note_peak(port, now, q_.state.ports[port_index].queue_time);
  port.peak_backlog = std::max(port.peak_backlog, load(port_index, now));
}

// Strict priority, except among classes that share the link.
inline LaneId QueuedPorts::choose_lane(PortId port_index, std::uint32_t ready) {
  const LaneId first = LaneId::first_of(ready);
  return competes(ready, first) ? choose_sharing(port_index, ready) : first;
}

inline bool QueuedPorts::look_at(PortId port_index, Time now) {
  PortState& ps = q_.state.ports[port_index];
  if (ps.event_at != now) return false;
  ps.event_at = never;
  kick(port_index, now);
  return true;
}

inline void QueuedPorts::look_again(PortId port_index, Time time) {
  PortState& ps = q_.state.ports[port_index];
  if (ps.event_at <= time) return;
  ps.event_at = time;
  if (ps.deferred) return;
  if (ps.of_host && net_.nodes.of_port[port_index] == net_.clock.running) return;  // the host looks at its ports
  look_by_event(port_index, time);
}

inline Time Departures::arrival_of(const OutputPort& port, const PortState& ps, Time now, WireTime size) const {
  return now + std::min(size.busy, ps.header_time) + port.after;
}

inline void Departures::count(OutputPort& port, ClassQueue& queue, const Packet& packet, WireTime size) const {
  if (packet.kind == PacketKind::data) {
    ++port.data_packets;
    port.payload_bytes += Bytes(packet.payload);
  }
  ++port.packets;
  ++queue.packets;
  queue.frame_bytes += net_.sizes.frame_bytes(size);
}

inline void Departures::occupy(OutputPort& port, Time now, WireTime size) const {
  port.free_at = now + size.busy;
  port.busy += size.busy;
  port.peak_backlog = std::max(port.peak_backlog, size.busy);
}

inline void Departures::send_on(const OutputPort& port, const Packet& packet, Time arrival) {
  if (!port.leaves_process()) [[likely]]
    net_.push_local(port.peer(), packet, arrival, port.peer_node);
  else
    export_packet(port, packet, arrival);
}

inline void Departures::collect_telemetry(PortId port_index, Time now, Packet& packet, WireTime size) {
  if (packet.kind == PacketKind::data) record_hop(port_index, packet, now);
  q_.state.ports[port_index].wire_bytes += size.wire;
}

[[gnu::always_inline]] inline void Departures::launch(PortId port_index, Time now, Packet& packet, WireTime size) {
  if (!q_.state.plain) [[unlikely]]
    return launch_watched(port_index, now, packet, size);
  launch_plain(port_index, q_.state.queue_of(port_index, lane_of(packet)), now, packet, size);
}

[[gnu::always_inline]] inline void Departures::launch_plain(PortId port_index, ClassQueue& queue, Time now,
                                                            Packet& packet, WireTime size) {
  OutputPort& port = net_.outputs[port_index];
  if (q_.state.services.telemetry) [[unlikely]]
    collect_telemetry(port_index, now, packet, size);
  count(port, queue, packet, size);
  occupy(port, now, size);
  send_on(port, packet, arrival_of(port, q_.state.ports[port_index], now, size));
}

inline void PacketMarking::mark(PortId port, const ClassQueue& queue, Packet& packet, Bytes bytes, Time came,
                                Time now) {
  if (bytes > queue.mark_floor) [[unlikely]]
    mark_beyond_floor(port, packet, bytes, came, now);
}

inline bool LinkControl::takes_credit(PortId port_index, LaneId lane, Bytes frame, Time now) {
  return !lane.in(q_.state.ports[port_index].credited) || finds_credit(port_index, lane, frame, now);
}

[[gnu::always_inline]] inline void LinkControl::give_room(PortId in_port, LaneId lane, Bytes frame, Time now) {
  QueuedState& state = q_.state;
  const PortState& ps = state.ports[in_port];
  if (lane.in(ps.credited)) return give_credit(in_port, lane, frame, now);
  if (ps.memory == nullptr) return;
  const std::uint32_t queue = ps.first_queue + lane.value();
  ps.memory->release(queue, frame);
  if (lane.in(ps.stopped) && ps.memory->may_resume(queue)) let_sender_resume(in_port, lane, now);
}

[[gnu::always_inline]] inline void QueuedPorts::leave_queue(PortId port_index, LaneId lane, Time now) {
  QueuedState& state = q_.state;
  OutputPort& port = net_.outputs[port_index];
  PortState& ps = state.ports[port_index];
  ClassQueue& queue = state.queue_of(port_index, lane);
  q_.watch_queue(port_index, lane, now);
  QueuedPacket& sent = state.take_first(ps, lane);
  const Bytes frame = sent.frame_bytes();
  if (state.reports.slots > 0) q_.reporter.queue_changed(port_index, now);
  const WireTime size = net_.sizes.wire_time(port, sent.packet);
  const Time came = sent.packet.time;
  ps.queue_time -= size.busy;
  port.add_wait(now - came, size.wire, size.busy);
  if (sent.packet.kind == PacketKind::data && (sent.packet.flags & packet_last) != 0) [[unlikely]]
    tell_message(port_index, lane, sent.packet, now);
  if (state.marks_at_departure) q_.marking.mark(port_index, queue, sent.packet, queue.bytes, came, now);
  q_.departures.launch(port_index, now, sent.packet, size);
  if (sent.in_port == PortId::none()) return;
  const LaneId in_lane = sent.in_lane();
  q_.control.give_room(sent.in_port, in_lane, frame, now);
  if (q_.control.watches_credits()) q_.control.note_credit_given(sent.in_port, in_lane, frame, now);
}

// Before a queue changes: series, and how long it was how deep.
inline void QueuedModel::watch_queue(PortId port_index, LaneId lane, Time now) {
  OutputPort& port = net.outputs[port_index];
  if (net.sampler.due(port, now)) net.sampler.flush(port, now, state.sampled_bytes(port, port_index));
  state.note_depth(port_index, lane, now);
}

inline bool NodeEvents::handle_first(std::uint32_t local) {
  EventHeap& events = q_.state.events[local];
  events.take();
  const bool happened = handle(local, events.front());
  events.done();
  return happened;
}

inline PortId RdmaNic::next_port(const LocalNode& node) const {
  PortId first = node.first_port;
  if (node.ports == 1) [[likely]]
    return first;
  for (PortId p = first + 1; p < node.end_port(); ++p)
    if (q_.state.ports[p].event_at < q_.state.ports[first].event_at) first = p;
  return first;
}

}  // namespace weft
