// SPDX-License-Identifier: GPL-2.0-only
// The lean packet: what travels on the hot path instead of an ns3::Packet.
#pragma once

#include <cstdint>

#include "units/id.hpp"
#include "units/time.hpp"

namespace weft {

enum class PacketKind : std::uint8_t {
  data,    ///< part of a message: RoCEv2 SEND/WRITE
  ack,     ///< acknowledges data packets: AETH
  credit,  ///< a receiver's buffer slot is free again (NCCL's step credit); same size as an ACK. psn: how many since
           ///< the connection was opened, if credits can be lost
  credit_ack,  ///< acknowledges all credits up to number psn, where they can be lost
  nack,        ///< a packet is missing: AETH with a NAK syndrome
  pull,        ///< the receiver wants more packets; psn: how many since the connection was opened
  cnp,         ///< congestion notification packet: the receiver of marked packets tells their sender
  frame,       ///< an Ethernet frame of other software (ns-3's IP stack), carried whole
  pause,       ///< priority flow control frame, from one end of a link to the other (IEEE 802.1Q clause 36)
  grant,       ///< flow-control credits of one virtual lane, from one end of a link to the other
  report,      ///< how long a queue is, from one end of a link to the other
};

/// Flags of a packet.
enum : std::uint8_t {
  packet_first = 1,     ///< first packet of its message
  packet_last = 2,      ///< last packet of its message: `message` names its descriptor
  packet_notify = 4,    ///< last packet of a message whose sender waits for completion; echoed in the ACK
  packet_ecn = 8,       ///< congestion experienced (RFC 3168); echoed in the ACK
  packet_trimmed = 16,  ///< a switch has cut off the payload
  packet_again = 32,    ///< sent before
  packet_ask = 64,      ///< its sender can send nothing more until it is acknowledged (IBTA vol. 1, 9.7.5.1: AckReq);
                        ///< of a frame: it may be marked (RFC 3168: ECT)
  packet_more = 128,    ///< its sender has something else to send; where receivers pull
  packet_returned = packet_more,  ///< of a pull: given back (Pull::returned)
};

/// 32 bytes: two share a cache line. Host numbers have 24 bits.
struct Packet {
  static constexpr std::uint32_t max_hosts = 1U << 24;

  Time time;                                  ///< arrival of the last bit at the next node
  std::uint32_t source_number : 24 = 0;       ///< of source()
  std::uint32_t route : 8 = 0;                ///< what routing remembers from hop to hop
  std::uint32_t destination_number : 24 = 0;  ///< of destination()
  std::uint32_t entropy : 8 = 0;  ///< which of the paths it takes, if the sender decides that; echoed in the ACK
  std::uint32_t queue_pair = 0;   ///< of the data's sender, in both directions
  std::uint32_t psn = 0;          ///< packet sequence number of the queue pair, modulo 2^32
  /// data with packet_last: slot of the message descriptor in this process, which then has the telemetry; other data:
  /// handle of its telemetry, if there is any; ack: payload bytes acknowledged; frame: slot of the ns-3 packet in this
  /// process; credit: late_to_bits() of its receiver
  std::uint32_t message = 0;
  std::uint16_t payload = 0;  ///< message bytes in this packet (0 for ack and credit); frame: bytes of the whole frame
  PacketKind kind : 4 = PacketKind::data;
  std::uint8_t lane : 4 = 0;  ///< priority (IEEE 802.1Q) or virtual lane, while queues are told apart
  std::uint8_t flags = 0;

  constexpr NodeId source() const { return NodeId(source_number); }            ///< the host that made the packet
  constexpr NodeId destination() const { return NodeId(destination_number); }  ///< a host
  constexpr void set_ends(NodeId from, NodeId to) {
    source_number = from.value() & (max_hosts - 1);
    destination_number = to.value() & (max_hosts - 1);
  }
};
static_assert(sizeof(Packet) == 32);

}  // namespace weft
