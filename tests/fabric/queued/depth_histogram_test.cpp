// SPDX-License-Identifier: GPL-2.0-only
// Percentiles of queue depths over time: by hand, against sorted depths, and of a constructed queue.
#include "fabric/probes/depth_histogram.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/basics/random.hpp"
#include "tests/fabric/lean_machine.hpp"
#include "tests/literals.hpp"

namespace weft::depth_histogram_test {
namespace {

using namespace literals;
using test::LeanMachine;
using test::network_of;

/// Depths and how long they lasted, the shallowest first.
using Spans = std::vector<std::pair<std::int64_t, std::int64_t>>;

/// The least depth that was not exceeded for `share` of the time of `spans`.
std::int64_t exact(Spans spans, double share) {
  std::sort(spans.begin(), spans.end());
  std::int64_t whole = 0, passed = 0;
  for (const auto& [depth, time] : spans) whole += time;
  for (const auto& [depth, time] : spans)
    if ((passed += time) >= static_cast<std::int64_t>(share * static_cast<double>(whole))) return depth;
  return spans.back().first;
}

void expect_close(std::int64_t found, std::int64_t due) {
  EXPECT_GE(found, due);
  EXPECT_LE(found, due == 0 ? 0 : std::max(due + 63, due + due / 16)) << "due " << due;
}

TEST(depth_histogram, by_hand) {
  DepthHistogram depths;
  // Empty for 400 ps, 1,000 B for 500 ps, 100,000 B for 90 ps, 1 MB for 10 ps.
  depths.hold(0_B, 400_ps);
  depths.hold(1'000_B, 900_ps);
  depths.hold(100'000_B, 990_ps);
  depths.hold(1'000'000_B, 1'000_ps);
  EXPECT_EQ(depths.percentile(0.4, 1'000_ps), 0_B);
  expect_close(depths.percentile(0.5, 1'000_ps).count(), 1'000);
  expect_close(depths.percentile(0.9, 1'000_ps).count(), 1'000);
  expect_close(depths.percentile(0.99, 1'000_ps).count(), 100'000);
  EXPECT_EQ(depths.percentile(0.999, 1'000_ps), 1'000'000_B);
  EXPECT_EQ(depths.occupied(), 600_ps);
  EXPECT_DOUBLE_EQ(depths.mean(1'000_ps), (500 * 1e3 + 90 * 1e5 + 10 * 1e6) / 1000);
}

TEST(depth_histogram, agrees_with_sorted_depths_to_a_sixteenth) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    DepthHistogram depths;
    Spans spans;
    std::int64_t now = 0;
    for (std::uint64_t i = 0; i < 1000; ++i) {
      // Of all magnitudes, up to 1 TB; a fifth of them empty.
      const auto magnitude = random_below(40, seed, 1, i);
      const auto depth = random_below(5, seed, 2, i) == 0 ? 0 : random_below(std::uint64_t{2} << magnitude, seed, 3, i);
      const auto time = static_cast<std::int64_t>(random_below(1'000'000, seed, 4, i));
      now += time;
      spans.emplace_back(static_cast<std::int64_t>(depth), time);
      depths.hold(Bytes(static_cast<std::int64_t>(depth)), Time::from_ps(now));
    }
    for (const double share : {0.1, 0.5, 0.9, 0.99, 0.999, 1.0})
      expect_close(depths.percentile(share, Time::from_ps(now)).count(), exact(spans, share));
    EXPECT_LT(depths.memory_bytes(), 16U * 8 * 64);
  }
}

// Twenty packets reach a switch's port at one time: one leaves at once, and 19, 18, ... 1 wait for a packet's time
// each.
TEST(depth_histogram, of_a_queue_that_drains_packet_by_packet) {
  constexpr std::int64_t mtu = 938, frame = 1000;  // and 1020 B on the wire
  constexpr std::int64_t full = 1020 * 80;         // ps at 100 Gb/s
  LeanMachine machine("{kind: star, hosts: 21, link_rate: 100 Gb/s, link_delay: 100 ns}",
                      network_of("{mtu: 938 B, queues: output, ack_interval: 1024}"));
  machine.fabric->probes().queue_depths();
  for (std::uint32_t h = 1; h <= 20; ++h) machine.post({Time(), h, machine.open(h, 0), mtu});
  machine.run();
  machine.expect_quiet();
  const std::int64_t first = full + 100'000;
  Spans spans = {{0, first}};
  for (std::int64_t waiting = 19; waiting > 0; --waiting) spans.emplace_back(waiting * frame, full);
  const std::int64_t end = first + 19 * full + 77'700;
  spans.emplace_back(0, 77'700);
  const auto depths = machine.fabric->results().queue_depths(Time::from_ps(end));
  ASSERT_EQ(depths.size(), 1U);  // the other ports' queues have stayed empty
  EXPECT_EQ(depths[0].lane, 1U);
  EXPECT_EQ(depths[0].priority, 3U);
  EXPECT_EQ(depths[0].peak.count(), 19 * frame);
  EXPECT_EQ(depths[0].occupied.ps(), 19 * full);
  EXPECT_DOUBLE_EQ(depths[0].mean, 190.0 * frame * full / static_cast<double>(end));
  expect_close(depths[0].p50.count(), exact(spans, 0.5));
  expect_close(depths[0].p90.count(), exact(spans, 0.9));
  expect_close(depths[0].p99.count(), exact(spans, 0.99));
  EXPECT_EQ(depths[0].p999.count(), 19 * frame);
  // Not 0 throughout, or this would test little.
  EXPECT_GT(exact(spans, 0.5), 0);
  EXPECT_LT(exact(spans, 0.9), exact(spans, 0.99));
  ProcessGroup group = ProcessGroup::alone();
  EXPECT_EQ(machine.fabric->results().hot_links(group, 1, Time::from_ps(end)).at(0).p99_queue.count(),
            depths[0].p99.count());
}

TEST(depth_histogram, is_not_kept_unless_asked_for) {
  LeanMachine machine("{kind: star, hosts: 3, link_rate: 100 Gb/s, link_delay: 1 us}", network_of("{queues: output}"));
  for (const std::uint32_t h : {1U, 2U}) machine.post({Time(), h, machine.open(h, 0), 4096});
  machine.run();
  EXPECT_TRUE(machine.fabric->results().queue_depths(machine.fabric->now()).empty());
  ProcessGroup group = ProcessGroup::alone();
  EXPECT_EQ(machine.fabric->results().hot_links(group, 1, machine.fabric->now()).at(0).p99_queue.count(), -1);
}

}  // namespace
}  // namespace weft::depth_histogram_test
