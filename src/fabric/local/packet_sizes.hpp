// SPDX-License-Identifier: GPL-2.0-only
// Bytes of packets on the wire, and how long they take there.
#pragma once

#include <cstdint>

#include "fabric/packet/port.hpp"
#include "fabric/parameters/network_parameters.hpp"
#include "graph/topology/topology_builder.hpp"
#include "transport/messages/packet.hpp"

namespace weft {

/// Bytes of a packet on the wire, and how long they take there.
struct WireTime {
  Bytes wire;
  Time busy;
};

/// Sizes of the packets of a network, in bytes.
class PacketSizes {
 public:
  PacketSizes(const Topology& topology, const NetworkParameters& parameters);

  Bytes mtu;
  Bytes data_overhead;  ///< wire bytes of a data packet beyond its payload
  Bytes control_wire;   ///< wire bytes of an ACK or credit
  Bytes wire_overhead;  ///< preamble and gap of a frame

  /// Payload that a queue pair whose full packets have `full` bytes may have unacknowledged: inside servers as many
  /// packets as elsewhere, if they are larger. Without ACKs as much as there is.
  Bytes window(Bytes full) const { return full == mtu ? window_ : server_window_; }
  /// Of any packet, where links have no framing of their own.
  Bytes wire_of(const Packet& packet) const;
  /// Without preamble and gap.
  Bytes frame_bytes(const Packet& packet) const { return wire_of(packet) - wire_overhead; }
  Bytes frame_bytes(const WireTime& size) const { return size.wire - wire_overhead; }
  WireTime wire_time(const OutputPort& port, const Packet& packet) const {
    if (packet.kind == PacketKind::data) {
      if (Bytes(packet.payload) == mtu) [[likely]]
        return {mtu + data_overhead, port.full_packet};
    } else if (packet.kind <= PacketKind::cnp) {
      return {control_wire, control_time(port, packet)};
    }
    return odd_wire_time(port, packet);
  }
  /// Of an ACK or credit.
  Time control_time(const OutputPort& port, const Packet& packet) const {
    if (answers_differ_ && port.framed) [[unlikely]]
      return answer_time(port, packet);
    return port.control_packet;
  }
  /// Time of a data packet that is not full, or of a frame: `wire` bytes where links have no framing of their own.
  Time odd_time(const OutputPort& port, const Packet& packet, Bytes wire) const;

 private:
  Time answer_time(const OutputPort& port, const Packet& packet) const;
  WireTime odd_wire_time(const OutputPort& port, const Packet& packet) const;

  Bytes window_;
  Bytes server_window_;
  bool answers_differ_;  // inside servers they are those of other packets
  const Topology& topology_;
  const NetworkParameters& parameters_;
};

}  // namespace weft
