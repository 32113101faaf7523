// SPDX-License-Identifier: GPL-2.0-only
// What every packet-hop does in more than one file: small members of Fabric, to be inlined. What is rare is called.
#pragma once

#include <algorithm>
#include <bit>

#include "fabric/network/buffered_state.hpp"
#include "fabric/network/fabric.hpp"
#include "fabric/probes/waits_by_job.hpp"

namespace weft {

// A call with the same arguments at the end, so that no register is saved for the common case.
inline void Fabric::push_local(std::uint32_t port_index, const Packet& packet, std::int64_t arrival,
                               std::uint32_t node) {
  PacketQueue& queue = inputs_[port_index];
  if (queue.needs_block()) [[unlikely]]
    return push_into_new_block(port_index, packet, arrival, node);
  const bool first = queue.empty();
  queue.push(packet, arrival);
  if (first) heads_[port_index] = arrival;
  if (drive_ == Drive::ns3_events) [[unlikely]]
    schedule_arrival(node, arrival);
  else if (first)  // a later packet of a link does not change when its node acts next
    calendar_.schedule(node, window_number(arrival));
}

inline void Fabric::send_on(OutputPort& port, const Packet& packet, std::int64_t arrival) {
  if ((port.peer_port & OutputPort::remote) == 0) [[likely]]
    push_local(port.peer_port, packet, arrival, port.peer_node);
  else
    export_packet(port, packet, arrival);
}

/// Control traffic takes part in no limit, so that nothing that is lossless can depend on what is not.
inline bool Fabric::is_bypass(std::uint32_t lane) const { return (buffered_->bypass >> lane & 1U) != 0; }

/// The class shares the link, and another one that does is ready, too.
inline bool Fabric::competes(std::uint32_t ready, std::uint32_t lane) const {
  const std::uint32_t sharing = ready & buffered_->plan.shared;
  return (sharing >> lane & 1U) != 0 && !std::has_single_bit(sharing);
}

// Of a data packet that is not full, or of a frame: `wire` bytes where links have no framing of their own.
inline std::int64_t Fabric::odd_time(const OutputPort& port, const Packet& packet, std::int64_t wire) const {
  if (port.framed && packet.kind == PacketKind::data) [[unlikely]]
    wire = parameters_.data_wire(topology_.graph.link(LinkId(port.directed_link / 2)).framing, Bytes(packet.payload))
               .count();
  return serialization_time(Bytes(wire), Bandwidth::from_bps(port.rate_bps)).ps();
}

inline Fabric::WireTime Fabric::wire_time(const OutputPort& port, const Packet& packet) const {
  if (packet.kind == PacketKind::data) {
    if (packet.payload == mtu_) [[likely]]
      return {mtu_ + data_overhead_, port.full_packet};
  } else if (packet.kind <= PacketKind::cnp) {
    return {control_wire_, port.control_packet};
  }
  return odd_wire_time(port, packet);
}

// Room at the other end for a frame of `lane`, taken; or the lane waits for it.
inline bool Fabric::takes_credit(std::uint32_t port_index, std::uint32_t lane, std::int64_t frame, std::int64_t now) {
  return (buffered_->ports[port_index].credited >> lane & 1U) == 0 || finds_credit(port_index, lane, frame, now);
}

// A frame that came through `in_port` has left the memory of this node.
[[gnu::always_inline]] inline void Fabric::give_room(std::uint32_t in_port, std::uint8_t lane, std::int64_t frame,
                                                     std::int64_t now) {
  BufferedState& state = *buffered_;
  const PortState& ps = state.ports[in_port];
  if ((ps.credited >> lane & 1U) != 0) return give_credit(in_port, lane, frame, now);
  if (ps.memory == nullptr) return;
  const std::uint32_t queue = ps.first_queue + lane;
  ps.memory->release(queue, frame);
  if ((ps.stopped >> lane & 1U) != 0 && ps.memory->may_resume(queue)) let_sender_resume(in_port, lane, now);
}

// Time until everything has left that is there now.
inline std::int64_t Fabric::port_load(std::uint32_t port, std::int64_t now) const {
  return std::max<std::int64_t>(0, outputs_[port].free_at - now) + buffered_->ports[port].queue_ps;
}

// Strict priority, except among classes that share the link.
inline std::uint32_t Fabric::choose_lane(std::uint32_t port_index, std::uint32_t ready) {
  const auto first = static_cast<std::uint32_t>(std::countr_zero(ready));
  return competes(ready, first) ? choose_sharing(port_index, ready) : first;
}

// Sees to it that the port is looked at no later than at `time`.
inline void Fabric::look_again(std::uint32_t port_index, std::int64_t time) {
  PortState& ps = buffered_->ports[port_index];
  if (ps.event_at <= time) return;
  ps.event_at = time;
  if (ps.deferred) return;
  look_by_event(port_index, time);
}

// When the other end can do something with a packet that leaves now.
inline std::int64_t Fabric::arrival_of(const OutputPort& port, std::uint32_t port_index, std::int64_t now,
                                       WireTime size) const {
  const std::int64_t header_time = buffered_->ports[port_index].header_time;
  return now + (header_time > 0 ? std::min(size.busy, header_time) : size.busy) + port.after;
}

inline void Fabric::count_departure(OutputPort& port, std::uint32_t port_index, std::int64_t now, const Packet& packet,
                                    WireTime size) {
  if (packet.kind == PacketKind::data) {
    ++port.data_packets;
    port.payload_bytes += packet.payload;
  }
  ++port.packets;
  ClassQueue& queue = buffered_->queue_of(port_index, packet.lane);
  ++queue.packets;
  queue.frame_bytes += size.wire - wire_overhead_;
  port.free_at = now + size.busy;
  if (several_jobs_) [[unlikely]]
    waits_by_job_->sent(port_index, packet.source, now, port.free_at, oldest_wait(port_index, now));
  port.busy += size.busy;
  port.peak_backlog = std::max(port.peak_backlog, size.busy);
}

// The first bit leaves now.
[[gnu::always_inline]] inline void Fabric::launch(std::uint32_t port_index, std::int64_t now, Packet& packet,
                                                  WireTime size) {
  OutputPort& port = outputs_[port_index];
  if (watches_departures_ || port.tapped || packet.kind == PacketKind::frame) [[unlikely]]
    return launch_watched(port_index, now, packet, size);
  count_departure(port, port_index, now, packet, size);
  send_on(port, packet, arrival_of(port, port_index, now, size));
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

// `came`: to its queue.
inline void Fabric::mark(std::uint32_t port, Packet& packet, std::int64_t queue, std::int64_t came, std::int64_t now) {
  if (queue > buffered_->queue_of(port, packet.lane).mark_floor) mark_beyond_floor(port, packet, queue, came, now);
}

[[gnu::always_inline]] inline void Fabric::leave_queue(std::uint32_t port_index, std::uint32_t lane, std::int64_t now) {
  BufferedState& state = *buffered_;
  OutputPort& port = outputs_[port_index];
  PortState& ps = state.ports[port_index];
  if (sampling_ != 0 && now >= port.next_sample) flush_samples(port, now, queued_bytes(port_index));
  ClassQueue& queue = state.queue_of(port_index, lane);
  QueuedPacket& sent = queue.queue.front();  // stays where it is until the node is done
  queue.queue.pop(state.blocks);
  note_depth(port_index, lane, now);
  const auto frame = static_cast<std::int64_t>(sent.frame & 0xffffffU);
  queue.bytes -= frame;
  if (state.reports.slots > 0) queue_changed(port_index, now);
  if (queue.queue.empty()) {
    ps.occupied &= ~(1U << lane);
    ps.emptied |= static_cast<std::uint8_t>(1U << lane);
  }
  const WireTime size = wire_time(port, sent.packet);
  const std::int64_t wait = now - sent.packet.time;
  ps.queue_ps -= size.busy;
  port.waited +=
      static_cast<unsigned __int128>(static_cast<std::uint64_t>(wait)) * static_cast<std::uint64_t>(size.wire);
  if (sent.packet.kind == PacketKind::data && (sent.packet.flags & packet_last) != 0) {
    Message& message = messages_[sent.packet.message];
    message.add_wait(port.directed_link, wait);
    if (waits_by_job_) waits_by_job_->waited(port_index, sent.packet.source, sent.packet.time, now);
    const std::int64_t paused = paused_time(port_index, lane, now) - message.pause_mark;
    message.paused += paused;
    if (!ps.of_host) message.paused_in_network += paused;
  }
  if (marks_at_departure_) mark(port_index, sent.packet, queue.bytes, sent.packet.time, now);
  launch(port_index, now, sent.packet, size);
  if (sent.in_port == no_in_port) return;
  const auto in_lane = static_cast<std::uint8_t>(sent.frame >> 24);
  give_room(sent.in_port, in_lane, frame, now);
  if (watches_credits_) note_credit_given(sent.in_port, in_lane, frame, now);
}

}  // namespace weft
