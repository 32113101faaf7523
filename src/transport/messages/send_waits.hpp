// SPDX-License-Identifier: GPL-2.0-only
// The reasons for which a queue pair waits while it has something to send.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "transport/messages/ideal_time.hpp"
#include "transport/messages/shared_link.hpp"
#include "units/time.hpp"

namespace weft {

/// Sums since the queue pair was opened.
struct SendTimes {
  Time sent;  ///< its packets were put on the wire for the first time, or waited for no longer than behind themselves
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
///
/// Where a later link is slower than the host's, packets would wait there behind earlier ones, on an idle network too.
/// Flow control, a window or a rate moves that wait to the host. It counts as sending as long as the slowest link of
/// the path would send the queue pair's own earlier packets, and as `nic` as long as that link is in the host's server
/// and would send packets of other queue pairs of the host.
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
    send_behind_own(now);
    const Taken taken{reason_, since_};
    repeated_ += now - since_;
    since_from(now);
    return taken;
  }
  /// A packet is on the wire from `now` to `end`.
  void put_on_wire(Time now, Time end, bool again) {
    (again ? repeated_ : sent_) += end - now;
    last_again_ = again;
    wire_free_ = end;
    since_from(end);
  }
  /// The path of a queue pair that has one slower link than the first. `shared`: the slowest, if it is in the host's
  /// server; it lives longer than this.
  void follow(const SlowestLink& slowest, SharedLink* shared) {
    slower_ = std::make_unique<SlowerLink>(SlowerLink{slowest, Time(), Time(), shared});
  }
  bool has_slower_link() const { return slower_ != nullptr; }
  /// If it has, before put_on_wire(): the packet of `now` is sent on the slowest link after all earlier ones. `path`
  /// and `overhead`: as for ideal_message_time().
  void occupy_slower_link(Time now, Bytes payload, const std::vector<PathLink>& path, Bytes overhead) {
    send_behind_own(now);
    const Time time = slower_->slowest.time_of(payload, path, overhead);
    slower_->free = bounded_sum(std::max(slower_->free, now), time);
    if (slower_->shared != nullptr) slower_->shared->occupy(now, time);
  }
  /// A message is posted. What of a wait was before it is known from now on, and never turns out to be for a lost
  /// packet, if others' packets were a reason for it: how much of it they were is known as a whole only.
  void post(Time now) {
    if (slower_ && slower_->shared != nullptr) settle(now);
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
    if (reason_ != Reason::none) {
      const Split wait = split(now);
      (last_again_ ? times.repeated : times.sent) += wait.own;
      times.nic += wait.others;
      if (reason_ == Reason::nic) times.nic += wait.rest;
      if (reason_ == Reason::window) times.window += wait.rest;
      if (reason_ == Reason::pacing) times.pacing += wait.rest;
      if (reason_ == Reason::paused) times.paused += wait.rest;
    }
    (last_again_ ? times.repeated : times.sent) -= std::max(Time(), wire_free_ - now);
    return times;
  }

 private:
  Time waited(Reason reason) const { return waited_[static_cast<std::size_t>(reason) - 1]; }
  /// The wait until `now`: behind its own packets, behind those of others of its host, for reason_.
  struct Split {
    Time own;
    Time others;
    Time rest;
  };
  Split split(Time now) const {
    const Time open = std::max(Time(), now - since_);
    Split wait{Time(), Time(), open};
    if (!slower_) return wait;
    wait.own = std::clamp(slower_->free - since_, Time(), open);
    if (slower_->shared != nullptr) {
      const Time busy = slower_->shared->busy_until(now) - slower_->busy_before;
      wait.others = std::clamp(busy - wait.own, Time(), open - wait.own);
    }
    wait.rest = open - wait.own - wait.others;
    return wait;
  }
  void since_from(Time time) {
    since_ = time;
    if (slower_ && slower_->shared != nullptr) slower_->busy_before = slower_->shared->busy_until(time);
  }
  void send_behind_own(Time now) {
    if (!slower_ || reason_ == Reason::none) return;
    const Time own = split(now).own;
    (last_again_ ? repeated_ : sent_) += own;
    since_ += own;
    slower_->busy_before += own;
  }
  void settle(Time now) {
    if (reason_ != Reason::none) {
      const Split wait = split(now);
      (last_again_ ? repeated_ : sent_) += wait.own;
      waited_[static_cast<std::size_t>(Reason::nic) - 1] += wait.others;
      waited_[static_cast<std::size_t>(reason_) - 1] += wait.rest;
    }
    since_from(std::max(now, wire_free_));
  }

  Time since_;      // it has waited for reason_, and not before wire_free_
  Time wire_free_;  // end of its last packet on the wire
  Reason reason_ = Reason::none;
  bool last_again_ = false;
  Time sent_;
  Time repeated_;
  Time slowed_;
  std::array<Time, 4> waited_{};  // [reasons but none]
  /// Allocated for it alone: a process has a million queue pairs, and most have no such link.
  struct SlowerLink {
    SlowestLink slowest;
    Time free;                     ///< end of its last packet there
    Time busy_before;              ///< `shared`, until since_
    SharedLink* shared = nullptr;  ///< with others of its host
  };
  std::unique_ptr<SlowerLink> slower_;
};

}  // namespace weft
