// SPDX-License-Identifier: GPL-2.0-only
#include "fabric/frames/frame_table.hpp"
#include "fabric/queued/queued_model.hpp"

namespace weft {

void PacketMarking::build() {
  QueuedState& state = q_.state;
  const MarkingDiscipline& marking = *net_.parameters.fabric.ecn.marking;
  state.markers.resize(net_.outputs.size() * state.plan.count);
  q_.state.marks_at_departure = marking.at_departure();
  q_.state.marks_at_arrival = !q_.state.marks_at_departure;
  for (const PortId p : net_.nodes.ports()) {
    const NodeId node = net_.nodes.all[net_.nodes.of_port[p]].id;
    if (state.ports[p].of_host || net_.topology.graph.node(node).in_server) continue;
    const auto rate = net_.outputs[p].rate;
    const MarkedPort port{rate,
                          net_.parameters.congestion_control->default_marking(rate, q_.build.longest_round_trip()),
                          state.largest_frame, q_.build.longest_round_trip(),
                          mix64(net_.seed ^ 0xec11U ^ mix64(std::uint64_t{net_.outputs[p].directed_link} + 1))};
    const Bytes floor = marking.floor(port);
    q_.state.marks_passing |= floor < Bytes();
    for (LaneId lane; lane < state.plan.end(); ++lane) {
      state.queue_of(p, lane).mark_floor = floor;
      state.markers[state.queue_number(p, lane)] = marking.make(port);
    }
  }
}

void PacketMarking::mark_beyond_floor(PortId port, Packet& packet, Bytes queue, Time came, Time now) {
  QueuedState& state = q_.state;
  const bool frame = packet.kind == PacketKind::frame;
  if (packet.kind != PacketKind::data && !(frame && (packet.flags & packet_ask) != 0)) return;
  const std::uint64_t flow = std::uint64_t{packet.source().value()} << 32 | packet.queue_pair;
  const MarkingDraw draw{flow, packet.psn, net_.outputs[port].packets};
  QueueMarker& marker = *state.markers[state.queue_number(port, lane_of(packet))];
  if (!marker.marks({now, now - came, queue, draw})) return;
  packet.flags |= packet_ecn;
  if (frame) q_.frames.table->mark(packet.message);
  ++state.queue_of(port, lane_of(packet)).marked;
}

}  // namespace weft
