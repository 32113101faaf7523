// SPDX-License-Identifier: GPL-2.0-only
// Waiting for another process of the same host, asleep.
#pragma once

#include <cstdint>

namespace weft {

/// A number in shared memory, which one process raises and for which the others wait. Waiting processes sleep and leave
/// the processor to the process that they wait for; a process that yields would be scheduled again and again before it
/// (Linux futex(2)). A gate of all zeros has been opened for 0.
class Gate {
 public:
  /// Wakes the processes that wait for `number`. Numbers increase by one, modulo 2^32, each when no process waits for
  /// the one before.
  void open(std::uint32_t number);
  /// Returns when open(number) has been called.
  void wait(std::uint32_t number);

 private:
  std::uint32_t opened_ = 0;
  std::uint32_t sleepers_ = 0;  // who may have to be woken
};

}  // namespace weft
