// SPDX-License-Identifier: GPL-2.0-only
// Which node acts when: epochs of simulated time, or events of ns-3.
#pragma once

#include <algorithm>
#include <cstdint>

#include "fabric/local/drive.hpp"
#include "fabric/local/reference_drive.hpp"
#include "fabric/packet/node_calendar.hpp"

namespace weft {

/// The clock of a process's nodes.
class NodeClock {
 public:
  static constexpr Time never = Time::max();

  NodeClock(const LocalNodes& nodes, Drive drive) : drive(drive), reference(nodes) {
    calendar.resize(nodes.all.size());
  }

  void set_epoch(Time length) {
    epoch_length_ = length;
    reciprocal_ = ~std::uint64_t{0} / static_cast<std::uint64_t>(length.ps());
  }
  Time epoch_length() const { return epoch_length_; }
  /// time / epoch_length() without a division: the reciprocal is at most one too small.
  std::uint64_t epoch_number(Time time) const {
    const auto number = static_cast<std::int64_t>(
        (static_cast<unsigned __int128>(static_cast<std::uint64_t>(time.ps())) * reciprocal_) >> 64);
    return static_cast<std::uint64_t>(number + (time - number * epoch_length_ >= epoch_length_ ? 1 : 0));
  }
  /// Whole epochs, as the calendar counts: the next epochs of all processes stay aligned.
  Time epoch_start(Time time) const { return static_cast<std::int64_t>(epoch_number(time)) * epoch_length_; }

  /// A packet arrives at a node; `first`: no other packet on the same port arrives before it.
  void note_arrival(std::uint32_t local, Time time, bool first) {
    if (drive == Drive::ns3_events) [[unlikely]]
      reference.schedule_arrival(local, time);
    else if (first)  // a later packet of a link does not change when its node acts next
      calendar.schedule(local, epoch_number(time));
  }
  /// A node has an event of its own at a time.
  void wake_at(std::uint32_t local, Time time) {
    if (drive == Drive::ns3_events)
      reference.schedule_arrival(local, time);
    else
      calendar.schedule(local, epoch_number(time));
  }
  /// The same, from the timers and the sender of the node's software. The code that runs a node checks these
  /// afterwards.
  void wake_software(std::uint32_t local, Time time) {
    if (in_node()) return;
    if (drive == Drive::ns3_events)
      reference.schedule_wake(local);
    else
      calendar.schedule(local, epoch_number(time));
  }
  /// An event occurs at a time.
  void happen(Time time, std::uint64_t count = 1) {
    if (time > now) now = time;  // std::max() takes addresses, for which the compiler keeps the time in memory
    events += count;
  }
  bool in_node() const { return running != nobody; }

  static constexpr std::uint32_t nobody = 0xffffffffU;
  const Drive drive;
  NodeCalendar calendar;
  ReferenceDrive reference;
  Time now;                        ///< of the latest that has happened
  std::uint64_t events = 0;        ///< that have happened
  std::uint32_t running = nobody;  ///< local node

 private:
  Time epoch_length_ = Time::from_ps(1);
  std::uint64_t reciprocal_ = 0;  // floor((2^64 - 1) / epoch_length_)
};

}  // namespace weft
