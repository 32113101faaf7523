// SPDX-License-Identifier: GPL-2.0-only
// Messages in flight: descriptors that travel with the last packet of each message.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "support/basics/contract.hpp"
#include "transport/messages/send_waits.hpp"

namespace weft {

constexpr std::uint32_t no_slot = 0xffffffffU;
constexpr std::uint64_t no_message = UINT64_MAX;

/// A link and how long a message's last packet waited for it.
struct LinkWait {
  std::uint32_t link = 0;  ///< directed link
  std::int64_t wait = 0;   ///< ps
};

/// All that is known of a message. Plain data: it is copied between processes with the message's last packet, so that
/// the receiver needs no look-up at the sender.
struct Message {
  std::uint64_t id = 0;  ///< source << 32 | number at the source
  std::int64_t bytes = 0;
  std::int64_t issued = 0;  ///< ps
  std::int64_t ideal = 0;   ///< ps, alone on an idle network
  std::uint64_t packets = 0;
  std::uint64_t first_psn = 0;  ///< number of its first packet on its queue pair, on networks that lose packets
  /// Id of the message that had to come before this one could be sent: to its sender, or, if a slot of the receiver was
  /// what was missing, the earlier one of the same connection that had it. no_message: an operation began.
  std::uint64_t cause = no_message;
  std::uint64_t token = 0;        ///< of whoever waits for completion at the source
  std::uint32_t source = 0;       ///< host node
  std::uint32_t destination = 0;  ///< host node
  std::uint32_t source_rank = 0;  ///< whose program sends it; a host may have several
  std::uint32_t destination_rank = 0;
  std::uint32_t queue_pair = 0;  ///< at the source
  std::uint32_t collective = 0;  ///< id of the collective call, or no_slot
  std::uint32_t communicator = 0;
  std::uint32_t channel = 0;
  std::uint32_t tag = 0;
  std::uint32_t sequence = 0;             ///< number among the sends of (source, destination, tag), in program order
  std::uint32_t telemetry = no_slot;      ///< records of its last packet, where packets collect such
  std::uint16_t notify = 0;               ///< the sender waits for completion
  std::uint16_t one_sided = 0;            ///< written into memory: no recv takes it
  std::uint32_t parts = 1;                ///< messages that make up the whole, if its data is split over queue pairs
  std::uint32_t next = no_slot;           ///< next message of the same queue pair, or of the free list
  std::int64_t waited = 0;                ///< ps that its last packet has spent in queues of switches
  std::array<LinkWait, 3> longest_waits;  ///< where, the longest first
  /// ps that flow control has held it: its packets at their host, and its last packet in queues of switches.
  std::int64_t paused = 0;
  std::int64_t pause_mark = 0;  ///< how long the class had been paused when the last packet came to its queue
  /// ps from the sending of a packet that was lost until it was sent again, where several overlap once.
  std::int64_t retransmission = 0;
  std::int64_t recovered = 0;   ///< ps; until then retransmission has been counted
  std::int64_t first_sent = 0;  ///< ps; its first packet was sent then, the last time
  // What it has met at its host, for parts_of(). ps.
  SendTimes met;           ///< until its last packet left; `sent`: its own packets before that; `nic` is what is left
  std::int64_t ahead = 0;  ///< earlier messages of the queue pair were sent
  std::int64_t paused_in_network = 0;  ///< of `paused`: in queues of switches
  std::int64_t last_sent = -1;         ///< its last packet left, the last time; -1: there are no packets
  std::int64_t arrived = 0;            ///< its last packet did; 0: when the message was delivered
  std::uint32_t repaired = 0;          ///< the packet that completed it had been sent again

  /// It is handed to a queue pair: sums until now.
  void begin(const SendTimes& times) {
    ahead = -times.sent;
    met = {0, -times.repeated, 0, -times.window, -times.pacing, -times.paused};
  }
  /// The wait of its queue pair in which it was posted turns out to be for a packet that was lost before. What of that
  /// wait had passed by then is none of this message's.
  void posted_in_wait_for_loss(const SendWaits::Taken& taken) {
    const std::int64_t before = std::max<std::int64_t>(0, issued - taken.since);
    std::int64_t& part = taken.reason == SendWaits::Reason::window   ? met.window
                         : taken.reason == SendWaits::Reason::pacing ? met.pacing
                                                                     : met.paused;
    part += before;
    met.repeated -= before;
  }
  /// Its first packet leaves, for the first time.
  void begin_sending(const SendTimes& times) {
    ahead += times.sent;
    met.sent = -times.sent;
  }
  /// Its last packet leaves at `now`; if not for the first time, it has waited since for what was lost.
  void end_sending(std::int64_t now, const SendTimes& times) {
    if (last_sent >= 0) {
      met.repeated += now - last_sent;
    } else {
      met.sent += times.sent;
      met.repeated += times.repeated;
      met.window += times.window;
      met.pacing += times.pacing;
      met.paused += times.paused;
    }
    last_sent = now;
  }

  void add_wait(std::uint32_t link, std::int64_t wait) {
    if (wait <= 0) return;
    waited += wait;
    LinkWait fresh{link, wait};
    for (LinkWait& known : longest_waits)
      if (fresh.wait > known.wait) std::swap(fresh, known);
  }
};

/// Descriptors by slot, with a free list. Slots are names within one process and appear in no result.
class MessagePool {
 public:
  std::uint32_t add(const Message& message) {
    std::uint32_t slot = free_;
    if (slot == no_slot) {
      slot = static_cast<std::uint32_t>(slots_.size());
      slots_.push_back(message);
    } else {
      free_ = slots_[slot].next;
      slots_[slot] = message;
    }
    slots_[slot].next = no_slot;
    ++live_;
    return slot;
  }
  void release(std::uint32_t slot) {
    slots_[slot].next = free_;
    free_ = slot;
    --live_;
  }
  Message& operator[](std::uint32_t slot) { return slots_[slot]; }
  const Message& operator[](std::uint32_t slot) const { return slots_[slot]; }
  std::uint64_t live() const { return live_; }

 private:
  std::vector<Message> slots_;
  std::uint32_t free_ = no_slot;
  std::uint64_t live_ = 0;
};

/// Number of packets of a message: ceil(bytes / mtu), and one for an empty message.
constexpr std::uint64_t packet_count(std::int64_t bytes, std::int64_t mtu) {
  return bytes == 0 ? 1 : static_cast<std::uint64_t>((bytes + mtu - 1) / mtu);
}

}  // namespace weft
