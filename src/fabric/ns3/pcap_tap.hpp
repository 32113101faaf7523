// SPDX-License-Identifier: GPL-2.0-only
// A port's packets as a pcap file with real RoCEv2 headers.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "fabric/probes/port_tap.hpp"

namespace weft {

class Fabric;

/// The frame of a packet as it stands on the wire, without preamble and frame check sequence: Ethernet II, IPv4
/// (ECT(0)), UDP to port 4791, InfiniBand base transport header, AETH on ACKs, zero payload, ICRC (0: not computed).
/// Layouts: IEEE 802.3, RFC 791, RFC 768, InfiniBand Architecture Specification vol. 1 release 1.4 sections 9.2, 9.3.5
/// and annex A17 (RoCEv2). Host n has the MAC address 02:00:nn:nn:nn:nn and the IPv4 address 10.n.n.n. Queue
/// pairs are numbered from 2, as 0 and 1 are reserved. A header configured beyond these 58 bytes is not shown.
std::vector<std::uint8_t> roce_frame(const Packet& packet);

/// Nanosecond pcap (magic a1b23c4d, link type Ethernet) of whole frames: RoCEv2, and those of ns-3's stacks as they
/// are.
class PcapTap final : public PortTap {
 public:
  /// Throws EnvironmentError if the file cannot be written.
  PcapTap(const std::string& path, const Fabric& fabric);
  void transmitted(Time start, const Packet& packet) override;
  /// Throws EnvironmentError if anything could not be written.
  void close();

 private:
  void check() const;

  std::string path_;
  const Fabric& fabric_;
  std::ofstream file_;
};

}  // namespace weft
