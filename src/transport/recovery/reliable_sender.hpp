// SPDX-License-Identifier: GPL-2.0-only
// The sending half of a reliable connection on a network that loses or reorders packets.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "transport/messages/message.hpp"
#include "transport/messages/packet.hpp"
#include "transport/messages/send_waits.hpp"
#include "transport/recovery/recovery.hpp"
#include "units/bytes.hpp"
#include "units/time.hpp"

namespace weft {

/// Messages in order, cut into packets with consecutive sequence numbers, kept until they are acknowledged. Knows
/// neither rates nor the network: its owner decides when to send. Sequence numbers are 64 bits wide here and 32 in
/// packets.
class ReliableSender {
 public:
  /// `mtu`: payload of full packets, 1 to 65,535 B; `first`: number of the first packet, which both ends agree on.
  ReliableSender(NodeId destination, std::uint32_t number, Bytes mtu, std::uint64_t first = 0)
      : destination_(destination),
        number_(number),
        mtu_(static_cast<std::uint16_t>(mtu.count())),
        acked_(first),
        next_(first),
        high_(first),
        posted_(first) {}

  NodeId destination() const { return destination_; }
  std::uint32_t number() const { return number_; }
  Bytes mtu() const { return Bytes(mtu_); }

  /// Append a message (a slot of `pool`). Its first_psn is set here.
  void post(std::uint32_t slot, MessagePool& pool);

  /// Where the oldest packet that is not acknowledged is kept, or null; and the slot of its message, or no_slot. For
  /// fetching ahead.
  const void* oldest_sent() const { return ring_.empty() ? nullptr : &sent(acked_); }
  std::uint32_t oldest_message() const { return oldest_; }

  /// True if a packet waits to be sent, for the first time or again.
  bool has_packet() const { return lost_ > 0 || next_ < posted_; }
  /// Payload of the packet that next_packet() would give. Requires has_packet().
  Bytes next_payload(const MessagePool& pool) const;
  /// Slot of the message of the packet that next_packet() would give. Requires has_packet().
  std::uint32_t next_message(const MessagePool& pool) const { return message_of(next_psn(), pool); }
  /// The next packet. Requires has_packet(). A message's last packet carries a descriptor of its own in `pool`.
  /// `waits`: of the queue pair; messages take their delays from it.
  Packet next_packet(Time now, NodeId source, MessagePool& pool, const SendWaits& waits = {});

  /// The effects of an ACK or NACK.
  struct Progress {
    Bytes acked;             ///< payload that was not known to have arrived before
    Time rtt;                ///< of the packet that caused it, from its first bit; 0 if it was sent twice
    Bytes lost;              ///< payload that has to be sent again
    std::uint32_t done = 0;  ///< messages that are acknowledged as a whole; take them with take_done()
  };
  /// `expected`: the next number that the receiver expects; `caused_by`: the packet that it answers, or expected - 1.
  Progress on_ack(Time now, std::uint32_t expected, std::uint32_t caused_by, MessagePool& pool,
                  const RecoveryRules& rules);
  /// The receiver misses `expected`. With go_back_0 it is the first packet of a message.
  Progress on_nack(Time now, std::uint32_t expected, MessagePool& pool, const RecoveryRules& rules);
  /// The payload of packet `missing` has been cut off on its way.
  Progress on_trimmed(Time now, std::uint32_t missing, MessagePool& pool, const RecoveryRules& rules);
  /// The timeout has expired without an answer: everything that is in flight is lost.
  Progress on_timeout(Time now, MessagePool& pool, const RecoveryRules& rules);
  /// When to call on_timeout(); Time::max() if nothing is in flight.
  Time deadline(const RecoveryRules& rules) const;

  /// SendWaits::learn_of_loss() has said `taken`: messages that were posted in that wait learn of it.
  void learn_of_loss(const std::optional<SendWaits::Taken>& taken, MessagePool& pool);

  /// Slot of the oldest message that is done; the caller releases it.
  std::uint32_t take_done(MessagePool& pool);

  bool idle() const { return acked_ == posted_; }
  Bytes in_flight() const { return in_flight_; }  ///< payload sent and neither acknowledged nor lost
  std::uint64_t acked() const { return acked_; }  ///< all packets below are acknowledged
  std::uint64_t next() const { return next_; }    ///< number of the next new packet
  /// Packets sent, again and again included, since psn 0.
  std::uint64_t sent_packets() const { return high_ + repeated_; }
  std::uint64_t repeated() const { return repeated_; }  ///< packets sent again
  std::uint64_t lost() const { return lost_; }          ///< packets that are lost and not sent again yet
  std::uint64_t timeouts() const { return timeouts_; }

 private:
  enum class State : std::uint8_t { unsent, flying, arrived, lost };
  struct Sent {
    Time at;
    std::uint16_t payload = 0;
    State state = State::unsent;
    bool again = false;
  };

  Sent& sent(std::uint64_t psn) { return ring_[psn & (ring_.size() - 1)]; }
  const Sent& sent(std::uint64_t psn) const { return ring_[psn & (ring_.size() - 1)]; }
  std::uint64_t unwrap(std::uint32_t psn) const {
    return acked_ + static_cast<std::uint64_t>(
                        static_cast<std::int64_t>(static_cast<std::int32_t>(psn - static_cast<std::uint32_t>(acked_))));
  }
  std::uint64_t next_psn() const;
  void count_recovery(Time now, std::uint64_t psn, Message& message);
  void reserve(std::uint64_t psn) {
    if (psn - acked_ >= ring_.size()) [[unlikely]]
      grow();
  }
  void grow();
  Bytes payload_of(const Message& message, std::uint64_t psn) const;
  /// The message of a packet that is not acknowledged yet, looked for from the cursor or from the oldest one.
  std::uint32_t message_of(std::uint64_t psn, const MessagePool& pool) const;
  Bytes take_acked(std::uint64_t up_to);
  Bytes take_arrived(std::uint64_t psn);
  void finish_messages(const MessagePool& pool, Progress& progress);
  Bytes lose(std::uint64_t psn);
  Bytes lose_overtaken(std::uint64_t arrived, const RecoveryRules& rules);
  Bytes go_back(std::uint64_t to);
  std::uint64_t message_start(std::uint64_t psn, const MessagePool& pool) const;

  NodeId destination_;
  std::uint32_t number_;
  std::uint32_t oldest_ = no_slot;  // message that is not acknowledged as a whole
  std::uint32_t tail_ = no_slot;
  std::uint32_t cursor_ = no_slot;  // message of packet next_, if it is known
  std::uint32_t fresh_ = no_slot;   // first message that was posted since a packet was sent or a loss became known
  std::uint32_t done_ = 0;          // messages at the head of the list that are acknowledged as a whole
  std::uint16_t mtu_;
  std::uint64_t acked_ = 0;
  std::uint64_t next_ = 0;
  std::uint64_t high_ = 0;             // first number that was never sent
  std::uint64_t posted_ = 0;           // first number beyond the last message
  std::uint64_t first_lost_ = 0;       // no packet below is lost
  std::uint64_t lost_ = 0;             // packets that are lost and not sent again
  std::uint64_t missed_ = UINT64_MAX;  // packet for which the sender has gone back, until it is sent again
  std::uint64_t nacked_ = UINT64_MAX;  // packet of the last NACK
  std::uint32_t in_vain_ = 0;          // NACKs of it after which it was sent again
  Bytes in_flight_;
  std::uint64_t flying_ = 0;
  Time progress_at_;
  std::uint64_t repeated_ = 0;
  std::uint64_t timeouts_ = 0;
  std::vector<Sent> ring_;  // [acked_, high_) by number modulo its size, a power of two
};

}  // namespace weft
