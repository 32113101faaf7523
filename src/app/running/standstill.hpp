// SPDX-License-Identifier: GPL-2.0-only
// Runs in which everything that is sent is lost, again and again.
#pragma once

#include "app/running/experiment.hpp"
#include "engine/process_group.hpp"
#include "fabric/network/fabric.hpp"

namespace weft {

/// Checks from time to time whether packets arrive anywhere. Reliable connections retransmit lost packets for ever;
/// without this check a run in which everything is lost would never end.
class Standstill {
 public:
  Standstill(const Experiment& experiment, const Fabric* fabric);

  /// Time of the next check: the same on all processes, whatever their number.
  Time next_look() const { return next_look_; }
  /// Collective. Throws AgreedFailure on all processes if packets have been lost, and none has arrived, for a second;
  /// or, where links are long or timers slow, for as long as several tries take.
  void look(Time now, ProcessGroup& group);

 private:
  const Fabric* fabric_;
  std::string path_;
  Time patience_ = Time::from_s(1);
  Time next_look_ = Time::max();
  Time since_;        ///< nothing has arrived since then
  Time quiet_until_;  ///< links that have failed work again by then
  std::uint64_t arrived_ = 0;
  std::uint64_t lost_ = 0;
};

}  // namespace weft
