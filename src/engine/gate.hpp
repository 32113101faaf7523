// SPDX-License-Identifier: GPL-2.0-only
// Waiting for another process of the same host, asleep.
#pragma once

#include <cstdint>

namespace weft {

/// A number in memory that processes share, which one of them raises and the others wait for. Who sleeps leaves the
/// processor to those that are waited for; who yields instead comes up again and again before them (Linux futex(2)).
/// All zeros is a gate that has been opened for 0.
class Gate {
 public:
  /// Lets pass who waits for `number`. Numbers go up by one, modulo 2^32, each when nobody waits for the one before.
  void open(std::uint32_t number);
  /// Returns when open(number) has been called.
  void wait(std::uint32_t number);

 private:
  std::uint32_t opened_ = 0;
  std::uint32_t sleepers_ = 0;  // who may have to be woken
};

}  // namespace weft
