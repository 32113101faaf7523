// SPDX-License-Identifier: GPL-2.0-only
// Packets that reach a switch at one moment: their order is drawn from the seed, the link and the packet's number on
// it, so that no port is favoured and nothing else matters.
#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/fabric/lean_machine.hpp"

namespace weft::ties_test {
namespace {

using test::LeanMachine;

constexpr std::uint32_t senders = 3;  // hosts 0, 1, 2
constexpr std::uint32_t receiver = 3;
using Order = std::array<std::uint32_t, senders>;  ///< of the senders' packets

NetworkParameters no_acks() {
  NetworkParameters network;
  network.acks = false;
  return network;
}

const std::string star = "{kind: star, hosts: 4, link_rate: 100 Gb/s, link_delay: 1 us}";

/// In each round every sender sends a packet at the same time, over links of the same length. Returns the orders in
/// which they leave the switch.
std::vector<Order> orders_of(LeanMachine& machine, int rounds, Time interval) {
  for (std::uint32_t host = 0; host < senders; ++host) {
    const std::uint32_t pair = machine.open(host, receiver);
    for (int round = 0; round < rounds; ++round) machine.post({round * interval, host, pair, 4096});
  }
  machine.run();
  machine.expect_quiet();
  std::vector<Order> orders(static_cast<std::size_t>(rounds));
  for (std::size_t i = 0; i < machine.messages.size(); ++i)
    orders[i / senders][i % senders] = static_cast<std::uint32_t>(machine.messages[i].what >> 32);
  return orders;
}
std::vector<Order> orders_of(std::uint64_t seed, int rounds, Time interval = Time::from_us(10)) {
  LeanMachine machine(star, no_acks(), seed);
  return orders_of(machine, rounds, interval);
}

/// All 6 orders are equally frequent: chi-square with 5 degrees of freedom is below 20.5 in 99.9 % of all samples.
void expect_fair(const std::vector<Order>& orders) {
  std::map<Order, int> counts;
  for (Order order : orders) {
    ++counts[order];
    std::sort(order.begin(), order.end());
    ASSERT_EQ(order, (Order{0, 1, 2}));
  }
  const double expected = static_cast<double>(orders.size()) / 6;
  double chi_square = static_cast<double>(6 - counts.size()) * expected;
  for (const auto& [order, count] : counts) chi_square += (count - expected) * (count - expected) / expected;
  EXPECT_LT(chi_square, 20.5);
}

TEST(ties, packets_of_one_run_favour_nobody) { expect_fair(orders_of(1, 1200)); }

TEST(ties, first_packets_of_many_seeds_favour_nobody) {
  std::vector<Order> orders;
  for (std::uint64_t seed = 0; seed < 1200; ++seed) orders.push_back(orders_of(seed, 1)[0]);
  expect_fair(orders);
}

TEST(ties, the_number_of_the_packet_counts_and_not_the_time) {
  const auto orders = orders_of(1, 100);
  EXPECT_EQ(orders_of(1, 100, Time::from_ns(1234)), orders);
  EXPECT_NE(orders_of(2, 100), orders);
}

TEST(ties, a_packet_more_on_a_link_shifts_its_numbers_only) {
  // A first packet of host 1, long before the others.
  LeanMachine machine(star, no_acks(), 1);
  machine.post({Time(), 1, machine.open(1, receiver), 4096});
  for (std::uint32_t host = 0; host < senders; ++host) {
    const std::uint32_t pair = machine.open(host, receiver);
    for (int round = 0; round < 100; ++round) machine.post({(1 + round) * Time::from_us(10), host, pair, 4096});
  }
  machine.run();
  ASSERT_EQ(machine.messages.size(), 1U + 100 * senders);
  const auto plain = orders_of(1, 100);
  int same_order_of_0_and_2 = 0;
  int same_order_of_all = 0;
  for (std::size_t round = 0; round < 100; ++round) {
    Order order;
    for (std::size_t i = 0; i < senders; ++i)
      order[i] = static_cast<std::uint32_t>(machine.messages[1 + round * senders + i].what >> 32);
    const auto zero_first = [](const Order& o) {
      return std::find(o.begin(), o.end(), 0U) < std::find(o.begin(), o.end(), 2U);
    };
    same_order_of_0_and_2 += zero_first(order) == zero_first(plain[round]) ? 1 : 0;
    same_order_of_all += order == plain[round] ? 1 : 0;
  }
  EXPECT_EQ(same_order_of_0_and_2, 100);
  EXPECT_LT(same_order_of_all, 80);
}

/// The links of the senders and the receiver are numbers 1, 3, 5 and 6 of the machine. The others lead to idle hosts at
/// `idle_switch`: at switch 0 they shift the numbers of its ports.
std::string with_idle_hosts(const std::string& idle_switch) {
  std::string text = "kind: graph\nhosts: 7\nswitches: 2\nlink_rate: 100 Gb/s\nlink_delay: 1 us\nlinks:\n";
  const auto link = [&text](const std::string& from, const std::string& to) {
    text += "  - {from: " + from + ", to: " + to + "}\n";
  };
  for (const std::string number : {"0", "1", "2"}) {
    link("host" + std::to_string(4 + number[0] - '0'), idle_switch);
    link("host" + number, "switch0");
  }
  link("host3", "switch0");
  link("switch0", "switch1");
  return text;
}

TEST(ties, numbers_of_ports_do_not_matter) {
  LeanMachine plain(with_idle_hosts("switch1"), no_acks());
  LeanMachine shifted(with_idle_hosts("switch0"), no_acks());
  for (std::uint32_t host = 0; host < senders; ++host) {
    EXPECT_EQ(plain.topology.graph.ports(NodeId(host))[0].peer_port, host);
    EXPECT_EQ(shifted.topology.graph.ports(NodeId(host))[0].peer_port, 2 * host + 1);
  }
  EXPECT_EQ(orders_of(plain, 100, Time::from_us(10)), orders_of(shifted, 100, Time::from_us(10)));
}

TEST(ties, a_tie_costs_time_but_in_all_the_same) {
  // For any order: the k-th packet out has waited for k others.
  LeanMachine machine(star, no_acks());
  orders_of(machine, 50, Time::from_us(10));
  const Time each = Time::from_ps((4096 + 82) * 80);
  for (std::size_t i = 0; i < machine.messages.size(); ++i)
    EXPECT_EQ(machine.messages[i].at, static_cast<std::int64_t>(i / senders) * Time::from_us(10) + 2 * each +
                                          Time::from_us(2) + static_cast<std::int64_t>(i % senders) * each);
  EXPECT_EQ(machine.counters(machine.a_switch(0), receiver).peak_queue_bytes.count(), 3 * (4096 + 82));
}

}  // namespace
}  // namespace weft::ties_test
