// SPDX-License-Identifier: GPL-2.0-only
#include "fabric/frames/ethernet.hpp"

#include "support/basics/random.hpp"

namespace weft {

ns3::Mac48Address host_mac_address(NodeId host) {
  std::uint8_t bytes[6] = {0x02, 0};
  for (int i = 0; i < 4; ++i) bytes[2 + i] = static_cast<std::uint8_t>(host.value() >> (24 - 8 * i));
  ns3::Mac48Address address;
  address.CopyFrom(bytes);
  return address;
}

std::optional<NodeId> host_of_mac(ns3::Mac48Address address) {
  std::uint8_t bytes[6];
  address.CopyTo(bytes);
  if (bytes[0] != 0x02 || bytes[1] != 0) return std::nullopt;
  std::uint32_t host = 0;
  for (int i = 2; i < 6; ++i) host = host << 8 | bytes[i];
  return NodeId(host);
}

IpFlow read_ip_flow(const ns3::Packet& packet) {
  std::uint8_t bytes[60 + 4];  // the longest header, and the ports after it
  const std::uint32_t count = packet.CopyData(bytes, sizeof(bytes));
  if (count < 20 || bytes[0] >> 4 != 4) return {};
  const auto word = [&bytes](std::uint32_t at) {
    return static_cast<std::uint32_t>(bytes[at]) << 24 | static_cast<std::uint32_t>(bytes[at + 1]) << 16 |
           static_cast<std::uint32_t>(bytes[at + 2]) << 8 | bytes[at + 3];
  };
  IpFlow flow;
  flow.valid = true;
  flow.type_of_service = bytes[1];
  flow.destination = word(16);
  const std::uint8_t protocol = bytes[9];
  const std::uint32_t header = (bytes[0] & 0x0fU) * 4;
  constexpr std::uint8_t tcp = 6;
  constexpr std::uint8_t udp = 17;
  // Only the first fragment has ports: a packet in fragments is hashed without.
  const bool fragment = ((bytes[6] & 0x3fU) | bytes[7]) != 0;
  const bool has_ports = (protocol == tcp || protocol == udp) && !fragment && count >= header + 4;
  const std::uint32_t ports = has_ports ? word(header) : 0;
  const std::uint64_t ends = static_cast<std::uint64_t>(word(12)) << 32 | flow.destination;
  flow.hash = static_cast<std::uint32_t>(mix64(mix64(ends) ^ (static_cast<std::uint64_t>(protocol) << 32 | ports)));
  return flow;
}

}  // namespace weft
