// SPDX-License-Identifier: GPL-2.0-only
// What a run is to record beside its counters.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "fabric/probes/arrival_observer.hpp"
#include "fabric/probes/port_tap.hpp"
#include "units/id.hpp"
#include "units/time.hpp"

namespace weft {

struct JobsOfHosts;
struct PortModel;
class LocalNetwork;

/// To be requested before the run. A probe that is not requested costs nothing.
class FabricProbes {
 public:
  FabricProbes(LocalNetwork& net, const std::unique_ptr<PortModel>& model) : net_(net), model_(model) {}

  /// Record a sample of every port each `interval` (> 0).
  void sample_ports(Time interval);
  /// Record a sample each `interval` (> 0) of the queue pairs of `hosts` (ascending) to `destinations` (ascending;
  /// empty: all). Requires queues by class.
  void sample_queue_pairs(Time interval, std::vector<NodeId> hosts, std::vector<NodeId> destinations);
  /// Keep how long each queue is how deep. Requires queues by class.
  void queue_depths();
  /// Count for which job's packets those of each job wait.
  void waits_by_job(JobsOfHosts jobs);
  /// Count which output of a switch filled the ingress queues whose senders it stopped.
  void pause_causes();
  /// Copy every packet that leaves through `port` of `node` to `tap` (pcap, trace sinks). No-op if not owned here.
  void add_tap(NodeId node, std::uint32_t port, std::shared_ptr<PortTap> tap);
  /// `observer` is called with every packet that arrives at `port` of `node`, owned here.
  void add_arrival_observer(NodeId node, std::uint32_t port, ArrivalObserver observer);

 private:
  LocalNetwork& net_;
  const std::unique_ptr<PortModel>& model_;
};

}  // namespace weft
