// SPDX-License-Identifier: GPL-2.0-only
// Which class of a port sends next: the interface between ports and the disciplines by which classes share a link.
#pragma once

#include <cstdint>
#include <memory>

#include "support/basics/registry.hpp"
#include "units/bytes.hpp"
#include "units/lane_id.hpp"

namespace weft {

/// The classes of a port, as a scheduler is made for them.
struct ClassShares {
  std::uint32_t classes = 0;       ///< in all
  std::uint32_t sharing = 0;       ///< bit per class: those that share the link; others are strict
  PerLane<std::int64_t> weight{};  ///< of those that share
  Bytes largest_frame;
};

/// What may be sent now, of classes that share the link.
struct ReadyClasses {
  std::uint32_t lanes = 0;  ///< bit per class; at least two
  /// Of the first packet of each. One byte where that is not known before it is made, at a host.
  PerLane<Bytes> frame{};

  bool has(LaneId lane) const { return lane.in(lanes); }
};

/// The state of one port. Classes that do not share go first without a call, and so does one that finds no other that
/// shares: an indirect call is made where two of them compete for the link, and nowhere else.
class PortScheduler {
 public:
  virtual ~PortScheduler() = default;
  /// The class that sends next. If the other end of the link has no room for it, the scheduler is called again without
  /// that class.
  virtual LaneId choose(const ReadyClasses& ready) = 0;
  /// The chosen class sends a frame of that size.
  virtual void sends(LaneId lane, Bytes frame) = 0;
  /// The queues of these classes have become empty since the last call.
  virtual void emptied(std::uint32_t lanes) = 0;
};

/// A discipline, made by name: `network.priorities.scheduling`.
class SchedulingDiscipline {
 public:
  virtual ~SchedulingDiscipline() = default;
  /// Data and other traffic share the link by weight. If not, the more urgent one goes first.
  virtual bool shares() const { return true; }
  /// nullptr if it does not share.
  virtual std::unique_ptr<PortScheduler> make(const ClassShares& shares) const = 0;
};
using SchedulingRegistry = Registry<SchedulingDiscipline>;

}  // namespace weft
