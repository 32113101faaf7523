// SPDX-License-Identifier: GPL-2.0-only
// Both halves of a reliable connection and a network in memory that loses, reorders and doubles packets.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include <gtest/gtest.h>

#include "support/basics/random.hpp"
#include "transport/recovery/reliable_receiver.hpp"
#include "transport/recovery/reliable_sender.hpp"

namespace weft::test {

struct ChannelRules {
  std::uint64_t seed = 1;
  double data_loss = 0, ack_loss = 0;
  double doubling = 0;  ///< probability that a data packet arrives twice
  double trimming = 0;  ///< probability that it arrives without its payload
  Time delay = Time::from_ps(9000);
  Time jitter;  ///< up to so much more, drawn for each packet
  Time packet_time = Time::from_ps(1000);
  std::int64_t window = 16;  ///< packets
  std::uint64_t first = 0;   ///< first sequence number
  Bytes mtu{100};
};

/// Sends `sizes` messages and checks on the way that they are delivered once, in order, with their descriptors.
class ReliableChannel {
 public:
  ReliableChannel(const RecoveryRules& rules, const ChannelRules& channel)
      : sender(NodeId(1), 0, channel.mtu, channel.first), receiver(channel.first), rules_(rules), channel_(channel) {}

  MessagePool pool;
  ReliableSender sender;
  ReliableReceiver receiver;
  std::uint64_t delivered = 0, done = 0, packets = 0, nacks = 0, acks = 0;
  Bytes acked;
  Time now;

  void run(const std::vector<std::int64_t>& sizes) {
    sizes_ = sizes;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      Message message;
      message.bytes = Bytes(sizes[i]);
      message.token = i;
      sender.post(pool.add(message), pool);
    }
    while (step()) ASSERT_LT(packets, 2'000'000U) << "no progress";
    EXPECT_EQ(delivered, sizes.size());
    EXPECT_EQ(done, sizes.size());
    EXPECT_TRUE(sender.idle());
    EXPECT_EQ(sender.in_flight(), Bytes());
    EXPECT_EQ(pool.live(), 0U);
  }

 private:
  struct Answer {
    ReliableReceiver::Answer answer;
    bool nack;
  };
  double draw() { return random_unit(channel_.seed, ++draws_); }
  static double random_unit(std::uint64_t seed, std::uint64_t count) {
    return static_cast<double>(mix64(mix64(seed) + count) >> 11) * 0x1p-53;
  }
  Time arrival() {
    return now + channel_.delay +
           Time::from_ps(static_cast<std::int64_t>(draw() * static_cast<double>(channel_.jitter.ps())));
  }

  bool can_send() {
    if (!sender.has_packet()) return false;
    return sender.in_flight() == Bytes() ||
           sender.in_flight() + sender.next_payload(pool) <= channel_.window * channel_.mtu;
  }

  // The next thing that happens; false if nothing will.
  bool step() {
    const Time data_at = data_.empty() ? Time::max() : data_.begin()->first;
    const Time answer_at = answers_.empty() ? Time::max() : answers_.begin()->first;
    const Time send_at = can_send() ? std::max(free_at_, now) : Time::max();
    const Time next = std::min({data_at, answer_at, send_at, std::max(now, sender.deadline(rules_))});
    if (next == Time::max()) return false;
    now = next;
    if (next == data_at)
      receive();
    else if (next == answer_at)
      answer();
    else if (next == send_at)
      send();
    else
      take(sender.on_timeout(now, pool, rules_));
    return true;
  }

  void send() {
    Packet packet = sender.next_packet(now, NodeId(0), pool);
    if (!can_send()) packet.flags |= packet_ask;
    ++packets;
    free_at_ = now + channel_.packet_time;
    Sending& sending = sent_[packet.psn];
    EXPECT_EQ((packet.flags & packet_again) != 0, sending.times > 0) << "psn " << packet.psn;
    sending = {now, sending.times + 1};
    const bool last = (packet.flags & packet_last) != 0;
    if (draw() < channel_.data_loss) {
      if (last) pool.release(packet.message);
      return;
    }
    if (draw() < channel_.trimming) {
      if (last) pool.release(packet.message);
      packet.payload = 0;
      packet.flags = static_cast<std::uint8_t>((packet.flags & ~packet_last) | packet_trimmed);
    } else if (draw() < channel_.doubling) {
      Packet twin = packet;
      if (last) twin.message = pool.add(pool[packet.message]);
      data_.emplace(arrival(), twin);
    }
    data_.emplace(arrival(), packet);
  }

  void receive() {
    const Packet packet = data_.begin()->second;
    data_.erase(data_.begin());
    const auto answer = receiver.on_data(now, packet, pool, rules_, Time());
    nacks += answer.nack ? 1 : 0;
    acks += answer.ack ? 1 : 0;
    if (answer.nack && draw() >= channel_.ack_loss) answers_.emplace(arrival(), Answer{answer, true});
    if (answer.ack && draw() >= channel_.ack_loss) answers_.emplace(arrival(), Answer{answer, false});
    for (std::uint32_t i = 0; i < answer.delivered; ++i) {
      const std::uint32_t slot = receiver.take_delivered();
      ASSERT_LT(delivered, sizes_.size());
      EXPECT_EQ(pool[slot].token, delivered);
      EXPECT_EQ(pool[slot].bytes, Bytes(sizes_[delivered]));
      EXPECT_EQ(static_cast<std::uint32_t>(pool[slot].first_psn + pool[slot].packets - channel_.first),
                static_cast<std::uint32_t>(packets_until(delivered)));
      pool.release(slot);
      ++delivered;
    }
  }

  void answer() {
    const Answer came = answers_.begin()->second;
    answers_.erase(answers_.begin());
    if (!came.nack) {
      const auto progress = sender.on_ack(now, came.answer.expected, came.answer.caused_by, pool, rules_);
      if (progress.rtt != Time()) {  // Karn and Partridge 1987: only of packets that were sent once
        EXPECT_EQ(sent_[came.answer.caused_by].times, 1U);
        EXPECT_EQ(progress.rtt, now - sent_[came.answer.caused_by].at);
      }
      return take(progress);
    }
    take(came.answer.trimmed ? sender.on_trimmed(now, came.answer.caused_by, pool, rules_)
                             : sender.on_nack(now, came.answer.expected, pool, rules_));
  }

  void take(const ReliableSender::Progress& progress) {
    acked += progress.acked;
    for (std::uint32_t i = 0; i < progress.done; ++i) {
      const std::uint32_t slot = sender.take_done(pool);
      EXPECT_EQ(pool[slot].token, done);
      pool.release(slot);
      ++done;
    }
    EXPECT_LE(done, delivered);
    EXPECT_GE(sender.in_flight(), Bytes());
  }

  std::uint64_t packets_until(std::uint64_t message) const {
    std::uint64_t sum = 0;
    for (std::uint64_t i = 0; i <= message; ++i) sum += packet_count(Bytes(sizes_[i]), channel_.mtu);
    return sum;
  }

  struct Sending {
    Time at;
    std::uint32_t times = 0;
  };
  RecoveryRules rules_;
  ChannelRules channel_;
  std::vector<std::int64_t> sizes_;
  std::multimap<Time, Packet> data_;
  std::multimap<Time, Answer> answers_;
  std::map<std::uint32_t, Sending> sent_;
  Time free_at_;
  std::uint64_t draws_ = 0;
};

}  // namespace weft::test
