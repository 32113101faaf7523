// SPDX-License-Identifier: GPL-2.0-only
// What a time was spent on: parts that add up to it, to the picosecond.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace weft {

/// In the order of the columns `part_...` of results.
enum class TimePart : std::uint8_t {
  compute,
  launch,
  handling,
  sending,
  transfer,  // from here to `reordering`: of a message
  slowed,
  queueing,
  nic,
  ahead,
  window,
  pacing,
  paused,
  retransmission,
  reordering,
  credits,
  peers,
  host,
  idle,
};
constexpr std::size_t time_part_count = 18;

struct TimePartText {
  std::string_view column;
  std::string_view description;
};

/// [parts]
constexpr std::array<TimePartText, time_part_count> time_part_texts = {{
    {"part_compute", "a compute operation was running"},
    {"part_launch", "a collective was being launched"},
    {"part_handling", "slices were copied, reduced or posted"},
    {"part_sending", "waited until a message of its own was acknowledged"},
    {"part_transfer", "bits were on their way, as on an idle network"},
    {"part_slowed", "bits took longer because `network.failures` had lowered the rate of a link"},
    {"part_queueing", "packets waited behind others in queues of switches"},
    {"part_nic", "the sender's NIC sent something else"},
    {"part_ahead", "the queue pair sent earlier messages"},
    {"part_window", "the queue pair waited for acknowledgements"},
    {"part_pacing", "congestion control held the queue pair back, by its rate or by a smaller window"},
    {"part_paused", "flow control of links stopped packets, in the NIC and in switches"},
    {"part_retransmission", "packets were lost and had to be sent again"},
    {"part_reordering", "the last packet was there before others"},
    {"part_credits", "waited for a free slot at a receiver that had begun"},
    {"part_peers", "waited for other ranks, which had not sent or begun yet"},
    {"part_host", "nothing was running but the rank's host, which launched kernels and collectives"},
    {"part_idle", "nothing was running"},
}};

/// ps of each part.
class TimeParts {
 public:
  std::int64_t& operator[](TimePart part) { return ps_[static_cast<std::size_t>(part)]; }
  std::int64_t operator[](TimePart part) const { return ps_[static_cast<std::size_t>(part)]; }
  std::int64_t total() const {
    std::int64_t sum = 0;
    for (const std::int64_t part : ps_) sum += part;
    return sum;
  }
  TimeParts& operator+=(const TimeParts& other) {
    for (std::size_t i = 0; i < ps_.size(); ++i) ps_[i] += other.ps_[i];
    return *this;
  }
  /// Parts of `from` ps become parts of `to` ps, in the same shares; what rounding leaves goes to the longest one.
  void scale(std::int64_t from, std::int64_t to) {
    std::int64_t rest = to;
    auto longest = ps_.begin();
    for (auto part = ps_.begin(); part != ps_.end(); ++part) {
      if (*part == 0) continue;
      *part = static_cast<std::int64_t>(static_cast<__int128>(*part) * to / from);
      rest -= *part;
      if (*part > *longest) longest = part;
    }
    *longest += rest;
  }
  void fill(std::int64_t ps) { ps_.fill(ps); }
  auto begin() { return ps_.begin(); }
  auto end() { return ps_.end(); }

  /// Adds the last `ps` of a message's time. A part of the message is one stretch of it here, in the order of
  /// `in_time`. The rest of the time passed before the message was sent: it is waiting for the sender.
  void add_end_of(const TimeParts& message, std::int64_t ps) {
    constexpr TimePart in_time[] = {
        TimePart::ahead,          TimePart::nic,    TimePart::window,   TimePart::pacing,   TimePart::paused,
        TimePart::retransmission, TimePart::slowed, TimePart::transfer, TimePart::queueing, TimePart::reordering};
    for (auto part = std::rbegin(in_time); part != std::rend(in_time) && ps > 0; ++part) {
      const std::int64_t taken = std::min(ps, message[*part]);
      (*this)[*part] += taken;
      ps -= taken;
    }
    (*this)[TimePart::peers] += ps;
  }

  friend bool operator==(const TimeParts&, const TimeParts&) = default;

 private:
  std::array<std::int64_t, time_part_count> ps_{};
};

}  // namespace weft
