// SPDX-License-Identifier: GPL-2.0-only
// Ethernet frames of ns-3's packets: their sizes, and what of their content decides where they go.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include <ns3/mac48-address.h>
#include <ns3/packet.h>
#include <ns3/ptr.h>

#include "units/bytes.hpp"
#include "units/id.hpp"

namespace weft {

// IEEE 802.3 clause 3.
constexpr Bytes ethernet_header = Bytes(14);
constexpr Bytes frame_check = Bytes(4);
constexpr Bytes min_frame = Bytes(64);

/// The frame that carries so many bytes of a packet, without preamble and gap.
constexpr Bytes frame_of_packet(Bytes packet) { return std::max(ethernet_header + packet + frame_check, min_frame); }

/// Addresses of hosts, the same as in RoCE frames: 02:00 and the number of the host, and 10.n.n.n.
ns3::Mac48Address host_mac_address(NodeId host);
std::optional<NodeId> host_of_mac(ns3::Mac48Address address);
constexpr std::uint32_t host_network = 0x0a00'0000U;  ///< 10.0.0.0, mask 255.0.0.0
constexpr std::uint32_t host_mask = 0xff00'0000U;

/// What a switch reads of a packet that begins with an IPv4 header (RFC 791).
struct IpFlow {
  bool valid = false;             ///< it does
  std::uint32_t destination = 0;  ///< IPv4 address
  std::uint32_t hash = 0;  ///< of addresses, protocol and, with TCP and UDP, ports: the same for a connection's packets
  std::uint8_t type_of_service = 0;
};
IpFlow read_ip_flow(const ns3::Packet& packet);

}  // namespace weft
