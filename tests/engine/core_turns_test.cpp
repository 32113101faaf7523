// SPDX-License-Identifier: GPL-2.0-only
// Turns on cores: each part of each epoch is done once, by no more at a time than there are cores, and no process waits
// while a core is free.
// Processors: 2
// Also in Release: threads and processes meet at another pace there, and the compiler orders more
#include "engine/core_turns.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace weft::core_turns_test {
namespace {

using namespace std::chrono_literals;

cpu_set_t set_of(const std::vector<int>& cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) CPU_SET(core, &set);
  return set;
}

TEST(CoreTurns, OnlyWhereMoreProcessesThanCoresHaveTheSameCores) {
  const cpu_set_t two = set_of({3, 5});
  EXPECT_EQ(CoreTurns::shared_cores({two, two, two}), (std::vector<int>{3, 5}));
  EXPECT_TRUE(CoreTurns::shared_cores({two, two}).empty());
  EXPECT_TRUE(CoreTurns::shared_cores({two, two, set_of({3})}).empty());
}

/// Cores of this thread.
std::vector<int> allowed() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof set, &set);
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  return cores;
}

// Threads in place of processes: the kernel binds and wakes either.
struct Crew {
  explicit Crew(int size) : places(static_cast<std::size_t>(size)) {}

  /// Lets each process do part(process, barrier) after each of `barriers` barriers, all at once after those for which
  /// `together` is true.
  template <class Part, class Together>
  void work(int cores, std::uint32_t barriers, Part part, Together together) {
    const int size = static_cast<int>(places.size());
    std::vector<CoreTurns::Place*> pointers;
    for (CoreTurns::Place& place : places) pointers.push_back(&place);
    // Processes cannot be bound to missing cores: then all share the cores that exist.
    std::vector<int> list = allowed();
    list.resize(static_cast<std::size_t>(cores), list.front());
    std::atomic<int> built = 0;
    std::atomic<std::uint32_t> arrivals = 0;
    std::vector<std::thread> threads;
    for (int self = 0; self < size; ++self)
      threads.emplace_back([&, self] {
        CoreTurns turns(pointers, self, list);
        for (++built; built < size;) std::this_thread::yield();
        for (std::uint32_t barrier = 1; barrier <= barriers; ++barrier) {
          wait(turns, barrier, arrivals, together(barrier));
          part(self, barrier);
        }
        // The last parts have heirs too.
        wait(turns, barriers + 1, arrivals, /*all_at_once=*/true);
      });
    for (std::thread& thread : threads) thread.join();
  }

  void wait(CoreTurns& turns, std::uint32_t barrier, std::atomic<std::uint32_t>& arrivals, bool all_at_once) const {
    const auto size = static_cast<std::uint32_t>(places.size());
    turns.arrive(barrier);
    const bool last = ++arrivals == barrier * size;
    // Early: the rest of its part follows.
    if (!turns.all_at_once() && barrier % 3 == 0) std::this_thread::sleep_for(50us);
    if (turns.all_at_once()) {
      if (last)
        turns.go_on(barrier);
      else
        turns.sleep(barrier);
    } else if (const int heir = turns.next(barrier); heir != CoreTurns::nobody) {
      turns.give(barrier, heir);
    } else {
      while (arrivals < barrier * size) std::this_thread::yield();
      turns.go_on(barrier);
    }
    turns.resume(barrier, all_at_once);
  }

  std::vector<CoreTurns::Place> places;
};

TEST(CoreTurns, EachPartOnceAndNoMoreAtATimeThanCores) {
  for (const auto& [size, cores] : {std::pair{3, 1}, {5, 2}, {8, 2}, {7, 3}}) {
    constexpr std::uint32_t barriers = 400;
    const auto together = [](std::uint32_t barrier) { return barrier % 10 == 0; };
    std::vector<std::atomic<int>> done(barriers + 1);
    std::atomic<int> running = 0;
    std::atomic<int> max = 0;
    std::atomic<int> early = 0;
    Crew crew(size);
    crew.work(
        cores, barriers,
        [&](int self, std::uint32_t barrier) {
          const int now = ++running;
          if (!together(barrier)) {
            for (int seen = max; seen < now && !max.compare_exchange_weak(seen, now);) continue;
          }
          if (barrier > 1 && done[barrier - 1] != size) ++early;
          if (self % 2 == 0 && barrier % 16 == 0) std::this_thread::sleep_for(100us);
          ++done[barrier];
          --running;
        },
        together);
    for (std::uint32_t barrier = 1; barrier <= barriers; ++barrier) EXPECT_EQ(done[barrier], size) << barrier;
    EXPECT_EQ(early, 0);
    EXPECT_LE(max, cores);
  }
}

// A process that waits in MPI for the others must not keep them from running.
TEST(CoreTurns, AllAtOnceForWhatTheyDoTogether) {
  constexpr int size = 5;
  std::atomic<int> there = 0;
  Crew(size).work(
      2, 50,
      [&](int, std::uint32_t barrier) {
        if (barrier % 2 == 1) return;
        ++there;
        while (there < static_cast<int>(barrier / 2) * size) std::this_thread::yield();
      },
      [](std::uint32_t barrier) { return barrier % 2 == 0; });
  EXPECT_EQ(there, 25 * size);
}

// Parts of 1, 1, 1 and 3 on two cores: 3 if no process waits for a core while one is free, 4 or more with fixed places.
TEST(CoreTurns, NobodyWaitsWhileACoreIsFree) {
  constexpr std::uint32_t barriers = 20;
  constexpr auto unit = 5ms;
  // Other programs make a try longer, and none shorter.
  std::chrono::nanoseconds min = 1h;
  for (int tries = 0; tries < 10 && min >= 4 * unit; ++tries) {
    const auto start = std::chrono::steady_clock::now();
    // Asleep, so that the cores that there are play no part.
    Crew(4).work(
        2, barriers, [&](int self, std::uint32_t) { std::this_thread::sleep_for(self == 1 ? 3 * unit : unit); },
        [](std::uint32_t) { return false; });
    min = std::min<std::chrono::nanoseconds>(min, (std::chrono::steady_clock::now() - start) / barriers);
  }
  EXPECT_GE(min, 3 * unit);
  EXPECT_LT(min, 4 * unit);
}

TEST(CoreTurns, LetsGoOfTheCore) {
  const std::vector<int> before = allowed();
  CoreTurns::Place place;
  {
    CoreTurns turns({&place}, 0, {before.front()});
    EXPECT_EQ(allowed(), std::vector<int>{before.front()});
  }
  EXPECT_EQ(allowed(), before);
}

}  // namespace
}  // namespace weft::core_turns_test
