// SPDX-License-Identifier: GPL-2.0-only
// The sending half of a reliable connection: messages in order, cut into MTU packets, limited by a window.
#pragma once

#include <cstdint>
#include <vector>

#include "transport/messages/message.hpp"
#include "transport/messages/packet.hpp"
#include "transport/messages/send_waits.hpp"
#include "units/bytes.hpp"
#include "units/time.hpp"

namespace weft {

/// Send state of one queue pair. Packets of one queue pair carry consecutive packet sequence numbers (InfiniBand
/// Architecture Specification vol. 1, 9.2; 32 instead of 24 bits).
class QueuePair {
 public:
  /// `mtu`: payload of its full packets, 1 to 65,535 B.
  QueuePair(NodeId destination, std::uint32_t number, std::uint32_t path_profile, Bytes mtu)
      : destination_(destination),
        number_(number),
        path_profile_(path_profile),
        mtu_(static_cast<std::uint16_t>(mtu.count())) {}

  NodeId destination() const { return destination_; }
  std::uint32_t path_profile() const { return path_profile_; }
  Bytes mtu() const { return Bytes(mtu_); }

  /// Append a message (a slot of `pool`).
  void post(Time now, std::uint32_t slot, MessagePool& pool) {
    waits.post(now);
    pool[slot].begin(waits.until(now));
    if (head_ == no_slot) {
      head_ = slot;
      remaining_ = pool[slot].bytes;
      first_ = true;
    } else {
      pool[tail_].next = slot;
    }
    tail_ = slot;
  }

  /// A packet may leave now: there is data, and with it no more than `window` payload bytes are unacknowledged. One
  /// packet is always allowed, so that a window below the MTU sends packet by packet.
  bool ready(Bytes window) const {
    if (head_ == no_slot) return false;
    const Bytes payload = remaining_ < mtu() ? remaining_ : mtu();
    return in_flight_ == Bytes() || in_flight_ + payload <= window;
  }

  /// The next packet. Requires ready(). `counted`: it will be acknowledged.
  Packet next_packet(Time now, NodeId source, bool counted, MessagePool& pool) {
    Packet packet;
    packet.set_ends(source, destination_);
    packet.queue_pair = number_;
    packet.psn = next_psn_++;
    const Bytes payload = remaining_ < mtu() ? remaining_ : mtu();
    packet.payload = static_cast<std::uint16_t>(payload.count());
    packet.kind = PacketKind::data;
    if (first_) {
      packet.flags |= packet_first;
      pool[head_].begin_sending(waits.until(now));
    }
    first_ = false;
    remaining_ -= payload;
    if (counted) in_flight_ += payload;
    if (remaining_ == Bytes()) {
      packet.flags |= packet_last;
      packet.message = head_;
      Message& message = pool[head_];
      message.end_sending(now, waits.until(now));
      if (message.notify != 0) packet.flags |= packet_notify;
      head_ = message.next;
      if (head_ != no_slot) {
        remaining_ = pool[head_].bytes;
        first_ = true;
      }
    }
    return packet;
  }

  void acknowledge(Bytes payload) {
    in_flight_ -= payload;
    WEFT_EXPECT(in_flight_ >= Bytes(), "queue pair {} has {} bytes in flight", number_, in_flight_.count());
  }

  bool has_packet() const { return head_ != no_slot; }
  bool idle() const { return head_ == no_slot && in_flight_ == Bytes(); }
  Bytes in_flight() const { return in_flight_; }

  /// Tokens of messages whose sender waits for completion leave in the order in which they were posted.
  void push_completion(std::uint64_t token) { completions_.push_back(token); }
  std::uint64_t pop_completion() {
    const std::uint64_t token = completions_[completed_++];
    if (completed_ * 2 > completions_.size()) {
      completions_.erase(completions_.begin(), completions_.begin() + static_cast<std::ptrdiff_t>(completed_));
      completed_ = 0;
    }
    return token;
  }
  /// In the NIC's round-robin list of queue pairs that have something to send.
  bool listed = false;
  SendWaits waits;

 private:
  NodeId destination_;
  std::uint32_t number_;
  std::uint32_t path_profile_;
  std::uint32_t head_ = no_slot;
  std::uint32_t tail_ = no_slot;
  std::uint32_t next_psn_ = 0;
  std::uint16_t mtu_;
  bool first_ = false;
  Bytes remaining_;
  Bytes in_flight_;
  std::vector<std::uint64_t> completions_;
  std::size_t completed_ = 0;
};

}  // namespace weft
