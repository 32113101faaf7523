// SPDX-License-Identifier: GPL-2.0-only
// Waiting for another process of the same host, asleep.
#include "engine/gate.hpp"

#include <atomic>
#include <cerrno>
#include <climits>

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace weft {

// A waiting process announces itself, and then the kernel compares the number again; the opening process changes the
// number, and then looks for those. All four are sequentially consistent, so that one of the two sees the other.
void Gate::open(std::uint32_t number) {
  std::atomic_ref(opened_).store(number);
  if (std::atomic_ref(sleepers_).load() == 0) return;
  syscall(SYS_futex, &opened_, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void Gate::wait(std::uint32_t number) {
  const std::atomic_ref opened(opened_);
  const std::atomic_ref sleepers(sleepers_);
  if (opened.load() == number) return;
  ++sleepers;
  for (std::uint32_t found = opened.load(); found != number; found = opened.load()) {
    const long result = syscall(SYS_futex, &opened_, FUTEX_WAIT, found, nullptr, nullptr, 0);
    // A kernel without futexes between processes: slow, but right.
    if (result != 0 && errno != EAGAIN && errno != EINTR) sched_yield();
  }
  --sleepers;
}

}  // namespace weft
