// SPDX-License-Identifier: GPL-2.0-only
// Why a rank has waited until now, by the event that ended the wait: add_to() divides the last `ps` of the time until
// then into parts.
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

/// A message has arrived: the wait was for the delays of this message, and before that for its sender, which may have
/// spent the last `posting` of that time on handing the message to its NIC.
struct BecauseOfMessage {
  const TimeParts& message;
  Time posting = Time();
  void add_to(TimeParts& parts, std::int64_t ps) const {
    parts.add_end_of(message, ps);
    const std::int64_t posted = std::clamp<std::int64_t>(ps - message.total(), 0, posting.ps());
    parts[TimePart::peers] -= posted;
    parts[TimePart::handling] += posted;
  }
};

/// A receiver has answered a queue pair: a slot is free, or all data have arrived. The wait was for what the queue pair
/// did in the meantime, in the same shares; while it had nothing to send, for `otherwise`, but for peers as long as the
/// receiver was late.
struct BecauseOfSending {
  SendTimes from;  ///< sums at the beginning of `span`
  SendTimes to;    ///< at its end
  std::int64_t span = 0;
  TimePart otherwise = TimePart::credits;
  std::int64_t late = 0;  ///< ps: for so long the receiver had not begun, or waited for other ranks itself

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
    const Time slowed = std::clamp(times.slowed, Time(), std::max(times.sent, Time()));
    add(TimePart::transfer, times.sent - slowed);
    add(TimePart::slowed, slowed);
    add(TimePart::nic, times.nic);
    add(TimePart::window, times.window);
    add(TimePart::pacing, times.pacing);
    add(TimePart::paused, times.paused);
    add(TimePart::retransmission, times.repeated);
    const std::int64_t peers = std::min(late, rest);
    parts[TimePart::peers] += peers;
    parts[otherwise] += rest - peers;
  }
};

}  // namespace weft
