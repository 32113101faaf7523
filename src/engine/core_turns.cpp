// SPDX-License-Identifier: GPL-2.0-only
// Turns of processes that share the cores of a host.
#include "engine/core_turns.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <utility>

#include <sys/syscall.h>
#include <unistd.h>

namespace weft {
namespace {

std::int64_t ticks() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

// Data that may be read while another process changes it; an old value only makes a guess worse.
template <class Value>
Value glance(const Value& value) {
  return std::atomic_ref(const_cast<Value&>(value)).load(std::memory_order_relaxed);
}
template <class Value>
void show(Value& value, Value now) {
  std::atomic_ref(value).store(now, std::memory_order_relaxed);
}

}  // namespace

std::vector<int> CoreTurns::shared_cores(const std::vector<cpu_set_t>& processes) {
  std::vector<int> cores;
  for (const cpu_set_t& set : processes)
    if (!CPU_EQUAL(&set, &processes.front())) return {};
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &processes.front())) cores.push_back(core);
  if (processes.size() <= cores.size()) return {};
  return cores;
}

CoreTurns::CoreTurns(std::vector<Place*> places, int self, std::vector<int> cores)
    : places_(std::move(places)), self_(self), cores_(std::move(cores)) {
  CPU_ZERO(&before_);
  sched_getaffinity(0, sizeof before_, &before_);
  Place& mine = place(self_);
  mine.thread = static_cast<std::int32_t>(syscall(SYS_gettid));
  mine.core = static_cast<std::int32_t>(static_cast<std::size_t>(self_) * cores_.size() / places_.size());
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cores_[static_cast<std::size_t>(mine.core)], &one);
  sched_setaffinity(0, sizeof one, &one);
  resumed_ = ticks();
}

CoreTurns::~CoreTurns() { sched_setaffinity(0, sizeof before_, &before_); }

// Exactly one of those that want it gets a process that sleeps at `barrier`.
bool CoreTurns::claim(int process, std::uint64_t barrier) {
  std::uint64_t asleep = 2 * barrier;
  return std::atomic_ref(place(process).state).compare_exchange_strong(asleep, 2 * barrier + 1);
}

// Claims the best of those that sleep at `barrier`.
template <class Better>
int CoreTurns::best(std::uint64_t barrier, Better better) {
  for (;;) {
    int found = nobody;
    for (int process = 0; process < static_cast<int>(places_.size()); ++process) {
      if (std::atomic_ref(place(process).state).load() != 2 * barrier) continue;
      if (found == nobody || better(place(process), place(found))) found = process;
    }
    if (found == nobody || claim(found, barrier)) return found;
  }
}

// Asleep before the others see that it has arrived: the last process to arrive wakes it.
void CoreTurns::arrive(std::uint64_t barrier) {
  if (all_at_once_) std::atomic_ref(place(self_).state).store(2 * barrier);
}

int CoreTurns::next(std::uint64_t barrier) {
  const std::int64_t now = ticks();
  show(place(self_).done, now);
  show(place(self_).lasted, now - resumed_);
  // A process that has run here before, so that its data may still be in the caches; the longest part first, so that
  // the cores are done at about the same time.
  return best(barrier - 1, [here = place(self_).core](const Place& a, const Place& b) {
    const bool a_here = glance(a.core) == here;
    const bool b_here = glance(b.core) == here;
    return a_here != b_here ? a_here : glance(a.lasted) > glance(b.lasted);
  });
}

void CoreTurns::hand_over(int core, int process, std::uint64_t barrier) {
  Place& heir = place(process);
  if (heir.core != core) {
    // While it sleeps this costs nothing but the call. Should it fail, the kernel finds a place.
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cores_[static_cast<std::size_t>(core)], &one);
    sched_setaffinity(heir.thread, sizeof one, &one);
    show(heir.core, core);
  }
  heir.turn.open(static_cast<std::uint32_t>(barrier));
}

// Asleep before the heir arrives at the barrier, which cannot be complete before.
void CoreTurns::give(std::uint64_t barrier, int heir) {
  Place& mine = place(self_);
  const int core = mine.core;
  std::atomic_ref(mine.state).store(2 * barrier);
  hand_over(core, heir, barrier - 1);
  sleep(barrier);
}

void CoreTurns::sleep(std::uint64_t barrier) { place(self_).turn.wait(static_cast<std::uint32_t>(barrier)); }

void CoreTurns::go_on(std::uint64_t barrier) {
  Place& mine = place(self_);
  std::atomic_ref(mine.state).store(2 * barrier + 1);
  if (!all_at_once_) return;
  for (int core = 0; core < static_cast<int>(cores_.size()); ++core) {
    if (core == mine.core) continue;
    const int process = best(barrier, [core](const Place& a, const Place& b) {
      const bool a_there = glance(a.core) == core;
      const bool b_there = glance(b.core) == core;
      return a_there != b_there ? a_there : glance(a.done) > glance(b.done);
    });
    if (process != nobody) hand_over(core, process, barrier);
  }
}

// A sleeping process is woken by the first process that finds it asleep; a process that is not yet done notices by
// itself.
void CoreTurns::resume(std::uint64_t barrier, bool all_at_once) {
  all_at_once_ = all_at_once;
  if (all_at_once)
    for (int process = 0; process < static_cast<int>(places_.size()); ++process)
      if (claim(process, barrier)) hand_over(place(process).core, process, barrier);
  resumed_ = ticks();
}

}  // namespace weft
