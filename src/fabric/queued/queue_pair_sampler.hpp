// SPDX-License-Identifier: GPL-2.0-only
// Series of the allowed and actual sending of queue pairs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "fabric/local/local_network.hpp"
#include "fabric/probes/fabric_reports.hpp"
#include "fabric/queued/rdma_host.hpp"

namespace weft {

struct QueuedModel;

/// A connection's state changes at events of its host only: before the first one at or after the end of an interval, it
/// is what it was at that end.
class QueuePairSampler {
 public:
  QueuePairSampler(QueuedModel& model, LocalNetwork& net) : q_(model), net_(net) {}

  /// `hosts`, `destinations` (empty: all): ascending. Before the run.
  void start(Time interval, std::vector<NodeId> hosts, std::vector<NodeId> destinations);
  /// A connection has been opened.
  void open(const LocalNode& node, Connection& connection, Time now) const;
  /// An interval of the connection has ended.
  void flush(const LocalNode& node, Connection& connection, Time now);
  std::size_t held() const { return samples_.size(); }
  /// Maximum number of samples that connections add until `end` if their state does not change any more.
  std::uint64_t missing(Time end) const;
  /// Samples up to `end`, closing the last interval there.
  std::vector<QueuePairSample> take(Time end);
  /// Those of the intervals that ended at `now` or before.
  std::vector<QueuePairSample> take_closed(Time now);

 private:
  void flush_all(Time now);

  Time interval_;
  std::vector<NodeId> hosts_;
  std::vector<NodeId> destinations_;
  std::vector<QueuePairSample> samples_;
  static constexpr Time never = Time::max();

  QueuedModel& q_;
  LocalNetwork& net_;
};

}  // namespace weft
