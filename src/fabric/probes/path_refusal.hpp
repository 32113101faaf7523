// SPDX-License-Identifier: GPL-2.0-only
// A path that the user's parameters do not fit: the error says which one.
#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <utility>

#include "units/id.hpp"
#include "units/time.hpp"

namespace weft {

/// The first queue pair of a process whose path is refused. Hosts of one epoch do not run in the order of time, so that
/// the first is known only when all before a time is done.
struct PathRefusal {
  Time at = Time::max();  ///< when it was to send first, or max: all paths suit
  NodeId host;
  std::uint32_t queue_pair = 0;
  std::string message;

  /// Keeps the earlier one; of those at the same time that of the lowest host and queue pair.
  void note(PathRefusal other) {
    if (std::tie(other.at, other.host, other.queue_pair) < std::tie(at, host, queue_pair)) *this = std::move(other);
  }
};

}  // namespace weft
