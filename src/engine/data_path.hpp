// SPDX-License-Identifier: GPL-2.0-only
// The lean side of the engine: packets that move without ns-3 events.
#pragma once

#include "engine/process_group.hpp"
#include "units/time.hpp"

namespace weft {

/// A model that advances through simulated time in windows, beside ns-3's events in one clock. All times are absolute.
///
/// ns-3 events may act on the model (start a message, read a counter): they run at te after advance(te), that is after
/// everything before te and before anything of the model at te. The model may schedule ns-3 events from within
/// advance(), between ParallelSimulatorImpl::enter() calls, for lookahead() or more after the moment that it processes:
/// not earlier, because the engine may already have passed that time on behalf of other nodes.
class DataPath {
 public:
  virtual ~DataPath() = default;
  /// Earliest time at which this MPI rank has something to do; Time::max() if nothing is pending.
  virtual Time next_time() const = 0;
  /// Process everything with time < end. Ends never decrease within one Run(); what is handed to the model afterwards
  /// is never before the last end. Between two exchanges the engine never passes an end beyond (agreed next time +
  /// lookahead()).
  virtual void advance(Time end) = 0;
  /// Nothing that this rank's part sends at t to another MPI rank arrives before t + lookahead(), the same number on
  /// all ranks; > 0. Also bounds how far a single process advances between two looks at interrupts.
  virtual Time lookahead() const = 0;
  /// Hand over to and take from the neighbour ranks what crossed the cut since the last exchange. Collective.
  virtual void exchange(ProcessGroup& group) = 0;
  /// Time of the latest thing processed so far; Time() if nothing was.
  virtual Time now() const = 0;
};

}  // namespace weft
