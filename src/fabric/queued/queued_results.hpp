// SPDX-License-Identifier: GPL-2.0-only
// Results of ports with queues and of connections.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "fabric/local/local_network.hpp"
#include "fabric/probes/deadlock.hpp"
#include "fabric/probes/fabric_reports.hpp"
#include "units/bytes.hpp"
#include "units/time.hpp"

namespace weft {

struct QueuedModel;

/// Reads the results of the nodes of one process. `end`: the time until which unfinished waits count.
class QueuedResults {
 public:
  QueuedResults(QueuedModel& model, LocalNetwork& net) : q_(model), net_(net) {}

  std::vector<LinkClassCounters> class_counters(Time end) const;
  /// Of queues in which something has waited.
  std::vector<QueueDepth> queue_depths(Time end) const;
  /// Of the class of a port whose queue was deeper than this for a hundredth of the time, the largest; none unless
  /// depths are kept.
  std::optional<Bytes> p99_of_fullest_class(PortId port, Time end) const;
  std::vector<LinkPause> link_pauses(Time end) const;
  std::vector<QueuePairCounters> queue_pair_counters() const;
  std::vector<ReceiverCounters> receiver_counters() const;
  CongestionTotals congestion() const;
  bool packets_wait() const;
  /// The wait-for edges that have existed since `stopped_by` at the latest.
  std::vector<WaitEdge> wait_edges(Time stopped_by) const;
  void add_counters(PortId port, LinkCounters& counters) const;
  /// All packets that arrived at a switch left it or were dropped, its memory is free, and no class of a port holds
  /// anything; an InternalError otherwise.
  void check_nodes() const;
  std::uint64_t memory_bytes() const;

 private:
  bool keeps_depths() const;
  QueueDepth queue_depth(PortId port, LaneId lane, Time end) const;
  void check_buffer(const LocalNode& node) const;
  static constexpr Time never = Time::max();

  QueuedModel& q_;
  LocalNetwork& net_;
};

}  // namespace weft
