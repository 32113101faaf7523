// SPDX-License-Identifier: GPL-2.0-only
// Why a rank has waited until now, by the event that ended the wait. Each function adds the time since the last such
// event to parts.
#pragma once

#include <algorithm>
#include <cstdint>

#include "support/basics/time_parts.hpp"
#include "transport/messages/send_waits.hpp"

namespace weft {

/// The whole wait had one cause.
struct Because {
  TimePart part;
  void add_to(TimeParts& parts, std::int64_t ps) const { parts[part] += ps; }
};

/// A message has arrived: the wait was for the delays of this message, and before that for its sender.
struct BecauseOfMessage {
  const TimeParts& message;
  void add_to(TimeParts& parts, std::int64_t ps) const { parts.add_end_of(message, ps); }
};

/// A receiver has answered a queue pair: a slot is free, or all data have arrived. The wait was for what the queue pair
/// did in the meantime, in the same shares; while it had nothing to send, for `otherwise`.
struct BecauseOfSending {
  SendTimes from;  ///< sums at the beginning of `span`
  SendTimes to;    ///< at its end
  std::int64_t span = 0;
  TimePart otherwise = TimePart::credits;

  void add_to(TimeParts& parts, std::int64_t ps) const {
    std::int64_t rest = ps;
    const auto add = [&](TimePart part, Time spent) {
      const std::int64_t share =
          span > 0 ? static_cast<std::int64_t>(static_cast<__int128>(std::clamp<std::int64_t>(spent.ps(), 0, span)) *
                                               ps / span)
                   : 0;
      parts[part] += std::min(share, rest);
      rest -= std::min(share, rest);
    };
    const SendTimes times = between(from, to);
    add(TimePart::transfer, times.sent);
    add(TimePart::nic, times.nic);
    add(TimePart::window, times.window);
    add(TimePart::pacing, times.pacing);
    add(TimePart::paused, times.paused);
    add(TimePart::retransmission, times.repeated);
    parts[otherwise] += rest;
  }
};

}  // namespace weft
