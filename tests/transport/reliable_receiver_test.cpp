// SPDX-License-Identifier: GPL-2.0-only
// The receiving half of reliable connections: answers, order, notifications.
#include "transport/recovery/reliable_receiver.hpp"

#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "tests/literals.hpp"

namespace weft::reliable_receiver_test {
namespace {

using namespace literals;

RecoveryRules rules_of(Recovery kind, std::uint32_t ack_interval = 1) {
  RecoveryRules rules;
  rules.kind = kind;
  rules.ack_interval = ack_interval;
  return rules;
}

/// A receiver that gets packet by packet.
struct Lone {
  explicit Lone(const RecoveryRules& recovery) : rules(recovery) {}
  ReliableReceiver::Answer come(std::uint32_t psn, int flags = 0, Time now = Time()) {
    Packet packet;
    packet.psn = psn;
    packet.flags = static_cast<std::uint8_t>(flags);
    if ((flags & packet_last) != 0) {
      Message message;
      message.token = psn;
      packet.message = pool.add(message);
    }
    const auto answer = receiver.on_data(now, packet, pool, rules, cnp_interval);
    for (std::uint32_t i = 0; i < answer.delivered; ++i) {
      const std::uint32_t slot = receiver.take_delivered();
      delivered.push_back(pool[slot].token);
      pool.release(slot);
    }
    return answer;
  }
  RecoveryRules rules;
  Time cnp_interval;
  MessagePool pool;
  ReliableReceiver receiver;
  std::vector<std::uint64_t> delivered;  ///< last numbers of messages
};

TEST(reliable_receiver, every_packet_in_order_is_acknowledged_with_the_next_number) {
  Lone lone(rules_of(Recovery::go_back_n));
  for (std::uint32_t psn = 0; psn < 5; ++psn) {
    const auto answer = lone.come(psn);
    EXPECT_TRUE(answer.ack);
    EXPECT_FALSE(answer.nack || answer.cnp || answer.ecn);
    EXPECT_EQ(answer.expected, psn + 1);
    EXPECT_EQ(answer.caused_by, psn);
  }
}

TEST(reliable_receiver, with_an_interval_of_four_each_fourth_and_the_last_of_a_message) {
  Lone lone(rules_of(Recovery::go_back_n, 4));
  std::vector<std::uint32_t> acks;
  for (std::uint32_t psn = 0; psn < 16; ++psn)
    if (lone.come(psn, psn == 5 || psn == 15 ? packet_last : 0).ack) acks.push_back(psn);
  // The fourth since the last ACK: 3, then the end of the message at 5, from there 9, 13, and the end.
  EXPECT_EQ(acks, (std::vector<std::uint32_t>{3, 5, 9, 13, 15}));
  EXPECT_EQ(lone.delivered, (std::vector<std::uint64_t>{5, 15}));
  EXPECT_EQ(lone.pool.live(), 0U);
}

TEST(reliable_receiver, who_is_asked_for_an_ack_gives_it) {
  Lone lone(rules_of(Recovery::go_back_n, 4));
  EXPECT_FALSE(lone.come(0).ack);
  EXPECT_TRUE(lone.come(1, packet_ask).ack);
  EXPECT_FALSE(lone.come(2).ack);
}

TEST(reliable_receiver, one_nack_for_a_gap) {
  Lone lone(rules_of(Recovery::go_back_n));
  lone.come(0);
  const auto first = lone.come(2);
  EXPECT_TRUE(first.nack);
  EXPECT_FALSE(first.ack);
  EXPECT_EQ(first.expected, 1U);
  EXPECT_FALSE(lone.come(3).nack);
  EXPECT_FALSE(lone.come(4, packet_last).nack);
  // The sender starts again, and 1 is lost a second time: numbers go down.
  EXPECT_TRUE(lone.come(2).nack);
  EXPECT_FALSE(lone.come(3).nack);
  // 1 comes: the gap is closed, and the next one is new.
  EXPECT_TRUE(lone.come(1).ack);
  EXPECT_TRUE(lone.come(3).nack);
  EXPECT_EQ(lone.receiver.expected(), 2U);
  EXPECT_EQ(lone.receiver.out_of_order(), 6U);
  EXPECT_EQ(lone.receiver.widest_gap(), 3U);
  EXPECT_EQ(lone.pool.live(), 0U);  // the descriptor of 4 is gone with it
}

TEST(reliable_receiver, the_same_packet_again_behind_the_gap_is_a_new_start_too) {
  Lone lone(rules_of(Recovery::go_back_n));
  EXPECT_TRUE(lone.come(1).nack);
  EXPECT_TRUE(lone.come(1).nack);
}

TEST(reliable_receiver, duplicates_are_acknowledged_at_once) {
  Lone lone(rules_of(Recovery::go_back_n, 8));
  lone.come(0, packet_last);
  lone.come(1);
  const auto answer = lone.come(0, packet_last);
  EXPECT_TRUE(answer.ack);
  EXPECT_EQ(answer.expected, 2U);
  EXPECT_EQ(lone.receiver.duplicates(), 1U);
  EXPECT_EQ(lone.delivered, (std::vector<std::uint64_t>{0}));
  EXPECT_EQ(lone.pool.live(), 0U);
}

TEST(reliable_receiver, go_back_0_throws_away_the_beginning_of_the_message) {
  Lone lone(rules_of(Recovery::go_back_0));
  lone.come(0);
  lone.come(1, packet_last);
  lone.come(2);
  lone.come(3);
  const auto answer = lone.come(5);
  EXPECT_TRUE(answer.nack);
  EXPECT_EQ(answer.expected, 2U);
  EXPECT_EQ(lone.receiver.expected(), 2U);
  EXPECT_FALSE(lone.come(6).nack);
  for (std::uint32_t psn = 2; psn < 7; ++psn) EXPECT_TRUE(lone.come(psn, psn == 6 ? packet_last : 0).ack);
  EXPECT_EQ(lone.delivered, (std::vector<std::uint64_t>{1, 6}));
}

TEST(reliable_receiver, selective_repeat_keeps_what_comes_early) {
  Lone lone(rules_of(Recovery::selective_repeat, 4));
  lone.come(0);
  auto answer = lone.come(2, packet_last);
  EXPECT_TRUE(answer.ack);  // reports a gap at once
  EXPECT_FALSE(answer.nack);
  EXPECT_EQ(answer.expected, 1U);
  EXPECT_EQ(answer.caused_by, 2U);
  EXPECT_EQ(lone.come(4, packet_last).expected, 1U);
  EXPECT_TRUE(lone.delivered.empty());
  answer = lone.come(1);
  EXPECT_TRUE(answer.ack);
  EXPECT_EQ(answer.expected, 3U);
  EXPECT_EQ(answer.delivered, 1U);
  EXPECT_EQ(lone.come(3).expected, 5U);
  EXPECT_EQ(lone.delivered, (std::vector<std::uint64_t>{2, 4}));
  EXPECT_EQ(lone.receiver.out_of_order(), 2U);
}

TEST(reliable_receiver, messages_are_delivered_in_order_even_if_a_later_one_is_there_first) {
  Lone lone(rules_of(Recovery::selective_repeat));
  for (std::uint32_t psn = 1; psn < 200; ++psn) lone.come(psn, packet_last);
  EXPECT_TRUE(lone.delivered.empty());
  EXPECT_EQ(lone.come(0, packet_last).delivered, 200U);
  for (std::uint64_t i = 0; i < 200; ++i) EXPECT_EQ(lone.delivered[i], i);
  EXPECT_EQ(lone.receiver.widest_gap(), 199U);
  EXPECT_EQ(lone.pool.live(), 0U);
}

TEST(reliable_receiver, an_early_packet_twice_is_kept_once) {
  Lone lone(rules_of(Recovery::selective_repeat));
  lone.come(2, packet_last);
  EXPECT_TRUE(lone.come(2, packet_last).ack);
  EXPECT_EQ(lone.pool.live(), 1U);
  EXPECT_EQ(lone.receiver.duplicates(), 1U);
  lone.come(0);
  lone.come(1);
  EXPECT_EQ(lone.delivered, (std::vector<std::uint64_t>{2}));
}

// The bits of early packets are kept modulo a power of two that grows.
TEST(reliable_receiver, any_order_within_a_growing_window) {
  for (const std::uint32_t width : {1U, 63U, 64U, 65U, 500U}) {
    Lone lone(rules_of(Recovery::selective_repeat));
    std::uint32_t base = 0;
    for (int round = 0; round < 20; ++round, base += width)
      for (std::uint32_t i = 0; i < width; ++i) lone.come(base + width - 1 - i, packet_last);
    EXPECT_EQ(lone.receiver.expected(), base);
    ASSERT_EQ(lone.delivered.size(), base);
    for (std::uint64_t i = 0; i < base; ++i) ASSERT_EQ(lone.delivered[i], i);
    EXPECT_EQ(lone.pool.live(), 0U);
  }
}

TEST(reliable_receiver, the_header_of_a_trimmed_packet_names_it) {
  Lone lone(rules_of(Recovery::selective_repeat));
  lone.come(0);
  const auto answer = lone.come(3, packet_trimmed);
  EXPECT_TRUE(answer.nack && answer.trimmed);
  EXPECT_FALSE(answer.ack);
  EXPECT_EQ(answer.caused_by, 3U);
  EXPECT_EQ(answer.expected, 1U);
  EXPECT_EQ(lone.receiver.expected(), 1U);
  EXPECT_FALSE(lone.come(0, packet_trimmed).nack);  // it had arrived
  // In order: a NACK of the number that is expected, once.
  Lone ordered(rules_of(Recovery::go_back_n));
  const auto nack = ordered.come(0, packet_trimmed);
  EXPECT_TRUE(nack.nack);
  EXPECT_EQ(nack.expected, 0U);
  EXPECT_FALSE(ordered.come(1).nack);
}

// DCQCN: Zhu et al., SIGCOMM 2015, section 3.1: at most one notification per flow and interval.
TEST(reliable_receiver, notifications_keep_their_interval) {
  Lone lone(rules_of(Recovery::go_back_n));
  lone.cnp_interval = 50_ps;
  std::vector<std::int64_t> times;
  std::uint32_t psn = 0;
  for (std::int64_t now = 0; now < 200; now += 7)
    if (lone.come(psn++, packet_ecn, Time::from_ps(now)).cnp) times.push_back(now);
  // The first multiple of 7 that is 50 or more after the last one.
  EXPECT_EQ(times, (std::vector<std::int64_t>{0, 56, 112, 168}));
  EXPECT_FALSE(lone.come(psn++, 0, 1000_ps).cnp);
  lone.cnp_interval = {};
  EXPECT_FALSE(lone.come(psn++, packet_ecn, 2000_ps).cnp);
}

// Alizadeh et al., SIGCOMM 2010, section 3.2: an ACK at each change of marking, so that runs of marks can be counted.
TEST(reliable_receiver, marks_are_echoed_exactly_with_any_interval) {
  for (const std::uint32_t interval : {1U, 2U, 8U}) {
    Lone lone(rules_of(Recovery::go_back_n, interval));
    const std::vector<int> marks = {0, 0, 0, 1, 1, 1, 1, 0, 1, 0, 0, 0, 0, 1, 1, 0};
    std::uint32_t told = 0;
    for (std::uint32_t psn = 0; psn < marks.size(); ++psn) {
      const auto answer = lone.come(psn, marks[psn] != 0 ? packet_ecn : 0);
      const bool changed = psn > 0 ? marks[psn] != marks[psn - 1] : marks[psn] != 0;
      if (changed) {
        EXPECT_TRUE(answer.ack) << psn;
      }
      if (!answer.ack) continue;
      // Some packet since the last ACK was marked.
      bool any = false;
      for (; told <= psn; ++told) any |= marks[told] != 0;
      EXPECT_EQ(answer.ecn, any) << "psn " << psn << ", interval " << interval;
    }
  }
}

// RFC 8257, section 3.2: before the first packet with another marking is acknowledged, those before it are, with
// theirs.
TEST(reliable_receiver, an_ack_covers_packets_that_are_marked_alike) {
  for (const std::uint32_t interval : {1U, 2U, 4U, 16U}) {
    RecoveryRules rules = rules_of(Recovery::go_back_n, interval);
    rules.separate_marks = true;
    Lone lone(rules);
    const std::vector<int> marks = {0, 0, 0, 1, 1, 1, 1, 0, 1, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 1};
    std::vector<int> told;  // by the sender's counting: [acknowledged packets]
    for (std::uint32_t psn = 0; psn < marks.size(); ++psn) {
      const auto answer =
          lone.come(psn, (marks[psn] != 0 ? packet_ecn : 0) | (psn + 1 == marks.size() ? packet_last : 0));
      if (answer.ack_before) told.resize(*answer.ack_before, answer.ecn_before ? 1 : 0);
      if (answer.ack) told.resize(answer.expected, answer.ecn ? 1 : 0);
      EXPECT_FALSE(answer.ack_before && interval == 1);
    }
    EXPECT_EQ(told, marks) << "interval " << interval;
  }
}

}  // namespace
}  // namespace weft::reliable_receiver_test
