// SPDX-License-Identifier: GPL-2.0-only
// CoDel (RFC 8289): when a queue that only grows is marked. With waits above the target from time A on, mark n is that
// of the first packet to leave at or after A' + interval (1 + 1/sqrt(2) + ... + 1/sqrt(n - 1)), where A' is the
// departure of the first packet at or after A + interval.
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/fabric/lean_machine.hpp"

namespace weft::codel_test {
namespace {

using test::LeanMachine;
using test::network_of;
using test::Posting;

constexpr std::int64_t mtu = 918;            // with 82 B of headers 1000 B
constexpr std::int64_t packet = 8'000'000;   // ps at 1 Gb/s
constexpr std::int64_t arrival = 80'000;     // ps between packets that come at 100 Gb/s
constexpr std::int64_t target = 50'000'000;  // ps
constexpr std::int64_t interval = 100'000'000;

/// Bursts from one host to another behind a link that is 100 times slower: which packets are marked, by their number in
/// their burst.
std::vector<std::vector<std::int64_t>> marked(const std::vector<Posting>& bursts) {
  LeanMachine machine(
      "{kind: graph, hosts: 2, switches: 1, link_delay: 1 us, links: [{from: host0, to: switch0, rate: 100 Gb/s}, "
      "{from: host1, to: switch0, rate: 1 Gb/s}]}",
      network_of("{mtu: 918 B, window: 1 GiB, ack_interval: 1024, go_back_n: {timeout: 1 s}, ecn: {algorithm: codel, "
                 "target: 50 us, interval: 100 us}}"));
  const auto tap = machine.tap(machine.a_switch(0), 1);
  const std::uint32_t pair = machine.open(0, 1);
  for (Posting posting : bursts) {
    posting.queue_pair = pair;
    machine.post(posting);
  }
  machine.run();
  machine.expect_quiet();
  std::vector<std::vector<std::int64_t>> result;
  std::int64_t number = 0;
  for (const auto& entry : tap->entries) {
    if ((entry.packet.flags & packet_first) != 0) {
      result.emplace_back();
      number = 0;
    }
    if ((entry.packet.flags & packet_ecn) != 0) result.back().push_back(number);
    ++number;
  }
  return result;
}

/// The first packet of a burst that leaves at or after `time`, counted from the departure of the first one.
std::int64_t leaving_at(double time) { return static_cast<std::int64_t>(std::ceil(time / packet)); }

/// Of a burst of `packets`, if the first mark is followed by the next one after interval / sqrt(first).
std::vector<std::int64_t> expected(std::int64_t packets, std::int64_t first = 1) {
  // Packet i has waited i (packet - arrival). Two frames have to wait behind one that is marked.
  const std::int64_t above = (target + packet - arrival - 1) / (packet - arrival);
  std::int64_t next = leaving_at(static_cast<double>(above * packet + interval));
  std::vector<std::int64_t> result;
  double time = static_cast<double>(next * packet);
  for (std::int64_t count = first; next < packets - 2; ++count) {
    result.push_back(next);
    time += static_cast<double>(interval) / std::sqrt(static_cast<double>(count));
    next = leaving_at(time);
  }
  return result;
}

TEST(codel, marks_come_at_intervals_that_shrink_with_the_square_root_of_their_number) {
  // After (interval / packet)^2 = 156 marks, some 2 sqrt(156) intervals or 312 packets, each packet would be marked.
  const auto marks = marked({{Time(), 0, 0, 300 * mtu}});
  ASSERT_EQ(marks.size(), 1U);
  EXPECT_EQ(marks[0], expected(300));
  EXPECT_GT(marks[0].size(), 100U);
  EXPECT_EQ(marks[0][0], 20);  // 50 us are waited from packet 7 on, at 56 us; an interval later it is 156 us
}

TEST(codel, waits_below_the_target_are_not_marked_however_long_the_burst_goes_on) {
  std::vector<Posting> bursts;
  for (int i = 0; i < 50; ++i) bursts.push_back({i * Time::from_us(60), 0, 0, 6 * mtu});
  for (const auto& marks : marked(bursts)) EXPECT_TRUE(marks.empty());
}

// Section 5.5: within 16 intervals of the last mark it begins with the rate that it ended with.
TEST(codel, a_queue_that_comes_back_soon_is_marked_at_the_rate_it_needed) {
  const std::int64_t packets = 100;
  const auto first = static_cast<std::int64_t>(expected(packets).size());
  ASSERT_GT(first, 10);
  const Time end = Time::from_ps(packets * packet);
  const auto soon = marked({{Time(), 0, 0, packets * mtu}, {end + 2 * Time::from_ps(interval), 0, 0, packets * mtu}});
  ASSERT_EQ(soon.size(), 2U);
  EXPECT_EQ(soon[0], expected(packets));
  EXPECT_EQ(soon[1], expected(packets, first - 1));
  const auto late = marked({{Time(), 0, 0, packets * mtu}, {end + 30 * Time::from_ps(interval), 0, 0, packets * mtu}});
  ASSERT_EQ(late.size(), 2U);
  EXPECT_EQ(late[1], expected(packets));
}

}  // namespace
}  // namespace weft::codel_test
