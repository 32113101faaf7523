// SPDX-License-Identifier: GPL-2.0-only
#include "fabric/network/fabric_probes.hpp"

#include <utility>

#include "fabric/local/local_network.hpp"
#include "fabric/network/port_model.hpp"
#include "fabric/probes/waits_by_job.hpp"
#include "support/basics/contract.hpp"

namespace weft {

void FabricProbes::sample_ports(Time interval) {
  net_.sampler.start(interval);
  for (OutputPort& port : net_.outputs) port.next_sample = interval;
}

void FabricProbes::sample_queue_pairs(Time interval, std::vector<NodeId> hosts, std::vector<NodeId> destinations) {
  WEFT_EXPECT(model_->buffered(), "queue pairs are to be sampled where ports have no queues by class");
  model_->queued()->samples.start(interval, std::move(hosts), std::move(destinations));
}

void FabricProbes::queue_depths() {
  WEFT_EXPECT(model_->buffered(), "depths of queues are asked for where ports have none by class");
  QueuedState& state = model_->queued()->state;
  state.depths.resize(state.classes.size());
}

void FabricProbes::waits_by_job(JobsOfHosts jobs) { net_.observers.count_waits(std::move(jobs), net_.outputs.size()); }

void FabricProbes::pause_causes() {
  if (QueuedModel* queued = model_->queued()) queued->control.count_causes();
}

void FabricProbes::add_tap(NodeId node, std::uint32_t port, std::shared_ptr<PortTap> tap) {
  if (!net_.nodes.owns(node)) return;
  const PortId index = net_.nodes.port(node, port);
  net_.observers.add_tap(index, std::move(tap), net_.outputs.size());
  net_.outputs[index].tapped = true;
}

void FabricProbes::add_arrival_observer(NodeId node, std::uint32_t port, ArrivalObserver observer) {
  net_.observers.add_arrival_observer(net_.nodes.port(node, port), std::move(observer));
}

}  // namespace weft
