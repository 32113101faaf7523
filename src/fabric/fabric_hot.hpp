// SPDX-License-Identifier: GPL-2.0-only
// What every packet-hop does in more than one file: small members of Fabric, to be inlined. What is rare is called.
#pragma once

#include <algorithm>
#include <bit>

#include "fabric/buffered_state.hpp"
#include "fabric/fabric.hpp"
#include "fabric/waits_by_job.hpp"

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
inline void Fabric::give_room(std::uint32_t in_port, std::uint8_t lane, std::int64_t frame, std::int64_t now) {
  BufferedState& state = *buffered_;
  const PortState& ps = state.ports[in_port];
  if ((ps.credited >> lane & 1U) != 0) return give_credit(in_port, lane, frame, now);
  if (!state.limited) return;
  const std::uint32_t local = local_of_port_[in_port];
  SharedBuffer& buffer = state.buffers[state.buffer_of[local]];
  const std::uint32_t queue = (in_port - nodes_[local].first_port) * state.plan.count + lane;
  buffer.release(queue, frame);
  if ((ps.stopped >> lane & 1U) != 0 && buffer.may_resume(queue)) let_sender_resume(in_port, lane, now);
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
  buffered_->ports[port_index].wire_bytes += size.wire;
}

// The first bit leaves now.
inline void Fabric::launch(std::uint32_t port_index, std::int64_t now, Packet& packet, WireTime size) {
  OutputPort& port = outputs_[port_index];
  if (watches_departures_ || port.tapped || packet.kind == PacketKind::frame) [[unlikely]]
    return launch_watched(port_index, now, packet, size);
  count_departure(port, port_index, now, packet, size);
  send_on(port, packet, arrival_of(port, port_index, now, size));
}

}  // namespace weft
