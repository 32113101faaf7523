// SPDX-License-Identifier: GPL-2.0-only
// Turns of processes that share the cores of a host.
#pragma once

#include <cstdint>
#include <vector>

#include <sched.h>

#include "engine/gate.hpp"

namespace weft {

/// More processes than cores, and each has a part of every window to do: as many run as there are cores, one bound to
/// each, and who has done its part gives its core to one that has not begun. Left alone, the kernel lets two wait for
/// one core while another is idle: it does not look for work elsewhere when a core has been idle for less than that
/// would take (sched_balance_newidle() in kernel/sched/fair.c of Linux), and parts last a fraction of a millisecond.
class CoreTurns {
 public:
  /// What the others see of a process, in memory that all share; to begin with all zeros.
  struct alignas(64) Place {
    Gate turn;                 // opened for each meeting when the process may go on after it
    std::uint32_t begun = 0;   // the last meeting after which it was given a core
    std::int32_t core = 0;     // where it runs, or ran last; place in the list of cores
    std::int32_t thread = 0;   // of the kernel
    std::int64_t came = 0;     // to its last meeting; clock ticks
    std::int64_t lasted = 0;   // its part of the last window; clock ticks
  };

  /// Cores on which all `processes` of a host may run, if they have no others and are more than those; else empty.
  static std::vector<int> shared_cores(const std::vector<cpu_set_t>& processes);

  /// Binds the calling thread, which is that of places[self], to one of `cores`. All places are there before the first
  /// meeting.
  CoreTurns(std::vector<Place*> places, int self, std::vector<int> cores);
  /// Lets the thread, which must be the same one, run where it could before.
  ~CoreTurns();
  CoreTurns(const CoreTurns&) = delete;
  CoreTurns& operator=(const CoreTurns&) = delete;

  static constexpr int nobody = -1;
  /// The calling process has done its part and comes to `meeting`: who gets its core, if somebody waits for one. To be
  /// asked before others can see that it has come; meetings are numbered from 1.
  int next(std::uint32_t meeting);
  /// Gives the core to `heir`, the answer of next(), and waits until the calling process may go on after `meeting`.
  void give_and_wait(std::uint32_t meeting, int heir);
  /// The calling process has come last. It goes on, and one more on each other core; or all at once, for something that
  /// they do together.
  void go_on(std::uint32_t meeting, bool all_at_once);

 private:
  Place& place(int process) { return *places_[static_cast<std::size_t>(process)]; }
  bool claim(int process, std::uint32_t meeting);
  template <class Better>
  int best(std::uint32_t meeting, Better better);
  void give(int core, int process, std::uint32_t meeting);

  std::vector<Place*> places_;
  int self_ = 0;
  std::vector<int> cores_;
  cpu_set_t before_;
  std::int64_t resumed_ = 0;
};

}  // namespace weft
