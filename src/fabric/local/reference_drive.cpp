// SPDX-License-Identifier: GPL-2.0-only
#include "fabric/local/reference_drive.hpp"

#include <utility>

#include <ns3/simulator.h>

#include "support/basics/error.hpp"
#include "support/system/interrupt.hpp"
#include "units/time.hpp"

namespace weft {
namespace {

Time current_time() { return Time::from_ps(ns3::Simulator::Now().GetTimeStep()); }

}  // namespace

void ReferenceDrive::start(Run run, NextEvent next_event) {
  run_ = std::move(run);
  next_event_ = std::move(next_event);
  pending_.resize(nodes_.all.size());
}

void ReferenceDrive::schedule_arrival(std::uint32_t local, Time time) {
  const Time delay = time - current_time();
  ns3::Simulator::ScheduleWithContext(nodes_.all[local].id.value(),
                                      ns3::TimeStep(static_cast<std::uint64_t>(delay.ps())), &ReferenceDrive::arrive,
                                      this, local);
}

void ReferenceDrive::arrive(std::uint32_t local) {
  ++own_events_;
  const Time time = current_time();
  if (pending_[local].drain_at == time) return;
  pending_[local].drain_at = time;
  schedule_drain(local);
}

std::uint64_t ReferenceDrive::other_events() const { return ns3::Simulator::GetEventCount() - own_events_; }

void ReferenceDrive::schedule_drain(std::uint32_t local) {
  pending_[local].others = other_events();
  ns3::Simulator::ScheduleNow(&ReferenceDrive::drain, this, local);
}

void ReferenceDrive::drain(std::uint32_t local) {
  ++own_events_;
  look_for_interrupt();
  if (other_events() != pending_[local].others) return schedule_drain(local);
  if (current_time() >= Time::limit()) throw TimeLimitError("what is left to do lies too far ahead");
  pending_[local].drain_at = Time::from_ps(-1);
  run_(local, current_time() + Time::from_ps(1));
  schedule_wake(local);
}

void ReferenceDrive::schedule_wake(std::uint32_t local) {
  const Time next = next_event_(local);
  Time& wake = pending_[local].wake_at;
  const Time now = current_time();
  if (next == never || (wake > now && wake <= next)) return;
  wake = next;
  schedule_arrival(local, next);
}

}  // namespace weft
