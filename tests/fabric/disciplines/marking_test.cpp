// SPDX-License-Identifier: GPL-2.0-only
// ECN: the probability of marks over the queue, at departure and at arrival. Floyd and Jacobson, "Random early
// detection gateways for congestion avoidance", IEEE/ACM ToN 1(4), 1993, with the queue itself as RoCE switches do it
// (Zhu et al., SIGCOMM 2015, figure 5).
#include <cmath>
#include <cstdint>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/fabric/lean_machine.hpp"

namespace weft::marking_test {
namespace {

using test::LeanMachine;
using test::network_of;

constexpr std::int64_t mtu = 918, frame = 980;
constexpr std::int64_t slower = 100;  // packet times at 100 Gb/s in one at 1 Gb/s

struct Rule {
  std::int64_t min, max;  // frames
  double probability;
  bool departure;
  double at(std::int64_t queue) const {
    if (queue <= min) return 0;
    if (queue > max) return 1;
    return probability * static_cast<double>(queue - min) / static_cast<double>(max - min);
  }
};

/// `senders` hosts send `packets` each at once to a host with a slow link. The expected marks of the packets, in the
/// order in which they leave, and their actual marks.
struct Burst {
  double expected = 0, variance = 0;
  std::int64_t sure = 0, marked = 0, wrong = 0;

  Burst(const Rule& rule, int senders, std::int64_t packets, std::uint64_t seed) {
    std::string links;
    for (int h = 0; h <= senders; ++h)
      links += fmt::format("{{from: host{}, to: switch0, rate: {} Gb/s}}, ", h, h == senders ? 1 : 100);
    LeanMachine machine(
        fmt::format("{{kind: graph, hosts: {}, switches: 1, link_delay: 1 us, links: [{}]}}", senders + 1, links),
        network_of(fmt::format("{{mtu: {} B, window: 1 GiB, ack_interval: 1024, go_back_n: {{timeout: 1 s}}, ecn: "
                               "{{kmin: {} B, kmax: {} B, pmax: {}, mark: {}}}}}",
                               mtu, rule.min * frame, rule.max * frame, rule.probability,
                               rule.departure ? "departure" : "arrival")),
        seed);
    const auto tap = machine.tap(machine.a_switch(0), static_cast<std::uint32_t>(senders));
    for (int h = 0; h < senders; ++h)
      machine.post({Time(), static_cast<std::uint32_t>(h),
                    machine.open(static_cast<std::uint32_t>(h), static_cast<std::uint32_t>(senders)), packets * mtu});
    machine.run();
    machine.expect_quiet();
    const std::int64_t all = senders * packets;
    EXPECT_EQ(static_cast<std::int64_t>(tap->entries.size()), all);
    for (std::int64_t i = 0; i < all; ++i) {
      // In packet times since the first arrival: packet i comes in round i / senders, and leaves at 100 i, after all
      // arrivals until then. Arrivals are before departures of the same moment.
      std::int64_t queue = 0;
      if (i > 0 && rule.departure) {
        queue = std::min(all, senders * (slower * i + 1)) - (i + 1);
      } else if (i > 0) {
        const std::int64_t round = i / senders;
        queue = i - (1 + (round == 0 ? 0 : (round - 1) / slower));
      }
      const double probability = rule.at(queue);
      const bool is_marked = (tap->entries[static_cast<std::size_t>(i)].packet.flags & packet_ecn) != 0;
      marked += is_marked ? 1 : 0;
      sure += probability == 1 ? 1 : 0;
      wrong += (probability == 0 && is_marked) || (probability == 1 && !is_marked) ? 1 : 0;
      expected += probability;
      variance += probability * (1 - probability);
    }
    EXPECT_EQ(machine.class_counters(machine.a_switch(0), 1, static_cast<std::uint32_t>(senders)).marked,
              static_cast<std::uint64_t>(marked));
  }
};

void expect_statistics(const Rule& rule, int senders, std::int64_t packets) {
  double expected = 0, variance = 0, marked = 0;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const Burst burst(rule, senders, packets, seed);
    EXPECT_EQ(burst.wrong, 0);
    expected += burst.expected;
    variance += burst.variance;
    marked += static_cast<double>(burst.marked);
  }
  EXPECT_GT(variance, 100);
  EXPECT_NEAR(marked, expected, 4 * std::sqrt(variance));
}

TEST(marking, the_probability_rises_from_kmin_to_kmax_at_departure) {
  expect_statistics({100, 900, 0.2, true}, 1, 1000);
  expect_statistics({100, 900, 1.0, true}, 1, 1000);
  expect_statistics({0, 400, 0.5, true}, 3, 300);
}

// Many packets come between two departures; each has its own luck.
TEST(marking, the_probability_rises_from_kmin_to_kmax_at_arrival) {
  expect_statistics({100, 900, 0.2, false}, 1, 1000);
  expect_statistics({100, 900, 1.0, false}, 10, 100);
  expect_statistics({0, 400, 0.5, false}, 3, 300);
}

TEST(marking, a_step_is_exact) {
  for (const bool departure : {true, false}) {
    const Burst burst({50, 50, 1.0, departure}, 2, 200, 1);
    EXPECT_EQ(burst.wrong, 0);
    EXPECT_EQ(burst.marked, burst.sure);
    EXPECT_GT(burst.sure, 200);
  }
}

}  // namespace
}  // namespace weft::marking_test
