// SPDX-License-Identifier: GPL-2.0-only
// Cut-through switching: Kermani and Kleinrock, "Virtual cut-through: a new computer communication switching
// technique", Computer Networks 3, 1979: a packet that waits nowhere pays for its whole length once.
#include <cstdint>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/fabric/lean_machine.hpp"

namespace weft::cut_through_test {
namespace {

using test::LeanMachine;
using test::network_of;

constexpr std::int64_t mtu = 918;
constexpr std::int64_t full = 80'000, head = 62 * 80;  // ps at 100 Gb/s
constexpr std::int64_t delay = 500'000;

NetworkParameters network(const std::string& more = "") {
  return network_of(
      fmt::format("{{mtu: {} B, window: 1 GiB, ack_interval: 1024, switching: cut_through{}}}", mtu, more));
}

/// Delivery of one message from host 0 to host 1, which has to be its ideal time.
std::int64_t delivery(const std::string& machine_text, const NetworkParameters& parameters, std::int64_t bytes) {
  LeanMachine machine(machine_text, parameters);
  machine.post({Time(), 0, machine.open(0, 1), bytes});
  machine.run();
  machine.expect_quiet();
  EXPECT_EQ(machine.messages.at(0).at.ps(), machine.received.at(0).ideal.ps()) << bytes << " B";
  return machine.messages[0].at.ps();
}

std::string line(int links) {
  return fmt::format("{{kind: line, links: {}, link_rate: 100 Gb/s, link_delay: 500 ns}}", links);
}

TEST(cut_through, each_switch_costs_a_header_and_not_a_packet) {
  for (const int links : {1, 2, 3, 6})
    for (const std::int64_t packets : {1, 2, 40})
      EXPECT_EQ(delivery(line(links), network(), packets * mtu), (links - 1) * head + links * delay + packets * full);
}

TEST(cut_through, the_latency_of_the_pipeline_comes_on_top) {
  EXPECT_EQ(delivery(line(4), network(", switch_latency: 300 ns"), mtu), 3 * (head + 300'000) + 4 * delay + full);
}

TEST(cut_through, short_packets_and_ends_of_messages) {
  for (const std::int64_t bytes : {std::int64_t{0}, std::int64_t{1}, mtu - 1, mtu + 1, 3 * mtu + 17, 20 * mtu + 917})
    delivery(line(4), network(), bytes);
}

// 100 Gb/s, 400 Gb/s, 100 Gb/s: the first switch stores a packet that arrives more slowly than it could leave, the
// second does not.
TEST(cut_through, what_comes_in_slower_than_it_may_go_out_is_stored) {
  const std::string mixed =
      "{kind: graph, hosts: 2, switches: 2, link_rate: 100 Gb/s, link_delay: 500 ns, links: [{from: host0, to: "
      "switch0}, "
      "{from: switch0, to: switch1, rate: 400 Gb/s}, {from: switch1, to: host1}]}";
  EXPECT_EQ(delivery(mixed, network(), mtu), full + head / 4 + full + 3 * delay);
  for (const std::int64_t packets : {2, 3, 25})
    EXPECT_EQ(delivery(mixed, network(), packets * mtu), full + head / 4 + packets * full + 3 * delay);
  for (const std::int64_t bytes : {std::int64_t{5}, mtu + 5, 10 * mtu + 1}) delivery(mixed, network(), bytes);
}

// Links can still be changed before the run: by set_rate() as by ns-3 attributes.
TEST(cut_through, a_link_that_is_made_slower_before_the_run_is_stored) {
  LeanMachine machine(line(3), network());
  machine.fabric->set_rate(NodeId(0), 0, Bandwidth::from_gbps(10));
  machine.post({Time(), 0, machine.open(0, 1), mtu});
  machine.run();
  machine.expect_quiet();
  EXPECT_EQ(machine.messages.at(0).at.ps(), 10 * full + head + full + 3 * delay);
  EXPECT_EQ(machine.received.at(0).ideal.ps(), machine.messages[0].at.ps());
}

// The same for a fault: a switch would otherwise send bytes that have not arrived yet.
TEST(cut_through, what_comes_through_a_degraded_link_is_stored) {
  LeanMachine machine(line(3),
                      network(", failures: [{at: 1 us, until: 100 us, link: [host0, switch0], rate: 10 Gb/s}]"));
  const std::uint32_t pair = machine.open(0, 1);
  for (const std::int64_t at : {0, 2, 102}) machine.post({Time::from_us(at), 0, pair, mtu});
  machine.run();
  machine.expect_quiet();
  const std::int64_t usual = 2 * head + 3 * delay + full;
  EXPECT_EQ(machine.messages.at(0).at.ps(), usual);
  EXPECT_EQ(machine.messages.at(1).at.ps(), Time::from_us(2).ps() + 10 * full + head + full + 3 * delay);
  EXPECT_EQ(machine.messages.at(2).at.ps(), Time::from_us(102).ps() + usual);
}

// A packet that finds the port busy waits as a whole.
TEST(cut_through, a_busy_port_is_waited_for) {
  LeanMachine machine("{kind: star, hosts: 3, link_rate: 100 Gb/s, link_delay: 500 ns}", network());
  machine.post({Time(), 0, machine.open(0, 2), mtu});
  machine.post({Time::from_ps(10), 1, machine.open(1, 2), mtu});
  machine.run();
  machine.expect_quiet();
  EXPECT_EQ(machine.messages.at(0).at.ps(), head + 2 * delay + full);
  EXPECT_EQ(machine.messages.at(1).at.ps(), head + 2 * delay + 2 * full);
}

}  // namespace
}  // namespace weft::cut_through_test
