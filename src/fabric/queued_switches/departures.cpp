// SPDX-License-Identifier: GPL-2.0-only
#include <algorithm>

#include "fabric/frames/frame_table.hpp"
#include "fabric/probes/waits_by_job.hpp"
#include "fabric/queued/queued_hot.hpp"

namespace weft {

// The work of launch() that involves taps, faults, several jobs or ns-3.
void Departures::launch_watched(PortId port_index, Time now, Packet& packet, WireTime size) {
  OutputPort& port = net_.outputs[port_index];
  if (q_.state.services.telemetry) collect_telemetry(port_index, now, packet, size);
  count(port, q_.state.queue_of(port_index, lane_of(packet)), packet, size);
  occupy(port, now, size);
  if (net_.observers.several_jobs())
    net_.observers.waits()->sent(port_index, packet.source(), now, port.free_at, q_.state.oldest_wait(port_index, now));
  if (port.tapped) net_.observers.transmitted(port_index, now, packet);
  if (q_.outages.any() && q_.outages.loses(port_index, now, port.free_at, size.wire)) {
    ++q_.state.ports[port_index].lost;
    q_.control.give_back_credit(port_index, lane_of(packet), net_.sizes.frame_bytes(size));
    return forget(packet);
  }
  const Time arrival = arrival_of(port, q_.state.ports[port_index], now, size);
  if (packet.kind == PacketKind::frame && !port.leaves_process()) q_.frames.hand_up(port.peer(), packet, arrival);
  send_on(port, packet, arrival);
}

// Calls the rare case with the same arguments at the end, so that no register is saved for the common case.
void Departures::record_hop(PortId port_index, Packet& packet, Time now) {
  if ((packet.flags & packet_last) != 0 || packet.message == no_slot) [[unlikely]]
    return record_end(port_index, packet, now);
  record_in(packet.message, port_index, now);
}

inline void Departures::record_in(std::uint32_t& record, PortId port_index, Time now) {
  const PortState& ps = q_.state.ports[port_index];
  q_.state.telemetry.add_hop(record,
                             {now, ps.wire_bytes + ps.link_frame_bytes, q_.state.queued_bytes(port_index), ps.label});
}

// The first record of a packet, and those of the last packet of a message.
[[gnu::noinline]] void Departures::record_end(PortId port_index, Packet& packet, Time now) {
  std::uint32_t& record = (packet.flags & packet_last) != 0 ? net_.messages[packet.message].telemetry : packet.message;
  if (record == no_slot) {
    if ((packet.flags & packet_trimmed) != 0) return;
    record = q_.state.telemetry.add();
  }
  record_in(record, port_index, now);
}

void Departures::forget(const Packet& packet) {
  if (packet.kind == PacketKind::data) {
    const bool last = (packet.flags & packet_last) != 0;
    const std::uint32_t telemetry = last ? net_.messages[packet.message].telemetry : packet.message;
    if (q_.state.services.telemetry && telemetry != no_slot) q_.state.telemetry.release(telemetry);
    if (last) net_.messages.release(packet.message);
  } else if (packet.kind == PacketKind::ack || packet.kind == PacketKind::nack) {
    if (q_.state.services.telemetry && packet.message != no_slot) q_.state.telemetry.release(packet.message);
  } else if (packet.kind == PacketKind::frame) {
    q_.frames.table->drop(packet);
  }
}

// Over the cut --------------------------------------------------------------------------------------------------------

// Packets are read in place.
static_assert(sizeof(TelemetryRecord) % alignof(Packet) == 0);

void Departures::export_packet(const OutputPort& port, const Packet& packet, Time arrival) {
  export_rest(packet, net_.cut.write(port, packet, arrival));
}

// Records that travel with a packet.
void Departures::export_rest(const Packet& packet, Batch& batch) {
  if (packet.kind == PacketKind::frame) return q_.frames.table->export_to(batch, packet.message);
  const std::uint32_t telemetry = telemetry_of(packet);
  if (carries_descriptor(packet)) {
    batch.append(net_.messages[packet.message]);
    net_.messages.release(packet.message);
  }
  if (telemetry == no_slot) return;
  batch.append(q_.state.telemetry.take(telemetry));
}

// Slot of the telemetry that a packet has collected, or no_slot.
std::uint32_t Departures::telemetry_of(const Packet& packet) const {
  if (!q_.state.services.telemetry) return no_slot;
  if (packet.kind == PacketKind::ack) return packet.message;
  if (packet.kind != PacketKind::data) return no_slot;
  return (packet.flags & packet_last) != 0 ? net_.messages[packet.message].telemetry : packet.message;
}

void Departures::take_in(const CutEnd& end, Packet packet, Time arrival, std::span<const std::byte> batch,
                         std::size_t& at) {
  packet.time = arrival;
  if (packet.kind == PacketKind::pause || packet.kind == PacketKind::grant || packet.kind == PacketKind::report)
    return q_.events.add(end.node, q_.control.event_of(end.port, packet, arrival));
  bool has_telemetry = packet.message != no_slot;
  if (carries_descriptor(packet)) {
    packet.message = net_.messages.add(take_record<Message>(batch, at));
    has_telemetry = net_.messages[packet.message].telemetry != no_slot;
  }
  if (q_.state.services.telemetry && has_telemetry &&
      (packet.kind == PacketKind::data || packet.kind == PacketKind::ack)) {
    const std::uint32_t record = q_.state.telemetry.add(take_record<TelemetryRecord>(batch, at));
    (carries_descriptor(packet) ? net_.messages[packet.message].telemetry : packet.message) = record;
  }
  if (packet.kind == PacketKind::frame) packet.message = q_.frames.table->import_from(batch, at);
  if (net_.observers.observes_arrivals())
    net_.observers.arrived(end.port, packet, net_.links.latency_of(NodeId(net_.nodes.all[end.node].id)));
  if (packet.kind == PacketKind::frame) q_.frames.hand_up(end.port, packet, arrival);
  net_.push_local(end.port, packet, arrival, end.node);
}

}  // namespace weft
