// SPDX-License-Identifier: GPL-2.0-only
// Turns of processes that share the cores of a host.
#pragma once

#include <cstdint>
#include <vector>

#include <sched.h>

#include "engine/gate.hpp"

namespace weft {

/// More processes than cores, and each has a part of every epoch to do: as many run as there are cores, one bound to
/// each, and who has done its part gives its core to one that has not begun. Left alone, the kernel lets two wait for
/// one core while another is idle: it does not look for work elsewhere when a core has been idle for less than that
/// would take (sched_balance_newidle() in kernel/sched/fair.c of Linux), and parts last a fraction of a millisecond.
///
/// Epochs begin at barriers, numbered from 1, at which each process arrives when it has done so much of its part that
/// the others may begin the next one: they may do so when all have arrived. At first, and where what they do after a
/// barrier makes them wait for each other, they run all at once, and arrive when their parts are done.
class CoreTurns {
 public:
  /// What the others see of a process, in memory that all share; to begin with all zeros.
  struct alignas(64) Place {
    Gate turn;                // opened for each barrier after which another process lets this one go on
    std::uint64_t state = 0;  // 2 m: done up to barrier m, and asleep; 2 m + 1: has begun with what follows it
    std::int32_t core = 0;    // where it runs, or ran last; place in the list of cores
    std::int32_t thread = 0;  // of the kernel
    std::int64_t done = 0;    // with its last part; clock ticks
    std::int64_t lasted = 0;  // its last part; clock ticks
  };

  /// Cores on which all `processes` of a host may run, if they have no others and are more than those; else empty.
  static std::vector<int> shared_cores(const std::vector<cpu_set_t>& processes);

  /// Binds the calling thread, which is that of places[self], to one of `cores`. All places are there before the first
  /// barrier.
  CoreTurns(std::vector<Place*> places, int self, std::vector<int> cores);
  /// Lets the thread, which must be the same one, run where it could before.
  ~CoreTurns();
  CoreTurns(const CoreTurns&) = delete;
  CoreTurns& operator=(const CoreTurns&) = delete;

  /// Since the last barrier all run at once.
  bool all_at_once() const { return all_at_once_; }
  /// The calling process is about to show that it arrives at `barrier`.
  void arrive(std::uint64_t barrier);
  static constexpr int nobody = -1;
  /// The calling process has done its part, and has arrived at `barrier`: who has not begun and gets its core. Nobody
  /// if all have arrived.
  int next(std::uint64_t barrier);
  /// Gives the core to `heir`, the answer of next(), and waits until another process lets this one go on.
  void give(std::uint64_t barrier, int heir);
  /// The same without a core to give, while all run at once.
  void sleep(std::uint64_t barrier);
  /// All have arrived, and the calling process goes on. If all have run at once it has arrived last, and lets one
  /// process go on on each other core.
  void go_on(std::uint64_t barrier);
  /// Whichever way the calling process goes on: how all of them do. Everybody says the same.
  void resume(std::uint64_t barrier, bool all_at_once);

 private:
  Place& place(int process) { return *places_[static_cast<std::size_t>(process)]; }
  bool claim(int process, std::uint64_t barrier);
  template <class Better>
  int best(std::uint64_t barrier, Better better);
  void hand_over(int core, int process, std::uint64_t barrier);

  std::vector<Place*> places_;
  int self_ = 0;
  std::vector<int> cores_;
  cpu_set_t before_;
  bool all_at_once_ = true;
  std::int64_t resumed_ = 0;
};

}  // namespace weft
