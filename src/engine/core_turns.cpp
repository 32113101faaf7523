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

// What may be read while another process changes it; a guess may be made with an old value.
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

// Exactly one of those that want it gets a process that has not begun its part of the window after `meeting`.
bool CoreTurns::claim(int process, std::uint32_t meeting) {
  std::uint32_t before = meeting - 1;
  return std::atomic_ref(place(process).begun).compare_exchange_strong(before, meeting);
}

// Claims the best of those that wait for the window after `meeting`.
template <class Better>
int CoreTurns::best(std::uint32_t meeting, Better better) {
  for (;;) {
    int found = nobody;
    for (int process = 0; process < static_cast<int>(places_.size()); ++process) {
      if (glance(place(process).begun) != meeting - 1) continue;
      if (found == nobody || better(place(process), place(found))) found = process;
    }
    if (found == nobody || claim(found, meeting)) return found;
  }
}

int CoreTurns::next(std::uint32_t meeting) {
  Place& mine = place(self_);
  const std::int64_t now = ticks();
  show(mine.came, now);
  show(mine.lasted, now - resumed_);
  // Who has run here before, so that what it left in the caches may still be there; the longest part first, so that the
  // cores are done at about the same time.
  return best(meeting - 1, [here = mine.core](const Place& a, const Place& b) {
    const bool a_here = glance(a.core) == here;
    const bool b_here = glance(b.core) == here;
    return a_here != b_here ? a_here : glance(a.lasted) > glance(b.lasted);
  });
}

void CoreTurns::give(int core, int process, std::uint32_t meeting) {
  Place& heir = place(process);
  if (heir.core != core) {
    // While it sleeps this costs nothing but the call. Should it fail, the kernel finds a place.
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cores_[static_cast<std::size_t>(core)], &one);
    sched_setaffinity(heir.thread, sizeof one, &one);
    show(heir.core, core);
  }
  heir.turn.open(meeting);
}

void CoreTurns::give_and_wait(std::uint32_t meeting, int heir) {
  Place& mine = place(self_);
  if (heir != nobody) {
    give(mine.core, heir, meeting - 1);
  } else {
    // Nobody else wants this core until all have come: waking up would take longer than looking.
    constexpr int patience = 1 << 14;
    for (int look = 0; look < patience && !mine.turn.is_open(meeting); ++look) relax();
  }
  mine.turn.wait(meeting);
  resumed_ = ticks();
}

void CoreTurns::go_on(std::uint32_t meeting, bool all_at_once) {
  claim(self_, meeting);
  const int here = place(self_).core;
  if (all_at_once) {
    for (int process = 0; process < static_cast<int>(places_.size()); ++process)
      if (process != self_ && claim(process, meeting)) give(place(process).core, process, meeting);
  } else {
    for (int core = 0; core < static_cast<int>(cores_.size()); ++core) {
      if (core == here) continue;
      // Who was there last still has the caches to itself.
      const int process = best(meeting, [core](const Place& a, const Place& b) {
        const bool a_there = glance(a.core) == core;
        const bool b_there = glance(b.core) == core;
        return a_there != b_there ? a_there : a_there ? glance(a.came) > glance(b.came) : glance(a.lasted) > glance(b.lasted);
      });
      if (process != nobody) give(core, process, meeting);
    }
  }
  resumed_ = ticks();
}

}  // namespace weft
