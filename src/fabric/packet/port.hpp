// SPDX-License-Identifier: GPL-2.0-only
// Ports: what a packet-hop touches.
#pragma once

#include <cstdint>

#include "units/bandwidth.hpp"
#include "units/bytes.hpp"
#include "units/port_id.hpp"
#include "units/time.hpp"

namespace weft {

/// The sending side of a port: two cache lines, the first for deciding a departure, the second for counting it.
struct alignas(64) OutputPort {
  static constexpr std::uint32_t remote = 0x80000000U;

  Time free_at;                 ///< its last committed bit leaves then
  Time after;                   ///< propagation, plus the next node's latency if that is a switch
  Time full_packet;             ///< serialisation of a full-MTU data packet
  Time control_packet;          ///< of an ACK or credit
  std::uint32_t peer_port = 0;  ///< local port index at the peer, or remote | position among the neighbour's cut links
  std::uint32_t peer_node = 0;  ///< local node index of the peer, or index of the neighbour process
  Time next_sample;
  Bandwidth rate;
  std::uint32_t directed_link = 0;
  bool tapped = false;
  bool framed = false;  ///< the link cuts packets into frames of its own

  std::uint64_t packets = 0;
  std::uint64_t data_packets = 0;
  Bytes payload_bytes;
  Time busy;
  Time peak_backlog;             ///< unsent work, including the packet that has just come
  Time sampled_busy;             ///< busy time up to the last sample
  unsigned __int128 waited = 0;  ///< sum of bytes * waiting time, B ps

  /// A packet of so many bytes on the wire, which takes `serialization` there, has waited. On a link with frames of its
  /// own its bytes are those that the link sends in that time, as for `peak_backlog`.
  void add_wait(Time wait, Bytes bytes, Time serialization) {
    if (framed && wait > Time()) [[unlikely]]
      bytes = bytes_sent_in(serialization, rate);
    waited += static_cast<unsigned __int128>(static_cast<std::uint64_t>(wait.ps())) *
              static_cast<std::uint64_t>(bytes.count());
  }
  bool leaves_process() const { return (peer_port & remote) != 0; }
  /// Where packets arrive that stay in this process.
  PortId peer() const { return PortId(peer_port); }
};
static_assert(sizeof(OutputPort) == 128);

}  // namespace weft
