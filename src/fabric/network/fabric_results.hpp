// SPDX-License-Identifier: GPL-2.0-only
// Results of a run: counters, waits and series of the nodes of one process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "fabric/client/link_counters.hpp"
#include "fabric/probes/fabric_reports.hpp"
#include "units/time.hpp"

namespace weft {

struct PortModel;
class LocalNetwork;
class ProcessGroup;

/// Read from a fabric during a run or after it. Results "by class" are empty where ports have no queues by class.
class FabricResults {
 public:
  FabricResults(LocalNetwork& net, const std::unique_ptr<PortModel>& model) : net_(net), model_(model) {}

  // Counters ----------------------------------------------------------------------------------------------------------
  std::vector<LinkCounters> link_counters() const;
  /// By class.
  std::vector<LinkClassCounters> class_counters(Time end) const;
  /// What congestion has done at owned nodes.
  CongestionTotals congestion() const;
  std::vector<QueuePairCounters> queue_pair_counters() const;
  std::vector<ReceiverCounters> receiver_counters() const;

  // Waits -------------------------------------------------------------------------------------------------------------
  /// The run has ended at `end`: packets that had not begun to leave by then count as waiting until `end`. Once, before
  /// waits are read. Collective.
  void settle_waits(ProcessGroup& group, Time end);
  /// The `max` links for which packets have waited most until `end`, over all processes; the same on each. Collective.
  std::vector<HotLink> hot_links(ProcessGroup& group, std::size_t max, Time end) const;
  /// Of queues in which something has waited, over the time until `end`; nothing without FabricProbes::queue_depths().
  std::vector<QueueDepth> queue_depths(Time end) const;
  /// Rows of /link_waits; nothing without FabricProbes::waits_by_job().
  std::vector<LinkJobWait> link_waits() const;
  /// Rows of /link_pauses; nothing without FabricProbes::pause_causes(). `end`: until when stops count that have not
  /// ended.
  std::vector<LinkPause> link_pauses(Time end) const;

  // Series ------------------------------------------------------------------------------------------------------------
  /// Samples up to `end`, closing the last interval there. Moves them out.
  std::vector<PortSample> take_samples(Time end);
  /// Those of the intervals that ended at `now` or before, everything before which has happened. Moves them out;
  /// others, which events without effect may have closed, stay.
  std::vector<PortSample> take_closed_samples(Time now);
  /// The same of queue pairs.
  std::vector<QueuePairSample> take_queue_pair_samples(Time end);
  std::vector<QueuePairSample> take_closed_queue_pair_samples(Time now);
  std::size_t samples_held() const;
  /// Samples of ports and of queue pairs that take_samples(end) and take_queue_pair_samples(end) would give, about.
  std::uint64_t samples_until(Time end) const;

 private:
  LocalNetwork& net_;
  const std::unique_ptr<PortModel>& model_;
};

}  // namespace weft
