// SPDX-License-Identifier: GPL-2.0-only
// Faults of links: how they are read, when routing knows of them, and their effects on packets.
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "support/basics/error.hpp"
#include "tests/fabric/lean_machine.hpp"

namespace weft::link_faults_test {
namespace {

using test::LeanMachine;
using test::network_of;

constexpr std::int64_t mtu = 918;
constexpr std::int64_t full = 80'000;  // ps of 1000 B at 100 Gb/s
const std::string wire = "{kind: line, links: 1, link_rate: 100 Gb/s, link_delay: 1 us}";
constexpr std::int64_t delay = 1'000'000;

Topology star() {
  return build_topology(Spec::parse("{kind: star, hosts: 3, link_rate: 100 Gb/s, link_delay: 1 us}", "machine.yaml"));
}

LinkFaults read(const std::string& text, const Topology& topology) {
  const NetworkParameters network = read_network_parameters(Spec::parse(text, "net.yaml"));
  return read_link_faults(network.fault_keys, topology);
}

// Reading -------------------------------------------------------------------------------------------------------------

TEST(link_faults, links_are_named_by_all_ends_class_or_switch) {
  const Topology topology = star();
  for (const std::string name : {"link: all", "class: host", "switch: switch0"}) {
    const LinkFaults faults = read(fmt::format("{{loss: [{{{}, probability: 0.25}}]}}", name), topology);
    ASSERT_EQ(faults.links.size(), 3U) << name;
    EXPECT_EQ(faults.links.at(2).loss, 0.25);
  }
  for (const std::string name : {"[host1, switch0]", "[switch0, host1]"}) {
    const LinkFaults faults = read(fmt::format("{{failures: [{{link: {}, at: 3 us}}]}}", name), topology);
    ASSERT_EQ(faults.links.size(), 1U);
    ASSERT_EQ(faults.links.at(1).outages.size(), 1U);
    EXPECT_EQ(faults.links.at(1).outages[0].from, Time::from_us(3));
    EXPECT_EQ(faults.links.at(1).outages[0].until, Time::max());
  }
}

TEST(link_faults, a_lower_rate_ends_with_the_full_one) {
  const LinkFaults faults = read(
      "{failures: [{link: [host1, switch0], at: 9 us, until: 12 us, rate: 1 Gb/s}, {link: [host1, switch0], at: 3 us, "
      "until: 5 us, rate: 10 Gb/s}]}",
      star());
  const auto& rates = faults.links.at(1).rates;
  ASSERT_EQ(rates.size(), 4U);
  const std::int64_t at[] = {3, 5, 9, 12};
  const std::int64_t gbps[] = {10, 100, 1, 100};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(rates[i].at, Time::from_us(at[i]));
    EXPECT_EQ(rates[i].rate, Bandwidth::from_gbps(gbps[i]));
  }
  EXPECT_TRUE(faults.routing_periods(star()).empty());  // no switch routes around them
}

// A link has the lowest rate of all that hold it back, whatever the order in which they begin, end, and are listed.
TEST(link_faults, slowdowns_that_overlap_leave_the_lowest_rate) {
  const Bandwidth full = Bandwidth::from_gbps(100);
  const auto gbps = [](std::int64_t rate) { return Bandwidth::from_gbps(rate); };
  const auto us = [](std::int64_t time) { return Time::from_us(time); };
  std::vector<Slowdown> slowdowns = {{us(1), us(8), gbps(10)},
                                     {us(2), us(3), gbps(50)},
                                     {us(6), us(10), gbps(40)},
                                     {us(10), us(12), gbps(40)},
                                     {us(7), us(9), gbps(5)}};
  const std::vector<std::pair<Time, Bandwidth>> expected = {
      {us(1), gbps(10)}, {us(7), gbps(5)}, {us(9), gbps(40)}, {us(12), full}};
  for (int order = 0; order < 2; ++order) {
    std::vector<std::pair<Time, Bandwidth>> found;
    for (const RateChange& change : rate_changes(slowdowns, full)) found.emplace_back(change.at, change.rate);
    EXPECT_EQ(found, expected);
    std::reverse(slowdowns.begin(), slowdowns.end());
  }
  EXPECT_TRUE(rate_changes({{us(1), us(2), full}}, full).empty());
}

TEST(link_faults, a_switch_that_recovers_leaves_a_slow_link_slow) {
  const LinkFaults faults = read(
      "{failures: [{link: [host1, switch0], at: 1 us, rate: 10 Gb/s}, {switch: switch0, at: 2 us, until: 3 us, rate: "
      "50 "
      "Gb/s}]}",
      star());
  const auto& rates = faults.links.at(1).rates;
  ASSERT_EQ(rates.size(), 1U);
  EXPECT_EQ(rates[0].at, Time::from_us(1));
  EXPECT_EQ(rates[0].rate, Bandwidth::from_gbps(10));
  EXPECT_EQ(faults.links.at(0).rates.size(), 2U);
}

TEST(link_faults, every_mistake_is_told_with_its_line) {
  const Topology topology = star();
  const auto expect = [&](const std::string& text, int line, const std::string& word) {
    try {
      read(text, topology);
      ADD_FAILURE() << "accepted: " << text;
    } catch (const InputError& error) {
      const std::string message = error.what();
      EXPECT_NE(message.find(fmt::format("net.yaml:{}", line)), std::string::npos) << message;
      EXPECT_NE(message.find(word), std::string::npos) << message;
    }
  };
  expect("loss:\n  - {probability: 0.1}\n", 2, "one of link, class and switch");
  expect("loss:\n  - {link: all, class: host, probability: 0.1}\n", 2, "one of link, class and switch");
  expect("loss:\n  - {link: all}\n", 2, "probability or bit_error_rate");
  expect("loss:\n  - {link: some, probability: 0.1}\n", 2, "all");
  expect("loss:\n  - link: all\n    probability: 1.5\n", 3, "1.5");
  expect("loss:\n  - link: all\n    bit_error_rate: -1\n", 3, "-1");
  expect("loss:\n  - {link: [host0], probability: 0.1}\n", 2, "two ends");
  expect("loss:\n  - {link: [host0, host1], probability: 0.1}\n", 2, "no link between host0 and host1");
  expect("loss:\n  - {link: [host0, host7], probability: 0.1}\n", 2, "no 'host7'");
  expect("loss:\n  - {class: spine, probability: 0.1}\n", 2, "spine");
  expect("loss:\n  - {switch: switch3, probability: 0.1}\n", 2, "switch3");
  expect("loss:\n  - {link: all, probability: 0.1, at: 3 us}\n", 2, "at");
  expect("failures:\n  - {link: all}\n", 2, "at");
  expect("failures:\n  - {link: all, at: 3 us,\n     until: 3 us}\n", 3, "not after its beginning");
  expect("failures:\n  - {link: all, at: 3 us,\n     rate: 200 Gb/s}\n", 3, "at most the link's own");
  expect("failures:\n  - {link: all, at: 3}\n", 2, "3");
  expect("reconvergence: 1 ms\n", 1, "without failures");
  expect("local_repair: 1 us\n", 1, "without failures");
  expect("failures: [{link: all, at: 3 us}]\nlocal_repair: 2 ms\n", 2, "at most the reconvergence of 1 ms");
  expect("{failures: [{link: all, at: 3 us}], reconvergence: 5 us,\nlocal_repair: 6 us}", 2, "found 6 us");
}

TEST(link_faults, routing_learns_of_each_change_later_by_the_reconvergence) {
  const LinkFaults faults = read(
      "{failures: [{link: [host0, switch0], at: 10 us, until: 30 us}, {link: [host1, switch0], at: 20 us}, {link: "
      "[host2, switch0], at: 30 us, until: 40 us}], reconvergence: 5 us}",
      star());
  const auto routing_periods = faults.routing_periods(star());
  const std::vector<std::int64_t> from = {15, 25, 35, 45};
  const std::vector<std::vector<bool>> dead = {
      {true, false, false}, {true, true, false}, {false, true, true}, {false, true, false}};
  ASSERT_EQ(routing_periods.size(), from.size());
  for (std::size_t i = 0; i < from.size(); ++i) {
    EXPECT_EQ(routing_periods[i].from, Time::from_us(from[i]));
    EXPECT_EQ(routing_periods[i].dead, dead[i]) << i;
    EXPECT_EQ(routing_periods[i].dead_at_ends, std::vector<bool>(3, false)) << i;
  }
}

TEST(link_faults, nodes_at_the_ends_learn_of_a_change_earlier) {
  const LinkFaults faults =
      read("{failures: [{link: [host0, switch0], at: 10 us, until: 30 us}], reconvergence: 5 us, local_repair: 1 us}",
           star());
  const auto periods = faults.routing_periods(star());
  // 11 us: the ends; 15 us: all; 31 us: the ends know that it is back, which all others still have to learn; 35 us:
  // all.
  const std::vector<std::int64_t> from = {11, 15, 31, 35};
  const std::vector<bool> dead = {false, true, true, false};
  const std::vector<bool> dead_at_ends = {true, false, false, false};
  ASSERT_EQ(periods.size(), from.size());
  for (std::size_t i = 0; i < from.size(); ++i) {
    EXPECT_EQ(periods[i].from, Time::from_us(from[i]));
    EXPECT_EQ(periods[i].dead[0], dead[i]) << i;
    EXPECT_EQ(periods[i].dead_at_ends[0], dead_at_ends[i]) << i;
  }
}

// Doing ---------------------------------------------------------------------------------------------------------------

TEST(link_faults, an_outage_loses_exactly_what_it_overlaps) {
  // Packets i are on the wire from 80 i ns until 80 (i + 1) ns + 1 us. Down from `down` to `up`, it loses those that
  // begin before `up` and end after `down`.
  for (const auto& [down, up] : {std::pair<std::int64_t, std::int64_t>{4'000'000, 4'800'000},
                                 {4'000'001, 4'800'001},
                                 {3'999'999, 4'799'999},
                                 {4'040'000, 4'040'001}}) {
    LeanMachine machine(wire, network_of(fmt::format("{{mtu: {} B, window: 1 GiB, ack_interval: 1024, recovery: "
                                                     "selective_repeat, failures: [{{link: all, at: {} ps, until: {} "
                                                     "ps}}]}}",
                                                     mtu, down, up)));
    machine.post({Time(), 0, machine.open(0, 1), 200 * mtu});
    machine.run();
    machine.expect_quiet();
    std::uint64_t expected = 0;
    for (std::int64_t i = 0; i < 200; ++i) expected += i * full < up && (i + 1) * full + delay > down ? 1 : 0;
    EXPECT_EQ(machine.counters(NodeId(0)).lost, expected) << down;
  }
}

// The first packet is lost, and it counts as lost when 32,767 others have overtaken it, which is known an RTT later. By
// then packets have arrived that are further ahead than an ACK can name.
TEST(link_faults, packets_far_ahead_of_a_lost_one_arrive) {
  LeanMachine machine(wire, network_of(fmt::format("{{mtu: {} B, window: 1 GiB, ack_interval: 1, recovery: "
                                                   "selective_repeat, selective_repeat: {{reordering: 32767, timeout: "
                                                   "1 s}}, failures: [{{link: all, at: 1 ps, until: 79 ns}}]}}",
                                                   mtu)));
  machine.post({Time(), 0, machine.open(0, 1), 40'000 * mtu});
  machine.run();
  machine.expect_quiet();
  EXPECT_EQ(machine.counters(NodeId(0)).lost, 1U);
  EXPECT_EQ(machine.messages.size(), 1U);
}

TEST(link_faults, a_degraded_link_serves_at_its_rate_from_the_next_packet_on) {
  LeanMachine machine(wire, network_of(fmt::format("{{mtu: {} B, window: 1 GiB, ack_interval: 1024, failures: [{{link: "
                                                   "all, at: 100 ns, until: 1 us, rate: 10 Gb/s}}]}}",
                                                   mtu)));
  const auto tap = machine.tap(NodeId(0));
  machine.post({Time(), 0, machine.open(0, 1), 6 * mtu});
  machine.run();
  machine.expect_quiet();
  // The packet in transmission at 100 ns is not slowed; those that begin at 160 and 960 ns take 800 ns; the next one
  // begins at 1760 ns, at the full rate again.
  const std::vector<std::int64_t> begins = {0, 80'000, 160'000, 960'000, 1'760'000, 1'840'000};
  for (std::size_t i = 0; i < begins.size(); ++i) EXPECT_EQ(tap->entries.at(i).start.ps(), begins[i]) << i;
}

// Two leaves with a host each (nodes 2 and 3), two spines (4 and 5); ten flows of host 0, of 100 packets each. Gives
// what is lost in `from`'s link to `to`.
std::uint64_t lost_in(NodeId from, NodeId to, const std::string& faults) {
  LeanMachine machine(
      "{kind: leaf_spine, leaves: 2, hosts_per_leaf: 1, spines: 2, link_rate: 100 Gb/s, link_delay: 1 us}",
      network_of(fmt::format("{{mtu: {} B, window: 1 GiB, ack_interval: 1024, recovery: selective_repeat, {}, "
                             "reconvergence: 3 ms}}",
                             mtu, faults)));
  for (int flow = 0; flow < 10; ++flow) machine.post({Time(), 0, machine.open(0, 1), 100 * mtu});
  machine.run();
  machine.expect_quiet();
  EXPECT_EQ(machine.messages.size(), 10U);
  const auto ports = machine.topology.graph.ports(from);
  for (std::uint32_t port = 0; port < ports.size(); ++port)
    if (ports[port].peer == to) return machine.counters(from, port).lost;
  ADD_FAILURE() << "no such link";
  return 0;
}

TEST(link_faults, a_switch_leaves_out_a_link_of_its_own_long_before_all_know) {
  const NodeId leaf0(2), leaf1(3), spine0(4);
  const std::string uplink = "failures: [{link: [leaf0, spine0], at: 20 us}]";
  const std::string downlink = "failures: [{link: [leaf1, spine0], at: 20 us}]";
  // Packets of 80 ns follow each other. Lost are those on the wire of 1 us when it fails, and those of 1 us until the
  // leaf knows.
  const std::uint64_t on_the_way = 2'000'000 / full + 2;
  const std::uint64_t repaired = lost_in(leaf0, spine0, uplink + ", local_repair: 1 us");
  EXPECT_GT(repaired, 0U);
  EXPECT_LE(repaired, on_the_way);
  EXPECT_GT(lost_in(leaf0, spine0, uplink), 10 * on_the_way);
  // Spine 0 has no other link to leaf 1, so that nothing is repaired.
  EXPECT_GT(lost_in(spine0, leaf1, downlink + ", local_repair: 1 us"), 10 * on_the_way);
}

TEST(link_faults, switches_that_choose_drop_what_no_way_is_left_for) {
  for (const std::string balancing : {"flowlet", "adaptive"}) {
    LeanMachine machine(
        "{kind: torus, dims: [4], link_rate: 100 Gb/s, link_delay: 1 us}",
        network_of(fmt::format("{{load_balancing: {}, reconvergence: 1 us, failures: [{{switch: switch2, "
                               "at: 1 us}}]}}",
                               balancing)));
    machine.post({Time::from_us(10), 0, machine.open(0, 2), 10 * mtu});
    machine.run_until(Time::from_ms(2));
    EXPECT_TRUE(machine.messages.empty()) << balancing;
    EXPECT_GT(machine.fabric->results().congestion().dropped, 0U) << balancing;
  }
}

// Routing learns of the dead spine after a second only. A packet that is sent goes by it with probability 1/4, and its
// ACK, with the same entropy, so does in the other direction: 9/16 of the packets are acknowledged each time, and of
// 1,600 packets one needs more than 20 times with probability 1,600 (7/16)^20 = 1e-4. If the ACKs of a queue pair had
// one path, those of every fourth would wait for routing.
TEST(link_faults, senders_that_recycle_entropies_need_no_single_path) {
  LeanMachine machine(
      "{kind: leaf_spine, leaves: 2, hosts_per_leaf: 1, spines: 4, link_rate: 100 Gb/s, link_delay: 1 us}",
      network_of(fmt::format("{{mtu: {} B, load_balancing: reps, reconvergence: 1 s, failures: "
                             "[{{switch: spine0, at: 1 us}}]}}",
                             mtu)));
  for (int i = 0; i < 8; ++i) machine.post({Time::from_us(2), 0, machine.open(0, 1), 200 * mtu});
  machine.run_until(Time::from_ms(500));
  ASSERT_EQ(machine.sent.size(), 8U);
  EXPECT_LT(machine.sent.back().at, 20 * machine.parameters.recovery.timeout);
}

TEST(link_faults, the_longest_queue_counts_the_packet_that_goes_on_at_the_old_rate) {
  // From the start the link to host 2 has 1 Gb/s, 8 ns per byte. At 4 us it has 100 Gb/s again, while the first packet
  // continues at the old rate until about 9 us. Host 1 sends so that its packet reaches the queue in between.
  LeanMachine machine("{kind: star, hosts: 3, link_rate: 100 Gb/s, link_delay: 1 us}",
                      network_of(fmt::format("{{mtu: {} B, ack_interval: 1024, failures: [{{link: [host2, switch0], "
                                             "at: 1 ps, until: 4 us, rate: 1 Gb/s}}]}}",
                                             mtu)));
  const std::int64_t later = 5'000;  // ns
  machine.post({Time(), 0, machine.open(0, 2), mtu});
  machine.post({Time::from_ns(later), 1, machine.open(1, 2), mtu});
  machine.run();
  machine.expect_quiet();
  // Both take the same way to the switch, so that the second comes `later` after the first, of which 8 ns per byte of
  // that time have left: frame + (frame - later / 8).
  const std::int64_t frame = machine.parameters.mtu.count() + machine.parameters.data_overhead().count();
  EXPECT_EQ(machine.counters(machine.a_switch(0), 2).peak_queue_bytes.count(), 2 * frame - later / 8);
}

// A round trip of 1 ms, above the timers of 320 and 100 us that a short network has: nothing is lost, so nothing is
// sent twice, of many packets in flight or of one.
TEST(link_faults, timers_wait_for_the_round_trip) {
  for (const std::int64_t packets : {1, 1000}) {
    LeanMachine machine("{kind: star, hosts: 2, link_rate: 100 Gb/s, link_delay: 250 us}",
                        network_of("{queues: output, window: 1 GiB}"));
    machine.post({Time(), 0, machine.open(0, 1), packets * mtu});
    machine.run();
    machine.expect_quiet();
    EXPECT_EQ(machine.fabric->results().congestion().timeouts, 0U) << packets;
    EXPECT_EQ(machine.fabric->results().congestion().repeated, 0U) << packets;
  }
  // Timers that are set stay as they are: below the round trip they are refused.
  LeanMachine machine("{kind: star, hosts: 2, link_rate: 100 Gb/s, link_delay: 250 us}",
                      network_of("{queues: output, window: 1 GiB, go_back_n: {timeout: 320 us}}"));
  machine.post({Time(), 0, machine.open(0, 1), 100 * mtu});
  machine.run();
  EXPECT_NE(machine.fabric->path_refusal().message, "");
}

void expect_losses(const std::string& loss, double probability) {
  double packets = 0, lost = 0;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    LeanMachine machine(wire,
                        network_of(fmt::format("{{mtu: {} B, window: 200 kB, ack_interval: 64, recovery: "
                                               "selective_repeat, loss: [{{link: all, {}}}]}}",
                                               mtu, loss)),
                        seed);
    machine.post({Time(), 0, machine.open(0, 1), 10'000 * mtu});
    machine.run();
    machine.expect_quiet();
    packets += static_cast<double>(machine.counters(NodeId(0)).packets);
    lost += static_cast<double>(machine.counters(NodeId(0)).lost);
  }
  EXPECT_NEAR(lost, packets * probability, 4 * std::sqrt(packets * probability * (1 - probability)));
}

TEST(link_faults, losses_are_as_frequent_as_the_probability) {
  expect_losses("probability: 0.01", 0.01);
  expect_losses("probability: 0.1", 0.1);
}

// A packet of b bits survives with (1 - e)^b; the bits are those of the wire.
TEST(link_faults, bit_errors_hit_packets_by_their_length) {
  for (const double rate : {1e-6, 1e-5})
    expect_losses(fmt::format("bit_error_rate: {}", rate), 1 - std::pow(1 - rate, 8 * 1000));
}

TEST(link_faults, both_add_up) {
  expect_losses("probability: 0.02, bit_error_rate: 1e-5", 1 - 0.98 * std::pow(1 - 1e-5, 8 * 1000));
}

TEST(link_faults, a_link_that_loses_all_but_for_a_moment_delivers_in_the_end) {
  LeanMachine machine("{kind: star, hosts: 3, link_rate: 100 Gb/s, link_delay: 1 us}",
                      network_of("{failures: [{switch: switch0, at: 5 us, until: 2 ms}], reconvergence: 10 us, "
                                 "go_back_n: {timeout: 100 us}}"));
  machine.post({Time(), 0, machine.open(0, 1), 1'000'000});
  machine.post({Time(), 1, machine.open(1, 2), 1'000'000});
  machine.run();
  machine.expect_quiet();
  for (const auto& notice : machine.messages) EXPECT_GT(notice.at, Time::from_ms(2));
}

}  // namespace
}  // namespace weft::link_faults_test
