// SPDX-License-Identifier: GPL-2.0-only
// Times of one direction of a link, and counters of its packets.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "graph/machine/cluster_graph.hpp"
#include "graph/partition/partition.hpp"
#include "units/bandwidth.hpp"
#include "units/bytes.hpp"
#include "units/id.hpp"
#include "units/time.hpp"

namespace weft {

/// Times of one direction of a link.
struct LinkTimes {
  Bandwidth rate;
  Time delay;  ///< propagation
  friend bool operator==(const LinkTimes&, const LinkTimes&) = default;
};

/// Counters of one direction of a link, read when the run has ended.
struct LinkCounters {
  std::uint32_t directed_link = 0;
  NodeId from;
  NodeId to;
  std::uint32_t from_port = 0;
  Bytes bytes;
  Bytes payload_bytes;
  std::uint64_t packets = 0;
  std::uint64_t data_packets = 0;
  Time busy;  ///< of all that has been accepted, up to free_at; see busy_until()
  Time free_at;
  Time slowed;  ///< of `busy`: longer because a fault has lowered its rate
  Bytes peak_queue_bytes;
  double queue_byte_ps = 0;   ///< integral over time of the bytes that wait (not those in transmission)
  LinkTimes times;            ///< as configured
  std::uint64_t dropped = 0;  ///< packets for which the switch had no room
  std::uint64_t lost = 0;     ///< packets that the link has lost
  std::uint64_t other_packets =
      0;  ///< frames of reserve_port(); the counters above hold their times but not their bytes
  Bytes other_bytes;

  /// Time spent transmitting until `end`: what had been accepted by then may have taken longer. A port works without
  /// pause until free_at.
  Time busy_until(Time end) const { return busy - std::max(Time(), free_at - end); }
};

/// Of the links that begin at nodes of a process, node by node and port by port; with nothing counted yet.
std::vector<LinkCounters> counters_of_links(const ClusterGraph& graph, const Partition& partition, int process);

}  // namespace weft
