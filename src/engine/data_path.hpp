// SPDX-License-Identifier: GPL-2.0-only
// The data path of the engine: packets that move without ns-3 events.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "engine/batch.hpp"
#include "units/time.hpp"

namespace weft {

/// A model that advances through simulated time in epochs, beside ns-3's events in one clock. All times are absolute.
///
/// ns-3 events may act on the model (start a message, read a counter): they run at te after advance(te), that is after
/// everything before te and before anything of the model at te. The model may schedule ns-3 events from within
/// advance(), between ParallelSimulatorImpl::enter() calls, for lookahead() or more after the moment that it processes:
/// not earlier, because the engine may already have passed that time on behalf of other nodes.
class DataPath {
 public:
  virtual ~DataPath() = default;
  /// Earliest time at which this MPI rank has an event, or at which a batch on its way to a neighbour takes effect;
  /// Time::max() if nothing is pending.
  virtual Time next_time() const = 0;
  /// Process everything with time < end. Ends never decrease within one Run(); events handed to the model afterwards
  /// are never before the last end. Between two exchanges the engine never passes an end beyond (agreed next time +
  /// lookahead()).
  virtual void advance(Time end) = 0;
  /// Nothing that this rank's part sends at t to another MPI rank arrives before t + lookahead(), the same number on
  /// all ranks; > 0. Also bounds how far a single process advances between two checks for interrupts.
  virtual Time lookahead() const = 0;
  // What crosses the cut -----------------------------------------------------------------------------------------
  /// The other MPI ranks with which this rank exchanges packets; both sides list each other, once. Constant during a
  /// run.
  virtual std::span<const int> neighbours() const { return {}; }
  /// [neighbours] what has been sent there since the engine last took it away. next_time() counts it in.
  virtual std::span<Batch> outgoing() { return {}; }
  /// advance() may call `done` as soon as no packet before its end will be added to outgoing() and next_time() cannot
  /// decrease any more, so that the other ranks need not wait for the rest of advance(). Null: do not call it.
  virtual void set_boundary_done(std::function<void()> /*done*/) {}
  /// Takes the packets that neighbours()[neighbour] has sent during the last epoch.
  virtual void incoming(std::size_t /*neighbour*/, std::span<const std::byte> /*batch*/) {}

  /// How many events the last epochs would have taken with an MPI rank for each node: the sum over epochs of the
  /// events of the busiest node. Counted anew after each call.
  virtual std::uint64_t take_critical_events() { return 0; }
  /// Time of the latest event processed so far; Time() if there was none.
  virtual Time now() const = 0;
};

}  // namespace weft
