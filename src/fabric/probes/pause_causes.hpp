// SPDX-License-Identifier: GPL-2.0-only
// Which outputs of a switch filled the ingress queues whose senders it had to stop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "units/bytes.hpp"
#include "units/port_id.hpp"
#include "units/time.hpp"

namespace weft {

/// One output that has filled an ingress queue: most bytes of the queue waited for it when its sender was stopped, or
/// had no credit for a full frame left.
struct PauseCause {
  PortId port;              ///< local port of the output
  std::uint64_t stops = 0;  ///< how often the sender was stopped for it
  Time time;                ///< during which it stayed stopped
  Time first;               ///< the first of these stops
  Time last;                ///< the end of the last of them
};

/// Counts causes by ingress queue. With pause frames this takes work when a sender is stopped and when it may go on,
/// not per packet; with credits, whose receivers do not see their senders stop, for each frame that waits.
class PauseCauses {
 public:
  explicit PauseCauses(std::size_t queues) : causes_(queues), current_(queues, none), since_(queues) {}

  /// The sender of `queue` is stopped at `now`; most of the queue waits for `port`.
  void stopped(std::size_t queue, PortId port, Time now);
  /// It may go on at `now`.
  void resumed(std::size_t queue, Time now);

  /// The sender of `queue` has credits for `room` bytes of frames, of which the largest takes `largest`.
  void give_credits(std::size_t queue, Bytes room, Bytes largest);
  /// A frame waits in a queue with credits. True if no full frame has room now, and one had before: see stopped().
  bool waits(std::size_t queue, Bytes frame);
  /// And leaves it.
  void leaves(std::size_t queue, Bytes frame, Time now);

  /// Without the stop that has not ended yet.
  std::span<const PauseCause> of_queue(std::size_t queue) const { return causes_[queue]; }
  /// The cause that a queue is stopped for, as its place in of_queue(); `none` if it is not stopped.
  std::uint32_t current(std::size_t queue) const { return current_[queue]; }
  Time since(std::size_t queue) const { return since_[queue]; }
  std::uint64_t memory_bytes() const;

  static constexpr std::uint32_t none = 0xffffffffU;

 private:
  std::vector<std::vector<PauseCause>> causes_;  // few each
  std::vector<std::uint32_t> current_;
  std::vector<Time> since_;
  struct Room {
    Bytes held;  // of frames that wait
    Bytes max;   // with which a full frame has room beside them
  };
  std::vector<Room> rooms_;  // by queue; empty without credits
};

}  // namespace weft
