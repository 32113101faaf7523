// SPDX-License-Identifier: GPL-2.0-only
// The lean packet: what travels on the hot path instead of an ns3::Packet.
#pragma once

#include <cstdint>

namespace weft {

enum class PacketKind : std::uint8_t {
  data,    ///< part of a message: RoCEv2 SEND/WRITE
  ack,     ///< acknowledges one data packet: AETH
  credit,  ///< a receiver's buffer slot is free again (NCCL's step credit); same size as an ACK, not acknowledged
};

/// Flags of a packet.
enum : std::uint8_t {
  packet_first = 1,   ///< first packet of its message
  packet_last = 2,    ///< last packet of its message: `message` names its descriptor
  packet_notify = 4,  ///< last packet of a message whose sender waits for completion; echoed in the ACK
};

/// 32 bytes: two share a cache line.
struct Packet {
  std::int64_t time = 0;          ///< arrival of the last bit at the next node, ps
  std::uint32_t source = 0;       ///< host node that made the packet
  std::uint32_t destination = 0;  ///< host node
  std::uint32_t queue_pair = 0;   ///< of the data's sender, in both directions
  std::uint32_t psn = 0;          ///< packet sequence number of the queue pair, modulo 2^32
  /// data with packet_last: slot of the message descriptor in this process; ack: payload bytes acknowledged
  std::uint32_t message = 0;
  std::uint16_t payload = 0;  ///< message bytes in this packet (0 for ack and credit)
  PacketKind kind = PacketKind::data;
  std::uint8_t flags = 0;
};
static_assert(sizeof(Packet) == 32);

}  // namespace weft
