// SPDX-License-Identifier: GPL-2.0-only
// The same nodes under any ns-3 simulator: one ns-3 event per packet arrival, no windows. Arrivals of one node at one
// time are handled together by a drain event, which ns-3 runs after all of them, because it is scheduled last.
#include <ns3/simulator.h>

#include "fabric/network/fabric.hpp"
#include "support/error.hpp"
#include "support/interrupt.hpp"

namespace weft {

void Fabric::schedule_arrival(std::uint32_t local, std::int64_t time) {
  const std::int64_t delay = time - ns3::Simulator::Now().GetTimeStep();
  ns3::Simulator::ScheduleWithContext(nodes_[local].id, ns3::TimeStep(static_cast<std::uint64_t>(delay)),
                                      &Fabric::reference_arrival, this, local);
}

void Fabric::reference_arrival(std::uint32_t local) {
  const std::int64_t time = ns3::Simulator::Now().GetTimeStep();
  if (reference_[local].drain_at == time) return;
  reference_[local].drain_at = time;
  ns3::Simulator::ScheduleNow(&Fabric::reference_drain, this, local);
}

void Fabric::reference_drain(std::uint32_t local) {
  look_for_interrupt();
  if (ns3::Simulator::Now().GetTimeStep() >= Time::limit().ps())
    throw TimeLimitError("what is left to do lies too far ahead");
  reference_[local].drain_at = -1;
  run_node(local, ns3::Simulator::Now().GetTimeStep() + 1);
  schedule_wake(local);
}

// What a node does by itself, such as timers and decisions of the NIC: an event for the earliest of them, unless one at
// that time or before is under way.
void Fabric::schedule_wake(std::uint32_t local) {
  const std::int64_t next = node_next_event(nodes_[local]);
  std::int64_t& wake = reference_[local].wake_at;
  const std::int64_t now = ns3::Simulator::Now().GetTimeStep();
  if (next == never || (wake > now && wake <= next)) return;
  wake = next;
  schedule_arrival(local, next);
}

}  // namespace weft
