// SPDX-License-Identifier: GPL-2.0-only
// The next packet of a NIC: ACKs and credits, then queue pairs in turn, within their windows; and the order of
// simultaneous events.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/fabric/lean_machine.hpp"

namespace weft::nic_test {
namespace {

using test::LeanMachine;
using test::Notice;

/// Two hosts and a wire between them: 80 ps per byte and 1 us. A full frame has 1000 B.
const std::string wire = "{kind: line, links: 1, link_rate: 100 Gb/s, link_delay: 1 us}";
constexpr Time delay = Time::from_us(1);
constexpr Time data_time = Time::from_ns(80);
constexpr Time ack_time = Time::from_ps((66 + 20) * 80);

NetworkParameters network(std::int64_t window_packets = 1000) {
  NetworkParameters result;
  result.mtu = Bytes(1000) - result.data_overhead();
  result.window = window_packets * result.mtu;
  return result;
}
const std::int64_t mtu = network().mtu.count();

/// One line per packet: "data 2", the number being the queue pair's.
std::vector<std::string> order(const test::TapLog& log) {
  const char* const names[] = {"data ", "ack ", "credit "};
  std::vector<std::string> lines;
  for (const auto& entry : log.entries)
    lines.push_back(names[static_cast<int>(entry.packet.kind)] + std::to_string(entry.packet.queue_pair));
  return lines;
}
std::vector<std::int64_t> starts(const test::TapLog& log) {
  std::vector<std::int64_t> result;
  for (const auto& entry : log.entries) result.push_back(entry.start.ps());
  return result;
}

TEST(nic, acks_go_before_data_as_soon_as_the_port_is_free) {
  // Host 1 is busy with data from 1000 ns on; a packet comes at 1080 ns, when its second packet is expected, or just
  // after.
  for (const std::int64_t late : {0, 1}) {
    LeanMachine machine(wire, network());
    const auto tap = machine.tap(NodeId(1));
    machine.post({Time::from_ns(1000), 1, machine.open(1, 0), 4 * mtu});
    machine.post({Time::from_ps(late), 0, machine.open(0, 1), mtu});
    machine.run();
    machine.expect_quiet();
    const std::int64_t begin = Time::from_ns(1000).ps();
    const std::int64_t d = data_time.ps();
    const std::int64_t a = ack_time.ps();
    if (late == 0) {
      EXPECT_EQ(order(*tap), (std::vector<std::string>{"data 0", "ack 0", "data 0", "data 0", "data 0"}));
      EXPECT_EQ(starts(*tap),
                (std::vector<std::int64_t>{begin, begin + d, begin + d + a, begin + 2 * d + a, begin + 3 * d + a}));
    } else {
      EXPECT_EQ(order(*tap), (std::vector<std::string>{"data 0", "data 0", "ack 0", "data 0", "data 0"}));
      EXPECT_EQ(starts(*tap),
                (std::vector<std::int64_t>{begin, begin + d, begin + 2 * d, begin + 2 * d + a, begin + 3 * d + a}));
    }
  }
}

TEST(nic, acks_and_credits_keep_their_order) {
  LeanMachine machine(wire, network());
  machine.on_own_timer = [&](std::uint32_t host, Time now, std::uint64_t queue_pair) {
    machine.fabric->send_credit(NodeId(host), now, NodeId(0), static_cast<std::uint32_t>(queue_pair), Time());
  };
  const auto tap = machine.tap(NodeId(1));
  // Packets of host 0 come at 1180 and 1340 ns. Host 1 begins two packets at 1100 ns, and credits fall due during the
  // ACK that comes between them.
  machine.post({Time::from_ns(100), 0, machine.open(0, 1), mtu});
  machine.post({Time::from_ns(260), 0, machine.open(0, 1), mtu});
  machine.post({Time::from_ns(1100), 1, machine.open(1, 0), 2 * mtu});
  machine.fabric->set_timer(NodeId(1), Time::from_ns(1181), LeanMachine::own_timer + 9);
  machine.fabric->set_timer(NodeId(1), Time::from_ns(1182), LeanMachine::own_timer + 8);
  machine.run();
  machine.expect_quiet();
  // The ACK at 1180 ns itself: its packet came when the port was free.
  EXPECT_EQ(order(*tap), (std::vector<std::string>{"data 0", "ack 0", "credit 9", "credit 8", "data 0", "ack 1"}));
  EXPECT_EQ(starts(*tap)[2], (Time::from_ns(1180) + ack_time).ps());
  EXPECT_EQ(starts(*tap)[3], (Time::from_ns(1180) + 2 * ack_time).ps());
  ASSERT_EQ(machine.credits.size(), 2U);
  EXPECT_EQ(machine.credits[0], (Notice{Time::from_ns(1180) + 2 * ack_time + delay, 0, 9}));
  EXPECT_EQ(machine.credits[1], (Notice{Time::from_ns(1180) + 3 * ack_time + delay, 0, 8}));
}

TEST(nic, a_credit_is_one_packet_that_nobody_answers) {
  LeanMachine machine(wire, network());
  machine.on_own_timer = [&](std::uint32_t host, Time now, std::uint64_t) {
    machine.fabric->send_credit(NodeId(host), now, NodeId(1), 4, Time());
  };
  machine.fabric->set_timer(NodeId(0), Time::from_ns(5), LeanMachine::own_timer);
  machine.run();
  EXPECT_EQ(machine.credits, (std::vector<Notice>{{Time::from_ns(5) + ack_time + delay, 1, 4}}));
  EXPECT_EQ(machine.fabric->packet_hops(), 1U);
  EXPECT_EQ(machine.counters(NodeId(0)).bytes.count(), 86);
  EXPECT_EQ(machine.counters(NodeId(0)).data_packets, 0U);
}

TEST(nic, queue_pairs_take_turns_packet_by_packet) {
  LeanMachine machine(wire, network());
  const auto tap = machine.tap(NodeId(0));
  for (int i = 0; i < 4; ++i) EXPECT_EQ(machine.open(0, 1), static_cast<std::uint32_t>(i));
  // Not in the order of their numbers but of posting: 2 first.
  machine.post({Time(), 0, 2, 3 * mtu});
  machine.post({Time(), 0, 0, 4 * mtu});
  machine.post({Time(), 0, 1, mtu});
  // During the fifth packet, which is of queue pair 0 and has left the list: it returns behind the newcomer.
  machine.post({4 * data_time + Time::from_ns(1), 0, 3, 2 * mtu});
  machine.run();
  machine.expect_quiet();
  EXPECT_EQ(order(*tap), (std::vector<std::string>{"data 2", "data 0", "data 1", "data 2", "data 0", "data 2", "data 0",
                                                   "data 3", "data 0", "data 3"}));
  // Without a gap.
  for (std::size_t i = 0; i < tap->entries.size(); ++i)
    EXPECT_EQ(tap->entries[i].start, static_cast<std::int64_t>(i) * data_time);
}

TEST(nic, messages_of_one_queue_pair_share_its_turn) {
  LeanMachine machine(wire, network());
  const auto tap = machine.tap(NodeId(0));
  const std::uint32_t a = machine.open(0, 1);
  const std::uint32_t b = machine.open(0, 1);
  for (int i = 0; i < 3; ++i) machine.post({Time(), 0, a, mtu});
  machine.post({Time(), 0, b, 3 * mtu});
  machine.run();
  EXPECT_EQ(order(*tap), (std::vector<std::string>{"data 0", "data 1", "data 0", "data 1", "data 0", "data 1"}));
  ASSERT_EQ(machine.messages.size(), 4U);
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_EQ(machine.messages[i], (Notice{(2 * static_cast<std::int64_t>(i) + 1) * data_time + delay, 1, i}));
  EXPECT_EQ(machine.messages[3], (Notice{6 * data_time + delay, 1, 3}));
}

TEST(nic, a_closed_window_waits_for_its_ack) {
  // A window of two packets: the third leaves when the first is acknowledged, one round trip after it began.
  LeanMachine machine(wire, network(2));
  const auto tap = machine.tap(NodeId(0));
  machine.post({Time(), 0, machine.open(0, 1), 5 * mtu});
  machine.run();
  machine.expect_quiet();
  const std::int64_t trip = (data_time + delay + ack_time + delay).ps();
  const std::int64_t d = data_time.ps();
  EXPECT_EQ(starts(*tap), (std::vector<std::int64_t>{0, d, trip, trip + d, 2 * trip}));
  EXPECT_EQ(machine.sent, (std::vector<Notice>{{Time::from_ps(3 * trip), 0, 0}}));
}

TEST(nic, a_closed_window_leaves_the_port_to_others) {
  LeanMachine machine(wire, network(1));
  const auto tap = machine.tap(NodeId(0));
  machine.post({Time(), 0, machine.open(0, 1), 2 * mtu});
  machine.post({Time(), 0, machine.open(0, 1), 2 * mtu});
  machine.run();
  const std::int64_t trip = (data_time + delay + ack_time + delay).ps();
  const std::int64_t d = data_time.ps();
  EXPECT_EQ(order(*tap), (std::vector<std::string>{"data 0", "data 1", "data 0", "data 1"}));
  EXPECT_EQ(starts(*tap), (std::vector<std::int64_t>{0, d, trip, trip + d}));
}

TEST(nic, at_one_moment_arrivals_then_timers_as_set_then_the_decision) {
  // A packet reaches host 1 at `moment`, when three timers are due, two of which post; the NIC is free.
  LeanMachine machine(wire, network());
  const auto tap = machine.tap(NodeId(1));
  const Time moment = data_time + delay;
  const std::uint32_t a = machine.open(1, 0);
  const std::uint32_t b = machine.open(1, 0);
  std::vector<std::uint64_t> tokens;
  machine.on_own_timer = [&](std::uint32_t host, Time now, std::uint64_t token) {
    tokens.push_back(token);
    // A timer set for the same moment still belongs to it.
    if (token == 5) machine.fabric->set_timer(NodeId(host), now, LeanMachine::own_timer + 6);
  };
  machine.fabric->set_timer(NodeId(1), moment, LeanMachine::own_timer + 5);
  machine.post({moment, 1, b, 10});
  machine.post({moment, 1, a, 20});
  machine.fabric->set_timer(NodeId(1), moment, LeanMachine::own_timer + 3);
  machine.post({Time(), 0, machine.open(0, 1), mtu});
  machine.run();
  machine.expect_quiet();
  EXPECT_EQ(tokens, (std::vector<std::uint64_t>{5, 3, 6}));
  ASSERT_GE(machine.calls.size(), 4U);
  EXPECT_EQ(std::string(machine.calls.begin(), machine.calls.begin() + 4), "mttt");
  EXPECT_EQ(order(*tap), (std::vector<std::string>{"ack 0", "data 1", "data 0"}));
  EXPECT_EQ(tap->entries[0].start, moment);
  EXPECT_EQ(tap->entries[1].start, moment + ack_time);
}

TEST(nic, timers_come_in_the_order_of_time_whatever_the_order_of_setting) {
  LeanMachine machine(wire, network());
  std::vector<std::pair<std::int64_t, std::uint64_t>> seen;
  machine.on_own_timer = [&](std::uint32_t, Time now, std::uint64_t token) { seen.emplace_back(now.ps(), token); };
  std::vector<std::pair<std::int64_t, std::uint64_t>> expected;
  for (std::uint64_t i = 0; i < 500; ++i) {
    const auto at = static_cast<std::int64_t>(i * 7919 % 101 * 1000);
    machine.fabric->set_timer(NodeId(0), Time::from_ps(at), LeanMachine::own_timer + i);
    expected.emplace_back(at, i);
  }
  std::sort(expected.begin(), expected.end());
  machine.run();
  EXPECT_EQ(seen, expected);
}

TEST(nic, an_empty_message_is_a_packet_and_has_an_ack) {
  LeanMachine machine(wire, network());
  machine.post({Time(), 0, machine.open(0, 1), 0});
  machine.run();
  machine.expect_quiet();
  const Time there = Time::from_ps(82 * 80) + delay;
  EXPECT_EQ(machine.messages, (std::vector<Notice>{{there, 1, 0}}));
  EXPECT_EQ(machine.sent, (std::vector<Notice>{{there + ack_time + delay, 0, 0}}));
  EXPECT_EQ(machine.fabric->packet_hops(), 2U);
}

TEST(nic, without_acks_a_message_is_sent_when_its_last_bit_has_left) {
  NetworkParameters parameters = network(1);  // the window does not count then
  parameters.acks = false;
  LeanMachine machine(wire, parameters);
  machine.post({Time(), 0, machine.open(0, 1), 3 * mtu});
  machine.post({Time(), 0, machine.open(0, 1), mtu});
  machine.run();
  machine.expect_quiet();
  EXPECT_EQ(machine.sent, (std::vector<Notice>{{2 * data_time, 0, 1}, {4 * data_time, 0, 0}}));
  EXPECT_EQ(machine.messages, (std::vector<Notice>{{2 * data_time + delay, 1, 1}, {4 * data_time + delay, 1, 0}}));
  EXPECT_EQ(machine.fabric->packet_hops(), 4U);
}

TEST(nic, a_queue_pair_to_itself_is_refused) {
  LeanMachine machine(wire, network());
  EXPECT_THROW(machine.open(1, 1), InternalError);
}

// TIMELY begins at C, which is that of the NIC's port: a packet of 1000 B each 80 ns. The GPU's own link has five times
// that rate.
TEST(nic, congestion_control_in_a_server_begins_at_the_rate_of_its_nic) {
  LeanMachine machine(
      "{kind: star, hosts: 2, link_rate: 100 Gb/s, link_delay: 1 us, server: {gpus: 1, inside: none, nics: 1, "
      "pcie_rate: 500 Gb/s, pcie_delay: 200 ns}}",
      test::network_of("{mtu: 918 B, congestion_control: timely}"));
  const auto tap = machine.tap(NodeId(0));
  machine.post({Time(), 0, machine.open(0, 1), 10 * mtu});
  machine.run();
  machine.expect_quiet();
  ASSERT_EQ(tap->entries.size(), 10U);
  for (std::int64_t i = 0; i < 10; ++i) EXPECT_EQ(tap->entries[static_cast<std::size_t>(i)].start, i * data_time);
}

// TIMELY at 10 Mb/s sends the second packet after 800 us: the first ACK gives no difference of round trips. The second
// ACK adds 49.99 Gb/s, since its round trip is below T_low: the third packet, 160 ns after the second at that rate, is
// due at once, and each further one 160 ns later, whatever had been awaited at the lower rate. The next ACK comes after
// all of them.
TEST(nic, a_rate_that_rises_counts_at_once_for_all_packets) {
  LeanMachine machine(
      wire, test::network_of("{mtu: 918 B, congestion_control: timely, timely: {initial_rate: 10 Mb/s, min_rate: "
                             "10 Mb/s, additive_increase: 49.99 Gb/s, segment: 1 B}}"));
  const auto tap = machine.tap(NodeId(0));
  machine.post({Time(), 0, machine.open(0, 1), 10 * mtu});
  machine.run();
  machine.expect_quiet();
  const std::int64_t trip = (data_time + delay + ack_time + delay).ps();
  const std::int64_t slow = 1000 * 8 * 100'000;    // ps: 1000 B at 10 Mb/s
  const std::int64_t pace = 1000 * 8 * 1000 / 50;  // ps: 1000 B at 50 Gb/s
  std::vector<std::int64_t> expected{0, slow};
  for (std::int64_t i = 0; i < 8; ++i) expected.push_back(slow + trip + i * pace);
  EXPECT_EQ(starts(*tap), expected);
}

// A packet takes 80 ns and 1 us, its ACK 7 ns and 1 us.
TEST(nic, times_below_the_round_trip_of_an_idle_path_are_refused) {
  const auto run = [](const std::string& keys) {
    LeanMachine machine(wire, test::network_of("{mtu: 918 B, " + keys + "}"));
    machine.post({Time(), 0, machine.open(0, 1), mtu});
    machine.run();
    return machine.fabric->path_refusal().message;
  };
  EXPECT_NE(run("congestion_control: swift, swift: {base_target: 2 us, hop_target: 0 s}"), "");
  EXPECT_EQ(run("congestion_control: swift, swift: {base_target: 3 us, hop_target: 0 s}"), "");
  EXPECT_NE(run("queues: output, go_back_n: {timeout: 2 us}"), "");
  EXPECT_NE(run("queues: output, go_back_n: {timeout: 1 ms, timeout_low: 2 us}"), "");
  EXPECT_EQ(run("queues: output, go_back_n: {timeout: 3 us}"), "");
}

// Both of the second time are refused, and that of the lower host is the first; the one before both suits its path.
TEST(nic, the_first_path_that_is_refused_is_kept) {
  LeanMachine machine(
      "{kind: graph, hosts: 4, switches: 1, links: [{from: host0, to: switch0, rate: 100 Gb/s, delay: "
      "10 us}, {from: host1, to: switch0, rate: 100 Gb/s, delay: 1 us}, {from: host2, to: switch0, "
      "rate: 100 Gb/s, delay: 20 us}, {from: host3, to: switch0, rate: 100 Gb/s, delay: 1 us}]}",
      test::network_of("{mtu: 918 B, queues: output, go_back_n: {timeout: 10 us}}"));
  machine.post({Time::from_us(2), 2, machine.open(2, 1), mtu});
  machine.post({Time::from_us(1), 3, machine.open(3, 2), mtu});
  machine.post({Time::from_us(1), 0, machine.open(0, 1), mtu});
  machine.post({Time(), 1, machine.open(1, 3), mtu});
  machine.run();
  const PathRefusal refusal = machine.fabric->path_refusal();
  EXPECT_EQ(refusal.at, Time::from_us(1));
  EXPECT_EQ(refusal.host, NodeId(0));
}

}  // namespace
}  // namespace weft::nic_test
