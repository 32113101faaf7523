// SPDX-License-Identifier: GPL-2.0-only
#include "fabric/local/reference_drive.hpp"

#include <utility>

#include <ns3/simulator.h>

#include "support/error.hpp"
#include "support/interrupt.hpp"
#include "units/time.hpp"

namespace weft {

void ReferenceDrive::start(Run run, NextEvent next_event) {
  run_ = std::move(run);
  next_event_ = std::move(next_event);
  pending_.resize(nodes_.all.size());
}

void ReferenceDrive::schedule_arrival(std::uint32_t local, std::int64_t time) {
  const std::int64_t delay = time - ns3::Simulator::Now().GetTimeStep();
  ns3::Simulator::ScheduleWithContext(nodes_.all[local].id, ns3::TimeStep(static_cast<std::uint64_t>(delay)),
                                      &ReferenceDrive::arrive, this, local);
}

void ReferenceDrive::arrive(std::uint32_t local) {
  const std::int64_t time = ns3::Simulator::Now().GetTimeStep();
  if (pending_[local].drain_at == time) return;
  pending_[local].drain_at = time;
  ns3::Simulator::ScheduleNow(&ReferenceDrive::drain, this, local);
}

void ReferenceDrive::drain(std::uint32_t local) {
  look_for_interrupt();
  if (ns3::Simulator::Now().GetTimeStep() >= Time::limit().ps())
    throw TimeLimitError("what is left to do lies too far ahead");
  pending_[local].drain_at = -1;
  run_(local, ns3::Simulator::Now().GetTimeStep() + 1);
  schedule_wake(local);
}

void ReferenceDrive::schedule_wake(std::uint32_t local) {
  const std::int64_t next = next_event_(local);
  std::int64_t& wake = pending_[local].wake_at;
  const std::int64_t now = ns3::Simulator::Now().GetTimeStep();
  if (next == never || (wake > now && wake <= next)) return;
  wake = next;
  schedule_arrival(local, next);
}

}  // namespace weft
