// SPDX-License-Identifier: GPL-2.0-only
// The same nodes under any ns-3 simulator: one ns-3 event per packet arrival, no epochs.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "fabric/local/local_nodes.hpp"

namespace weft {

/// Arrivals of one node at one time are handled together by a drain event, which ns-3 runs after all of them, because
/// it is scheduled last. It also runs after all other events of that time, with those that they bring at the same time,
/// as weft's own engine has them: it goes to the end of the line again while others have run since it was scheduled.
class ReferenceDrive {
 public:
  /// Runs a local node up to a time.
  using Run = std::function<void(std::uint32_t local, Time end)>;
  /// Time of the next own event of a local node, or never.
  using NextEvent = std::function<Time(std::uint32_t local)>;

  explicit ReferenceDrive(const LocalNodes& nodes) : nodes_(nodes) {}
  void start(Run run, NextEvent next_event);
  void schedule_arrival(std::uint32_t local, Time time);
  /// Own events of a node, such as timers and decisions of the NIC: an ns-3 event for the earliest of them, unless one
  /// at that time or before is under way.
  void schedule_wake(std::uint32_t local);

 private:
  static constexpr Time never = Time::max();
  struct Pending {
    Time drain_at = Time::from_ps(-1);
    Time wake_at = never;
    std::uint64_t others = 0;  ///< other_events() when the drain event was scheduled
  };
  void arrive(std::uint32_t local);
  void drain(std::uint32_t local);
  void schedule_drain(std::uint32_t local);
  /// Events that ns-3 has begun to run so far, without those of this class.
  std::uint64_t other_events() const;

  const LocalNodes& nodes_;
  Run run_;
  NextEvent next_event_;
  std::vector<Pending> pending_;  // [local nodes]
  std::uint64_t own_events_ = 0;
};

}  // namespace weft
