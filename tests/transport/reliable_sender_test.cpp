// SPDX-License-Identifier: GPL-2.0-only
// The sending half of reliable connections: which packets are sent again, and when, alone and over a network that
// loses, doubles and reorders.
#include <cmath>
#include <cstdint>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "tests/literals.hpp"
#include "tests/transport/reliable_channel.hpp"

namespace weft::reliable_sender_test {
namespace {

using namespace literals;

using test::ChannelRules;
using test::ReliableChannel;

RecoveryRules rules_of(Recovery kind, std::uint32_t ack_interval = 1) {
  RecoveryRules rules;
  rules.kind = kind;
  rules.timeout = 320_ns;
  rules.timeout_low = 100_ns;
  rules.ack_interval = ack_interval;
  return rules;
}

std::vector<std::int64_t> some_sizes(std::uint64_t seed, std::size_t count, std::int64_t max) {
  std::vector<std::int64_t> sizes;
  for (std::size_t i = 0; i < count; ++i)
    sizes.push_back(static_cast<std::int64_t>(mix64(mix64(seed) + i) % static_cast<std::uint64_t>(max + 1)));
  return sizes;
}

std::int64_t sum(const std::vector<std::int64_t>& sizes) {
  std::int64_t result = 0;
  for (const std::int64_t size : sizes) result += size;
  return result;
}

constexpr Bytes mtu(100);

/// A sender with `count` full packets in messages of `per_message` each.
struct Lone {
  explicit Lone(const RecoveryRules& recovery, int count, int per_message, std::uint64_t first = 0)
      : rules(recovery), sender(NodeId(1), 7, mtu, first) {
    for (int at = 0; at < count; at += per_message) {
      Message message;
      message.bytes = std::min(per_message, count - at) * mtu;
      sender.post(pool.add(message), pool);
    }
  }
  /// Numbers of the next `count` packets, or of all that are waiting. A packet each 10 ps.
  std::vector<std::uint32_t> send(int count = 1000) {
    std::vector<std::uint32_t> numbers;
    for (int i = 0; i < count && sender.has_packet(); ++i) {
      packets.push_back(sender.next_packet(now, NodeId(0), pool));
      EXPECT_EQ(packets.back().queue_pair, 7U);
      if ((packets.back().flags & packet_last) != 0) pool.release(packets.back().message);
      numbers.push_back(packets.back().psn);
      now += 10_ps;
    }
    return numbers;
  }
  RecoveryRules rules;
  MessagePool pool;
  ReliableSender sender;
  std::vector<Packet> packets;
  Time now;
};
using Numbers = std::vector<std::uint32_t>;

// Over a network ------------------------------------------------------------------------------------------------------

class over_a_network : public testing::TestWithParam<std::tuple<Recovery, std::uint32_t>> {};

TEST_P(over_a_network, everything_arrives_once_and_in_order) {
  const auto [kind, interval] = GetParam();
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    ChannelRules channel;
    channel.seed = seed;
    channel.window = 1 + static_cast<std::int64_t>(seed % 24);
    channel.data_loss = seed % 3 == 0 ? 0.05 : 0.01;
    channel.ack_loss = seed % 4 == 0 ? 0.1 : 0;
    channel.doubling = seed % 5 == 0 ? 0.05 : 0;
    channel.trimming = seed % 7 == 0 ? 0.02 : 0;
    // Any reordering makes go_back_0 start a message again, so that it hardly ever ends.
    channel.jitter = seed % 2 == 0 && kind != Recovery::go_back_0 ? 8000_ps : Time();
    RecoveryRules rules = rules_of(kind, interval);
    if (channel.jitter > Time()) rules.reordering = 8;
    const auto sizes = some_sizes(seed, 120, 1500);
    ReliableChannel run(rules, channel);
    run.run(sizes);
    // go_back_0 counts discarded packets a second time.
    if (kind != Recovery::go_back_0) {
      EXPECT_EQ(run.acked, Bytes(sum(sizes))) << "seed " << seed;
    }
    if (HasFailure()) FAIL() << "seed " << seed;
  }
}

TEST_P(over_a_network, numbers_run_over_2_to_the_32) {
  const auto [kind, interval] = GetParam();
  for (const std::uint64_t first : {0xffffffffULL - 40, 0x1fffffff0ULL, 0x7fffffffULL - 17}) {
    ChannelRules channel;
    channel.seed = first;
    channel.data_loss = 0.02;
    channel.ack_loss = 0.02;
    channel.first = first;
    ReliableChannel run(rules_of(kind, interval), channel);
    run.run(some_sizes(first, 60, 1000));
    EXPECT_GT(run.sender.next(), first + 40);
    EXPECT_GT(run.sender.repeated(), 0U);
  }
}

TEST_P(over_a_network, nothing_is_repeated_where_nothing_is_lost) {
  const auto [kind, interval] = GetParam();
  ReliableChannel run(rules_of(kind, interval), {});
  const auto sizes = some_sizes(3, 100, 3000);
  run.run(sizes);
  EXPECT_EQ(run.sender.repeated(), 0U);
  EXPECT_EQ(run.sender.timeouts(), 0U);
  EXPECT_EQ(run.nacks, 0U);
  EXPECT_EQ(run.packets, run.sender.next());
  if (interval == 1) {
    EXPECT_EQ(run.acks, run.packets);
  } else {
    EXPECT_LT(run.acks, run.packets);
  }
}

// A window below the ACK interval: the packet that closes it requests its ACK.
TEST_P(over_a_network, a_small_window_does_not_wait_for_the_timer) {
  const auto [kind, interval] = GetParam();
  ChannelRules channel;
  channel.window = 2;
  ReliableChannel run(rules_of(kind, interval), channel);
  run.run({10'000});
  EXPECT_EQ(run.sender.timeouts(), 0U);
  EXPECT_EQ(run.packets, 100U);
}

INSTANTIATE_TEST_SUITE_P(recovery, over_a_network,
                         testing::Combine(testing::Values(Recovery::go_back_n, Recovery::selective_repeat,
                                                          Recovery::go_back_0),
                                          testing::Values(1U, 4U)));

// Goodput under loss: selective repeat sends each packet 1 / (1 - p) times on average, whatever the window.
TEST(reliable_sender, selective_repeat_sends_each_packet_as_often_as_it_is_lost) {
  ChannelRules channel;
  channel.data_loss = 0.02;
  channel.window = 64;
  ReliableChannel run(rules_of(Recovery::selective_repeat), channel);
  const std::int64_t packets = 50'000;
  run.run({packets * 100});
  // Every loss is repeated and nothing else, but for the timer at the end: lost ~ p / (1 - p) per packet, with the
  // variance of a geometric distribution, p / (1 - p)^2.
  const double expected = static_cast<double>(packets) * 0.02 / 0.98;
  const double deviation = std::sqrt(static_cast<double>(packets) * 0.02) / 0.98;
  EXPECT_NEAR(static_cast<double>(run.sender.repeated()), expected, 4 * deviation);
}

// Step by step --------------------------------------------------------------------------------------------------------

TEST(reliable_sender, packets_have_the_flags_of_their_place_in_the_message) {
  Lone lone(rules_of(Recovery::go_back_n), 5, 3);
  EXPECT_EQ(lone.send(), (Numbers{0, 1, 2, 3, 4}));
  const std::vector<int> flags = {packet_first, 0, packet_last, packet_first, packet_last};
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(lone.packets[i].flags, flags[i]) << i;
  EXPECT_EQ(lone.sender.in_flight(), 500_B);
}

TEST(reliable_sender, go_back_n_starts_again_exactly_at_the_gap) {
  Lone lone(rules_of(Recovery::go_back_n), 10, 4);
  EXPECT_EQ(lone.send(8), (Numbers{0, 1, 2, 3, 4, 5, 6, 7}));
  const auto progress = lone.sender.on_nack(lone.now, 5, lone.pool, lone.rules);
  EXPECT_EQ(progress.acked, 500_B);
  EXPECT_EQ(progress.lost, 300_B);
  EXPECT_EQ(progress.done, 1U);
  EXPECT_EQ(lone.sender.in_flight(), 0_B);
  EXPECT_EQ(lone.send(), (Numbers{5, 6, 7, 8, 9}));
  EXPECT_EQ(lone.sender.repeated(), 3U);
  for (std::size_t i = 0; i < 5; ++i)
    EXPECT_EQ((lone.packets[8 + i].flags & packet_again) != 0, i < 3) << lone.packets[8 + i].psn;
}

// Nine NACKs of one packet: the sender goes back eight times, and then waits for its timer, which the last NACK that
// counted has set. One that reports progress counts again.
TEST(reliable_sender, nacks_in_vain_are_left_to_the_timer) {
  Lone lone(rules_of(Recovery::go_back_n), 40, 40);
  lone.send(20);
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(lone.sender.on_nack(lone.now, 5, lone.pool, lone.rules).lost, 1500_B) << i;
    EXPECT_EQ(lone.send(15).front(), 5U);
  }
  const Time deadline = lone.sender.deadline(lone.rules);
  EXPECT_EQ(lone.sender.on_nack(lone.now + 1000_ps, 5, lone.pool, lone.rules).lost, 0_B);
  EXPECT_EQ(lone.sender.deadline(lone.rules), deadline);
  EXPECT_EQ(lone.sender.on_timeout(deadline, lone.pool, lone.rules).lost, 1500_B);
  EXPECT_EQ(lone.send(15).front(), 5U);
  EXPECT_EQ(lone.sender.on_nack(deadline, 9, lone.pool, lone.rules).lost, 1100_B);
  EXPECT_EQ(lone.send(11).front(), 9U);
}

TEST(reliable_sender, an_old_nack_means_nothing) {
  Lone lone(rules_of(Recovery::go_back_n), 6, 6);
  lone.send();
  lone.sender.on_ack(lone.now, 4, 3, lone.pool, lone.rules);
  const auto progress = lone.sender.on_nack(lone.now, 2, lone.pool, lone.rules);
  EXPECT_EQ(progress.lost, 0_B);
  EXPECT_FALSE(lone.sender.has_packet());
}

TEST(reliable_sender, an_ack_overtakes_what_was_to_be_sent_again) {
  // The NACK was about packet 1, and then 1 to 5 turn out to have arrived after all.
  Lone lone(rules_of(Recovery::go_back_n), 8, 8);
  lone.send(6);
  lone.sender.on_nack(lone.now, 1, lone.pool, lone.rules);
  EXPECT_EQ(lone.send(2), (Numbers{1, 2}));
  lone.sender.on_ack(lone.now, 6, 5, lone.pool, lone.rules);
  EXPECT_EQ(lone.sender.in_flight(), 0_B);
  EXPECT_EQ(lone.send(), (Numbers{6, 7}));
}

// ACKs overtake each other where each takes a way of its own. Packet 1 is acknowledged and its place in the sender's
// ring may be that of any packet in flight: all of these stay in flight until they arrive, whatever comes about
// packet 1.
TEST(reliable_sender, an_overtaken_ack_of_what_is_acknowledged_means_nothing) {
  for (int acked = 2; acked <= 40; ++acked) {
    Lone lone(rules_of(Recovery::selective_repeat), acked + 40, 1);
    lone.send(acked);
    lone.sender.on_ack(lone.now, static_cast<std::uint32_t>(acked), static_cast<std::uint32_t>(acked) - 1, lone.pool,
                       lone.rules);
    for (int flying = 1; flying <= 40; ++flying) {
      lone.send(1);
      const auto late = lone.sender.on_ack(lone.now, 0, 1, lone.pool, lone.rules);
      EXPECT_EQ(late.acked, 0_B);
      EXPECT_EQ(late.lost, 0_B);
      EXPECT_EQ(lone.sender.in_flight(), flying * mtu) << acked;
    }
  }
}

TEST(reliable_sender, go_back_0_starts_the_message_again) {
  Lone lone(rules_of(Recovery::go_back_0), 10, 5);
  lone.send();
  lone.sender.on_ack(lone.now, 8, 7, lone.pool, lone.rules);
  EXPECT_EQ(lone.sender.acked(), 8U);
  // The receiver has thrown away 5 to 7.
  EXPECT_EQ(lone.sender.on_nack(lone.now, 5, lone.pool, lone.rules).lost, 200_B);
  EXPECT_EQ(lone.sender.acked(), 5U);
  EXPECT_EQ(lone.send(), (Numbers{5, 6, 7, 8, 9}));
}

TEST(reliable_sender, go_back_0_after_a_timeout_starts_the_message_again_too) {
  Lone lone(rules_of(Recovery::go_back_0), 10, 5);
  lone.send();
  lone.sender.on_ack(lone.now, 7, 6, lone.pool, lone.rules);
  lone.sender.on_timeout(lone.now, lone.pool, lone.rules);
  EXPECT_EQ(lone.send(), (Numbers{5, 6, 7, 8, 9}));
}

// Times that messages have lost: each packet takes 10 ps, so that packet n is first sent at 10 n.
TEST(reliable_sender, counts_what_a_gap_costs_its_message_once) {
  for (const Recovery kind : {Recovery::go_back_n, Recovery::selective_repeat}) {
    Lone lone(rules_of(kind), 10, 4);
    lone.send(8);
    lone.now = 200_ps;
    lone.sender.on_nack(lone.now, 5, lone.pool, lone.rules);
    EXPECT_EQ(lone.pool[lone.sender.next_message(lone.pool)].first_psn, 4U);
    const std::uint32_t slot = lone.sender.next_message(lone.pool);
    lone.send();
    EXPECT_EQ(lone.pool[slot].retransmission, 150_ps);
    EXPECT_EQ(lone.pool[lone.pool[slot].next].retransmission, Time());
    // It is lost once more: from its second sending, at 200, to its third.
    lone.now = 500_ps;
    lone.sender.on_nack(lone.now, 5, lone.pool, lone.rules);
    lone.send();
    EXPECT_EQ(lone.pool[slot].retransmission, 450_ps);
  }
}

TEST(reliable_sender, gaps_that_overlap_in_time_cost_once) {
  Lone lone(rules_of(Recovery::selective_repeat), 10, 10);
  lone.send(8);
  const std::uint32_t slot = lone.sender.next_message(lone.pool);
  lone.now = 200_ps;
  lone.sender.on_ack(lone.now, 2, 7, lone.pool, lone.rules);  // 2 to 6 are lost
  lone.send();
  // From the sending of 2, at 20, to that of 6, the last of the five, at 240.
  EXPECT_EQ(lone.pool[slot].retransmission, 220_ps);
}

TEST(reliable_sender, go_back_0_costs_the_time_since_the_message_began) {
  Lone lone(rules_of(Recovery::go_back_0), 10, 5);
  lone.send();
  lone.sender.on_ack(lone.now, 8, 7, lone.pool, lone.rules);
  const std::uint32_t slot = lone.sender.take_done(lone.pool);  // the first message
  lone.pool.release(slot);
  lone.now = 300_ps;
  lone.sender.on_nack(lone.now, 5, lone.pool, lone.rules);
  const std::uint32_t second = lone.sender.next_message(lone.pool);
  lone.send();
  EXPECT_EQ(lone.pool[second].retransmission, 250_ps);
}

TEST(reliable_sender, selective_repeat_repeats_only_what_is_missing) {
  Lone lone(rules_of(Recovery::selective_repeat), 10, 10);
  lone.send(8);
  lone.sender.on_ack(lone.now, 2, 1, lone.pool, lone.rules);
  // 2 and 5 are lost; 3, 4, 6 and 7 come.
  EXPECT_EQ(lone.sender.on_ack(lone.now, 2, 3, lone.pool, lone.rules).lost, 100_B);
  EXPECT_EQ(lone.sender.on_ack(lone.now, 2, 4, lone.pool, lone.rules).lost, 0_B);
  EXPECT_EQ(lone.sender.on_ack(lone.now, 2, 6, lone.pool, lone.rules).lost, 100_B);
  EXPECT_EQ(lone.sender.in_flight(), 100_B);
  EXPECT_EQ(lone.send(), (Numbers{2, 5, 8, 9}));
  EXPECT_EQ(lone.sender.repeated(), 2U);
  // The repeated 2 is lost again. 7, which was sent before it, does not tell; the repeated 5, sent after it, does.
  EXPECT_EQ(lone.sender.on_ack(lone.now, 2, 7, lone.pool, lone.rules).lost, 0_B);
  EXPECT_EQ(lone.sender.on_ack(lone.now, 2, 5, lone.pool, lone.rules).lost, 100_B);
  EXPECT_EQ(lone.sender.on_ack(lone.now, 2, 8, lone.pool, lone.rules).lost, 0_B);  // once
  EXPECT_EQ(lone.send(), (Numbers{2}));
  EXPECT_EQ(lone.sender.on_ack(lone.now, 9, 2, lone.pool, lone.rules).rtt, 0_ps);
  EXPECT_EQ(lone.sender.in_flight(), 100_B);
}

TEST(reliable_sender, spread_packets_have_slack) {
  RecoveryRules rules = rules_of(Recovery::selective_repeat);
  rules.reordering = 3;
  Lone lone(rules, 10, 10);
  lone.send();
  EXPECT_EQ(lone.sender.on_ack(lone.now, 0, 2, lone.pool, lone.rules).lost, 0_B);
  // Packet 3 was sent three packets after 0.
  EXPECT_EQ(lone.sender.on_ack(lone.now, 0, 3, lone.pool, lone.rules).lost, 100_B);
  EXPECT_EQ(lone.send(), (Numbers{0}));
}

TEST(reliable_sender, the_timer_repeats_all_in_flight_that_has_not_arrived) {
  Lone lone(rules_of(Recovery::selective_repeat), 6, 6);
  lone.send();
  lone.sender.on_ack(lone.now, 1, 0, lone.pool, lone.rules);
  lone.rules.reordering = 100;  // nothing counts as overtaken
  lone.sender.on_ack(lone.now, 1, 3, lone.pool, lone.rules);
  EXPECT_EQ(lone.sender.on_timeout(lone.now, lone.pool, lone.rules).lost, 400_B);
  EXPECT_EQ(lone.send(), (Numbers{1, 2, 4, 5}));
  EXPECT_EQ(lone.sender.timeouts(), 1U);
}

TEST(reliable_sender, the_timer_is_short_with_few_packets_in_flight) {
  Lone lone(rules_of(Recovery::go_back_n), 6, 6);
  EXPECT_EQ(lone.sender.deadline(lone.rules), Time::max());
  lone.send(3);  // at 0, 10 and 20 ps
  EXPECT_EQ(lone.sender.deadline(lone.rules), lone.rules.timeout_low);
  lone.send(1);
  EXPECT_EQ(lone.sender.deadline(lone.rules), lone.rules.timeout);
  // Progress restarts it; ACKs without progress do not.
  lone.sender.on_ack(500_ps, 1, 0, lone.pool, lone.rules);
  EXPECT_EQ(lone.sender.deadline(lone.rules), 500_ps + lone.rules.timeout_low);
  lone.sender.on_ack(900_ps, 1, 0, lone.pool, lone.rules);
  EXPECT_EQ(lone.sender.deadline(lone.rules), 500_ps + lone.rules.timeout_low);
  lone.sender.on_ack(1000_ps, 4, 3, lone.pool, lone.rules);
  EXPECT_EQ(lone.sender.deadline(lone.rules), Time::max());
  // And so does sending after a time without anything in flight.
  lone.now = 5000_ps;
  lone.send(1);
  EXPECT_EQ(lone.sender.deadline(lone.rules), 5000_ps + lone.rules.timeout_low);
}

// RFC 6298, 5.3: the timer starts anew when data is acknowledged that was not, which with RFC 6675 means all up to a
// number, and it is that of the oldest packet: also when this is sent again. Answers to later packets leave it as it
// is.
TEST(reliable_sender, the_timer_is_that_of_the_oldest_packet) {
  Lone lone(rules_of(Recovery::selective_repeat), 12, 12);
  lone.rules.reordering = 4;
  lone.send(6);
  lone.sender.on_ack(500_ps, 1, 0, lone.pool, lone.rules);
  EXPECT_EQ(lone.sender.deadline(lone.rules), 500_ps + lone.rules.timeout);
  EXPECT_EQ(lone.sender.on_ack(600_ps, 1, 2, lone.pool, lone.rules).acked, 100_B);
  lone.now = 700_ps;
  lone.send(4);  // 6 to 9
  EXPECT_EQ(lone.sender.deadline(lone.rules), 500_ps + lone.rules.timeout);
  EXPECT_EQ(lone.sender.on_ack(800_ps, 1, 5, lone.pool, lone.rules).lost, 100_B);  // four have overtaken 1
  lone.now = 900_ps;
  EXPECT_EQ(lone.send(1), (Numbers{1}));
  EXPECT_EQ(lone.sender.deadline(lone.rules), 900_ps + lone.rules.timeout);
  lone.sender.on_ack(1000_ps, 1, 8, lone.pool, lone.rules);
  EXPECT_EQ(lone.sender.deadline(lone.rules), 900_ps + lone.rules.timeout);
}

// Karn and Partridge, "Improving round-trip time estimates in reliable transport protocols", SIGCOMM 1987: an answer to
// a repeated packet may be one to its first sending.
TEST(reliable_sender, no_round_trip_time_of_repeated_packets) {
  Lone lone(rules_of(Recovery::go_back_n), 4, 4);
  lone.send();  // at 0, 10, 20, 30 ps
  EXPECT_EQ(lone.sender.on_ack(100_ps, 1, 0, lone.pool, lone.rules).rtt, 100_ps);
  lone.sender.on_nack(110_ps, 1, lone.pool, lone.rules);
  lone.now = 120_ps;
  EXPECT_EQ(lone.send(), (Numbers{1, 2, 3}));
  EXPECT_EQ(lone.sender.on_ack(200_ps, 2, 1, lone.pool, lone.rules).rtt, 0_ps);
  // Of a cumulative ACK it is that of the packet that caused it.
  Lone other(rules_of(Recovery::selective_repeat), 4, 4);
  other.send();
  EXPECT_EQ(other.sender.on_ack(100_ps, 0, 2, other.pool, other.rules).rtt, 80_ps);
  EXPECT_EQ(other.send(), (Numbers{0, 1}));
  EXPECT_EQ(other.sender.on_ack(300_ps, 3, 1, other.pool, other.rules).rtt, 0_ps);
  EXPECT_EQ(other.sender.on_ack(310_ps, 4, 3, other.pool, other.rules).rtt, 280_ps);
}

TEST(reliable_sender, a_trimmed_packet_is_sent_again_and_no_other) {
  Lone lone(rules_of(Recovery::selective_repeat), 6, 6);
  lone.send();
  EXPECT_EQ(lone.sender.on_trimmed(lone.now, 3, lone.pool, lone.rules).lost, 100_B);
  EXPECT_EQ(lone.sender.on_trimmed(lone.now, 3, lone.pool, lone.rules).lost, 0_B);  // once
  EXPECT_EQ(lone.send(), (Numbers{3}));
  Lone ordered(rules_of(Recovery::go_back_n), 6, 6);
  ordered.send();
  EXPECT_EQ(ordered.sender.on_trimmed(ordered.now, 3, ordered.pool, ordered.rules).lost, 300_B);
  EXPECT_EQ(ordered.send(), (Numbers{3, 4, 5}));
}

TEST(reliable_sender, an_ack_of_what_was_never_sent_is_a_bug) {
  Lone lone(rules_of(Recovery::go_back_n), 6, 6);
  lone.send(2);
  EXPECT_THROW(lone.sender.on_ack(lone.now, 3, 2, lone.pool, lone.rules), InternalError);
}

}  // namespace
}  // namespace weft::reliable_sender_test
