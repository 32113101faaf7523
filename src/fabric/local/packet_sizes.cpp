// SPDX-License-Identifier: GPL-2.0-only
#include "fabric/local/packet_sizes.hpp"

namespace weft {

PacketSizes::PacketSizes(const Topology& topology, const NetworkParameters& parameters)
    : mtu(parameters.mtu),
      data_overhead(parameters.data_overhead()),
      control_wire(parameters.control_wire()),
      wire_overhead(parameters.wire_overhead),
      window_(parameters.acks ? parameters.window : Bytes::max()),
      server_window_(parameters.acks ? parameters.server_window() : Bytes::max()),
      answers_differ_(parameters.server_mtu.value_or(parameters.mtu) != parameters.mtu),
      topology_(topology),
      parameters_(parameters) {}

Bytes PacketSizes::wire_of(const Packet& packet) const {
  switch (packet.kind) {
    case PacketKind::data:
      return Bytes(packet.payload) + data_overhead;
    case PacketKind::frame:
      return Bytes(packet.payload) + wire_overhead;
    case PacketKind::pause:
      return NetworkParameters::pause_wire;
    case PacketKind::grant:
      return NetworkParameters::grant_wire;
    default:
      return control_wire;
  }
}

Time PacketSizes::odd_time(const OutputPort& port, const Packet& packet, Bytes wire) const {
  if (port.framed && packet.kind == PacketKind::data) [[unlikely]]
    wire = parameters_.data_wire(topology_.graph.link(LinkId(port.directed_link / 2)).framing, Bytes(packet.payload));
  return serialization_time(wire, port.rate);
}

// On such links it is the answers to the frames of the packet that it acknowledges.
Time PacketSizes::answer_time(const OutputPort& port, const Packet& packet) const {
  const ClusterGraph& graph = topology_.graph;
  const Bytes answered = parameters_.mtu_between(graph.node(packet.source()), graph.node(packet.destination()));
  const LinkFraming& framing = graph.link(LinkId(port.directed_link / 2)).framing;
  return serialization_time(parameters_.control_wire(framing, answered), port.rate);
}

WireTime PacketSizes::odd_wire_time(const OutputPort& port, const Packet& packet) const {
  const Bytes wire = wire_of(packet);
  return {wire, odd_time(port, packet, wire)};
}

}  // namespace weft
