// SPDX-License-Identifier: GPL-2.0-only
// Turns of processes that share the cores of a host.
#pragma once

#include <cstdint>
#include <vector>

#include <sched.h>

#include "engine/gate.hpp"

namespace weft {

/// For more processes than cores, where each process has a part of every epoch: as many processes run as there are
/// cores, one bound to each core, and a process that has finished its part gives its core to one that has not begun.
/// Without this, the kernel lets two processes wait for one core while another core is idle: it does not look for work
/// elsewhere when a core has been idle for a shorter time than the search would take (sched_balance_newidle() in
/// kernel/sched/fair.c of Linux), and parts last a fraction of a millisecond.
///
/// Epochs begin at barriers, numbered from 1. A process arrives at a barrier when it has done enough of its part that
/// the others may begin the next epoch; the next epoch begins when all have arrived. At first, and where the work after
/// a barrier makes processes wait for each other, all processes run at the same time, and arrive when their parts are
/// done.
class CoreTurns {
 public:
  /// The state of a process that the others see, in shared memory; initially all zeros.
  struct alignas(64) Place {
    Gate turn;                // opened for each barrier after which another process lets this one go on
    std::uint64_t state = 0;  // 2 m: done up to barrier m, and asleep; 2 m + 1: has begun with what follows it
    std::int32_t core = 0;    // where it runs, or ran last; place in the list of cores
    std::int32_t thread = 0;  // of the kernel
    std::int64_t done = 0;    // with its last part; clock ticks
    std::int64_t lasted = 0;  // its last part; clock ticks
  };

  /// The cores on which all `processes` of a host may run, if these may run on no others and are more than the cores;
  /// else empty.
  static std::vector<int> shared_cores(const std::vector<cpu_set_t>& processes);

  /// Binds the calling thread, which belongs to places[self], to one of `cores`. All places must exist before the first
  /// barrier.
  CoreTurns(std::vector<Place*> places, int self, std::vector<int> cores);
  /// Restores the cores on which the thread, which must be the same one, could run before.
  ~CoreTurns();
  CoreTurns(const CoreTurns&) = delete;
  CoreTurns& operator=(const CoreTurns&) = delete;

  /// Since the last barrier all processes run at the same time.
  bool all_at_once() const { return all_at_once_; }
  /// To be called immediately before the calling process arrives at `barrier`.
  void arrive(std::uint64_t barrier);
  static constexpr int nobody = -1;
  /// The calling process has done its part and has arrived at `barrier`. Returns the process that has not begun and
  /// gets its core; none if all have arrived.
  int next(std::uint64_t barrier);
  /// Gives the core to `heir`, the result of next(), and waits until another process lets this one continue.
  void give(std::uint64_t barrier, int heir);
  /// The same without giving a core away, while all processes run at the same time.
  void sleep(std::uint64_t barrier);
  /// All have arrived, and the calling process continues. If all have run at the same time, this process has arrived
  /// last, and lets one process continue on each of the other cores.
  void go_on(std::uint64_t barrier);
  /// To be called whenever the calling process continues: says how all processes continue. All processes pass the same
  /// value.
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
