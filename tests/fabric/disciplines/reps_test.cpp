// SPDX-License-Identifier: GPL-2.0-only
// REPS: which entropies a sender uses again, and when it draws none. T. Bonato et al., arXiv:2407.21625, algorithms 1
// and 2.
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "fabric/load_balancing/load_balancing.hpp"
#include "support/basics/error.hpp"
#include "tests/fabric/lean_machine.hpp"

namespace weft::reps_test {
namespace {

using test::LeanMachine;
using test::network_of;

constexpr std::uint32_t round_trip = 24;  // packets

/// A sender whose draws are told from other entropies, which are below 100.
struct Sender {
  explicit Sender(const std::string& own)
      : network(network_of(fmt::format("{{load_balancing: reps, reps: {{{}}}}}", own))),
        balancer(network.fabric.load_balancing->at_sender()) {}

  /// -1 for a draw.
  int next() {
    EntropyDraw draw{7, NodeId(1), 2, Bytes(0)};
    while (draw.value() < 100) draw.sent_bytes = draw.sent_bytes + Bytes(1);
    const std::uint8_t entropy = balancer->entropy(draw);
    return entropy == draw.value() ? -1 : entropy;
  }
  std::vector<int> next(std::size_t packets) {
    std::vector<int> result(packets);
    for (int& entropy : result) entropy = next();
    return result;
  }
  void acknowledge(std::uint8_t entropy, Time now = Time(), bool marked = false) {
    balancer->acknowledged(entropy, marked, now, round_trip);
  }

  NetworkParameters network;
  std::unique_ptr<SenderBalancer> balancer;
};

TEST(reps, good_entropies_are_used_again_once_and_the_oldest_first) {
  Sender sender("buffer: 4");
  EXPECT_EQ(sender.next(2), (std::vector{-1, -1}));
  sender.acknowledge(10);
  sender.acknowledge(11, Time(), true);  // marked: its path has a queue
  sender.acknowledge(12);
  EXPECT_EQ(sender.next(3), (std::vector{10, 12, -1}));
  for (std::uint8_t entropy = 20; entropy <= 25; ++entropy) sender.acknowledge(entropy);
  EXPECT_EQ(sender.next(5), (std::vector{22, 23, 24, 25, -1}));  // there is space for four, the newest ones
}

TEST(reps, after_a_loss_known_entropies_are_used_over_and_over) {
  Sender sender("buffer: 4, freezing: 1 ms");
  for (std::uint8_t entropy = 10; entropy <= 13; ++entropy) sender.acknowledge(entropy);
  EXPECT_EQ(sender.next(5), (std::vector{10, 11, 12, 13, -1}));
  sender.balancer->lost(Time::from_us(100));
  const std::vector<int> frozen = sender.next(8);
  for (const int entropy : frozen) EXPECT_NE(entropy, -1);
  EXPECT_EQ(std::vector(frozen.begin(), frozen.begin() + 4), std::vector(frozen.begin() + 4, frozen.end()));
  sender.acknowledge(14, Time::from_us(200));
  EXPECT_EQ(sender.next(), 14);  // what has come back is used first
  // Until 1.1 ms it is frozen. Then one of four packets of a round trip explores, whatever is known.
  sender.acknowledge(15, Time::from_us(1100));
  EXPECT_EQ(sender.next(), 15);
  EXPECT_NE(sender.next(), -1);
  for (std::uint32_t i = 0; i < 4; ++i) sender.acknowledge(16, Time::from_us(1101));
  std::uint32_t drawn = 0;
  for (std::uint32_t i = 0; i < round_trip; ++i) {
    sender.balancer->lost(Time::from_us(1102));  // of no effect while it explores
    drawn += sender.next() == -1 ? 1 : 0;
    sender.acknowledge(16, Time::from_us(1102));
  }
  EXPECT_EQ(drawn, round_trip / 4);
  EXPECT_EQ(sender.next(5), (std::vector{16, 16, 16, 16, -1}));
}

TEST(reps, a_sender_that_knows_no_entropy_draws_one_in_freezing_mode) {
  Sender sender("freezing: 1 ms");
  sender.balancer->lost(Time());
  EXPECT_EQ(sender.next(), -1);
}

TEST(reps, without_freezing_it_always_draws) {
  Sender sender("freezing: 0 s");
  sender.acknowledge(10);
  sender.balancer->lost(Time());
  EXPECT_EQ(sender.next(2), (std::vector{10, -1}));
}

TEST(reps, values_out_of_range_are_refused) {
  for (const char* own : {"buffer: 0", "buffer: 257", "freezing: -1 s", "size: 8"})
    EXPECT_THROW(network_of(fmt::format("{{load_balancing: reps, reps: {{{}}}}}", own)), InputError) << own;
  EXPECT_THROW(network_of("{load_balancing: spray, reps: {}}"), InputError);
}

// One of four spines is down for good, and routing does not know. A packet, or its ACK, of which the hash of the way
// back chooses the spine anew, goes there with probability p = 1 - (3/4)^2. Of eight windows of 32 packets L are lost,
// about 256 p, a binomial. They are sent again after their loss is known, when the ACKs of the others have come many
// times, so that all entropies that are kept lead over other spines: in freezing mode none of these is lost again. A
// sender that draws loses each with probability p, and again: L / (1 - p) in all, with a variance of L p / (1 - p)^2. A
// round trip has more packets than a window, so that a sender has no known entropy to spare.
TEST(reps, freezing_sends_nothing_again_over_a_dead_link) {
  const auto lost = [](const std::string& freezing) {
    LeanMachine machine(
        "{kind: leaf_spine, leaves: 2, hosts_per_leaf: 8, spines: 4, link_rate: 400 Gb/s, host_link_rate: 100 Gb/s, "
        "link_delay: 1 us}",
        network_of(fmt::format("{{mtu: 1000 B, window: 32 kB, load_balancing: reps, reps: {{freezing: {}}}, "
                               "reconvergence: 1 s, failures: [{{switch: spine0, at: 100 us}}]}}",
                               freezing)));
    for (std::uint32_t h = 0; h < 8; ++h) machine.post({Time(), h, machine.open(h, 8 + h), 8'000'000});
    machine.run_until(Time::from_ms(500));
    EXPECT_EQ(machine.sent.size(), 8U);
    return static_cast<double>(machine.fabric->results().congestion().repeated);
  };
  const double drawn = lost("0 s"), frozen = lost("100 ms");
  const double p = 1 - 0.75 * 0.75;
  EXPECT_NEAR(frozen, 256 * p, 4 * std::sqrt(256 * p * (1 - p)));
  EXPECT_NEAR(drawn, frozen / (1 - p), 4 * std::sqrt(frozen * p) / (1 - p));
  EXPECT_LT(frozen, drawn);
}

}  // namespace
}  // namespace weft::reps_test
