// SPDX-License-Identifier: GPL-2.0-only
// The reasons for which a queue pair waits while it has something to send.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "units/time.hpp"

namespace weft {

/// Sums since the queue pair was opened.
struct SendTimes {
  Time sent;      ///< its packets were put on the wire for the first time
  Time repeated;  ///< again, or it waited for news of packets that were lost
  Time nic;       ///< it could have sent, and its NIC sent something else
  Time window;    ///< it waited for acknowledgements
  Time pacing;    ///< congestion control held it back, by its rate or by a smaller window
  Time paused;    ///< for the link
  Time slowed;    ///< of `sent`: because the link had a lower rate than its own
};

/// From the sums `from` to the later sums `to`. A wait that was not over at `from`, and turned out to be for a lost
/// packet, has moved to `repeated` as a whole: what it held already at `from` is missing at the other sum.
constexpr SendTimes between(const SendTimes& from, const SendTimes& to) {
  SendTimes times{to.sent - from.sent,     to.repeated - from.repeated, to.nic - from.nic,      to.window - from.window,
                  to.pacing - from.pacing, to.paused - from.paused,     to.slowed - from.slowed};
  for (Time* const part : {&times.window, &times.pacing, &times.paused}) {
    times.repeated += std::min(*part, Time());
    *part = std::max(*part, Time());
  }
  return times;
}

/// While it has something to send, a queue pair puts a packet on the wire or waits for one of the reasons below. Each
/// moment counts once, so that differences of the sums give the delays of a message.
class SendWaits {
 public:
  enum class Reason : std::uint8_t { none, nic, window, pacing, paused };

  /// From `now`, or from the end of its packet on the wire, it waits for `reason`; `none`: it has nothing to send.
  void wait_for(Reason reason, Time now) {
    if (reason == reason_) [[likely]]
      return;
    settle(now);
    reason_ = reason;
  }
  /// Reason and start of a wait whose time until `now` turns out to have been for a lost packet; `none`: it had nothing
  /// else to send.
  struct Taken {
    Reason reason = Reason::none;
    Time since;
  };
  /// A packet is known to be lost: the wait since the last change was for this packet.
  std::optional<Taken> learn_of_loss(Time now) {
    if (reason_ == Reason::nic || now <= since_) return std::nullopt;
    const Taken taken{reason_, since_};
    repeated_ += now - since_;
    since_ = now;
    return taken;
  }
  /// A packet is on the wire from `now` to `end`.
  void put_on_wire(Time now, Time end, bool again) {
    (again ? repeated_ : sent_) += end - now;
    last_again_ = again;
    since_ = wire_free_ = end;
  }
  /// The packet that was put on the wire last takes longer by `time`, because the link is slower than it should be.
  void slow_down(Time time) {
    if (!last_again_) slowed_ += time;
  }
  /// Sums until `now`, which is not before any earlier call.
  SendTimes until(Time now) const {
    SendTimes times{
        sent_,  repeated_, waited(Reason::nic), waited(Reason::window), waited(Reason::pacing), waited(Reason::paused),
        slowed_};
    const Time open = std::max(Time(), now - since_);
    if (reason_ == Reason::nic) times.nic += open;
    if (reason_ == Reason::window) times.window += open;
    if (reason_ == Reason::pacing) times.pacing += open;
    if (reason_ == Reason::paused) times.paused += open;
    (last_again_ ? times.repeated : times.sent) -= std::max(Time(), wire_free_ - now);
    return times;
  }

 private:
  Time waited(Reason reason) const { return waited_[static_cast<std::size_t>(reason) - 1]; }
  void settle(Time now) {
    if (reason_ != Reason::none) waited_[static_cast<std::size_t>(reason_) - 1] += std::max(Time(), now - since_);
    since_ = std::max(now, wire_free_);
  }

  Time since_;      // it has waited for reason_, and not before wire_free_
  Time wire_free_;  // end of its last packet on the wire
  Reason reason_ = Reason::none;
  bool last_again_ = false;
  Time sent_;
  Time repeated_;
  Time slowed_;
  std::array<Time, 4> waited_{};  // [reasons but none]
};

}  // namespace weft
