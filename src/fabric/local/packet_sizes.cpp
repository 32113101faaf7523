// SPDX-License-Identifier: GPL-2.0-only
#include "fabric/local/packet_sizes.hpp"

namespace weft {

PacketSizes::PacketSizes(const Topology& topology, const NetworkParameters& parameters)
    : mtu(parameters.mtu),
      data_overhead(parameters.data_overhead().count()),
      control_wire(parameters.control_wire().count()),
      wire_overhead(parameters.wire_overhead.count()),
      window(parameters.acks ? parameters.window : Bytes::max()),
      topology_(topology),
      parameters_(parameters) {}

std::int64_t PacketSizes::wire_of(const Packet& packet) const {
  switch (packet.kind) {
    case PacketKind::data:
      return packet.payload + data_overhead;
    case PacketKind::frame:
      return packet.payload + wire_overhead;
    case PacketKind::pause:
      return NetworkParameters::pause_wire;
    case PacketKind::grant:
      return NetworkParameters::grant_wire;
    default:
      return control_wire;
  }
}

Time PacketSizes::odd_time(const OutputPort& port, const Packet& packet, std::int64_t wire) const {
  if (port.framed && packet.kind == PacketKind::data) [[unlikely]]
    wire = parameters_.data_wire(topology_.graph.link(LinkId(port.directed_link / 2)).framing, Bytes(packet.payload))
               .count();
  return serialization_time(Bytes(wire), Bandwidth::from_bps(port.rate_bps));
}

WireTime PacketSizes::odd_wire_time(const OutputPort& port, const Packet& packet) const {
  const std::int64_t wire = wire_of(packet);
  return {wire, odd_time(port, packet, wire)};
}

}  // namespace weft
