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
#include "units/bytes.hpp"
#include "units/id.hpp"
#include "units/time.hpp"

namespace weft {

constexpr std::uint32_t no_slot = 0xffffffffU;
constexpr std::uint64_t no_message = UINT64_MAX;
/// The id of message `number` of those that `source` sends.
constexpr std::uint64_t message_id(NodeId source, std::uint64_t number) {
  return std::uint64_t{source.value()} << 32 | number;
}

/// A link and how long a message's last packet waited for it.
struct LinkWait {
  std::uint32_t link = 0;  ///< directed link
  Time wait;
};

/// The record of a message. Plain data: it is copied between processes with the message's last packet, so that the
/// receiver needs no look-up at the sender.
struct Message {
  static constexpr Time not_sent = Time::from_ps(-1);

  std::uint64_t id = 0;  ///< message_id()
  Bytes bytes;
  Time issued;
  Time ideal;  ///< alone on an idle network
  std::uint64_t packets = 0;
  std::uint64_t first_psn = 0;  ///< number of its first packet on its queue pair, on networks that lose packets
  /// Id of the message that had to arrive before this one could be sent: to its sender, or, if a slot of the receiver
  /// was what was missing, the earlier one of the same connection that had it. no_message: an operation began.
  std::uint64_t cause = no_message;
  std::uint64_t token = 0;        ///< of whoever waits for completion at the source
  NodeId source;                  ///< a host
  NodeId destination;             ///< a host
  std::uint32_t source_rank = 0;  ///< whose program sends it; a host may have several
  std::uint32_t destination_rank = 0;
  std::uint32_t queue_pair = 0;  ///< at the source
  std::uint32_t collective = 0;  ///< id of the collective call, or no_slot
  std::uint32_t communicator = 0;
  std::uint32_t channel = 0;
  std::uint32_t tag = 0;
  std::uint32_t sequence = 0;             ///< number among the sends of (source, destination, tag), in program order
  std::uint32_t telemetry = no_slot;      ///< handle of the record of its last packet, where packets collect such
  std::uint16_t notify = 0;               ///< the sender waits for completion
  std::uint16_t one_sided = 0;            ///< written into memory: no recv takes it
  std::uint32_t parts = 1;                ///< messages that make up the whole, if its data is split over queue pairs
  std::uint32_t next = no_slot;           ///< next message of the same queue pair, or of the free list
  Time waited;                            ///< time that its last packet has spent in queues of switches
  std::array<LinkWait, 3> longest_waits;  ///< where, the longest first
  /// Time that flow control has held it: its packets at their host, and its last packet in queues of switches.
  Time paused;
  Time pause_mark;  ///< how long the class had been paused when the last packet came to its queue
  /// Time from the sending of a packet that was lost until it was sent again, where several overlap once.
  Time retransmission;
  Time recovered;   ///< until then retransmission has been counted
  Time first_sent;  ///< its first packet was sent then, the last time
  // Its delays at its host, for parts_of().
  SendTimes at_host;  ///< until its last packet left; `sent`: its own packets before that; `nic` is what is left
  // Links that are slower than they should be: for how long the last packet was on such wires for that reason, and for
  // how long the packets before it were on the slowest of these behind the host.
  Time slower;
  Time slower_before;
  Time ahead;                  ///< earlier messages of the queue pair were sent
  Time paused_in_network;      ///< of `paused`: in queues of switches
  Time last_sent = not_sent;   ///< its last packet left, the last time; not_sent: there are no packets
  Time arrived;                ///< its last packet did; 0: when the message was delivered
  std::uint32_t repaired = 0;  ///< the packet that completed it had been sent again
  std::uint32_t posting = 0;   ///< ns before `issued`: for so long it was being handed to its NIC

  /// It is handed to a queue pair: sums until now.
  void begin(const SendTimes& times) {
    ahead = -times.sent;
    at_host = {Time(), -times.repeated, Time(), -times.window, -times.pacing, -times.paused, Time()};
  }
  /// The wait of its queue pair in which it was posted turns out to be for a packet that was lost before. What of that
  /// wait had passed by then is none of this message's.
  void posted_in_wait_for_loss(const SendWaits::Taken& taken) {
    const Time before = std::max(Time(), issued - taken.since);
    at_host.repeated -= before;
    if (taken.reason == SendWaits::Reason::window) at_host.window += before;
    if (taken.reason == SendWaits::Reason::pacing) at_host.pacing += before;
    if (taken.reason == SendWaits::Reason::paused) at_host.paused += before;
  }
  /// Its first packet leaves, for the first time.
  void begin_sending(const SendTimes& times) {
    ahead += times.sent;
    at_host.sent = -times.sent;
    at_host.slowed = -times.slowed;
  }
  /// Its last packet leaves at `now`; if not for the first time, it has waited since for what was lost.
  void end_sending(Time now, const SendTimes& times) {
    if (last_sent != not_sent) {
      at_host.repeated += now - last_sent;
    } else {
      at_host.sent += times.sent;
      at_host.slowed += times.slowed;
      at_host.repeated += times.repeated;
      at_host.window += times.window;
      at_host.pacing += times.pacing;
      at_host.paused += times.paused;
    }
    last_sent = now;
  }

  void add_wait(std::uint32_t link, Time wait) {
    if (wait <= Time()) return;
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
constexpr std::uint64_t packet_count(Bytes bytes, Bytes mtu) {
  return bytes == Bytes() ? 1 : static_cast<std::uint64_t>((bytes + mtu - Bytes(1)) / mtu);
}

}  // namespace weft
