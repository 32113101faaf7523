// SPDX-License-Identifier: GPL-2.0-only
// Telemetry of packets in flight: the values that hops have written are read back, wherever their records are.
#include "fabric/packet/telemetry_pool.hpp"

#include <gtest/gtest.h>

namespace weft::telemetry_pool_test {
namespace {

HopTelemetry hop_of(std::uint32_t packet, std::uint32_t hop) {
  return {Time::from_ps(packet * 1000 + hop), Bytes(packet * 2000 + hop), Bandwidth::from_bps(packet * 3000 + hop),
          packet * 4000 + hop, hop};
}

void expect_hops(std::span<const HopTelemetry> hops, std::uint32_t packet, std::uint32_t count) {
  ASSERT_EQ(hops.size(), count);
  for (std::uint32_t i = 0; i < count; ++i) {
    const HopTelemetry expected = hop_of(packet, i);
    EXPECT_EQ(hops[i].time, expected.time);
    EXPECT_EQ(hops[i].transmitted, expected.transmitted);
    EXPECT_EQ(hops[i].rate, expected.rate);
    EXPECT_EQ(hops[i].queue_bytes, expected.queue_bytes);
    EXPECT_EQ(hops[i].directed_link, expected.directed_link);
  }
}

// 7,000 packets are more than a chunk has; each hop of all of them precedes the next hop of any.
TEST(telemetry_pool, keeps_the_hops_of_many_packets_apart) {
  constexpr std::uint32_t packets = 7000;
  constexpr std::uint32_t hops = 6;
  TelemetryPool pool;
  std::vector<std::uint32_t> records;
  for (std::uint32_t p = 0; p < packets; ++p) records.push_back(pool.add());
  for (std::uint32_t h = 0; h < hops; ++h)
    for (std::uint32_t p = 0; p < packets; ++p) pool.add_hop(records[p], hop_of(p, h));
  EXPECT_EQ(pool.live(), packets);
  for (std::uint32_t p = 0; p < packets; ++p) expect_hops(pool.hops(records[p]), p, hops);
}

TEST(telemetry_pool, a_record_that_is_used_again_begins_without_hops) {
  TelemetryPool pool;
  const std::uint32_t first = pool.add();
  std::uint32_t record = first;
  pool.add_hop(record, hop_of(1, 0));
  pool.release(record);
  EXPECT_EQ(pool.live(), 0U);
  EXPECT_EQ(pool.add(), first);  // the slot that was released last is in the cache
  EXPECT_TRUE(pool.hops(first).empty());
}

TEST(telemetry_pool, records_no_more_hops_than_a_packet_has_room_for) {
  TelemetryPool pool;
  std::uint32_t record = pool.add();
  const std::uint32_t next = pool.add();
  for (std::uint32_t h = 0; h < TelemetryPool::max_hops + 3; ++h) pool.add_hop(record, hop_of(1, h));
  expect_hops(pool.hops(record), 1, TelemetryPool::max_hops);
  EXPECT_TRUE(pool.hops(next).empty());
}

TEST(telemetry_pool, a_record_goes_to_another_process) {
  TelemetryPool here;
  TelemetryPool there;
  for (std::uint32_t i = 0; i < 70; ++i) there.add();  // it has other records
  std::uint32_t record = here.add();
  for (std::uint32_t h = 0; h < 4; ++h) here.add_hop(record, hop_of(7, h));
  const TelemetryRecord taken = here.take(record);
  EXPECT_EQ(here.live(), 0U);
  for (std::uint32_t h = 4; h < TelemetryRecord::max_hops; ++h) EXPECT_EQ(taken.hops[h].time, Time());
  std::uint32_t arrived = there.add(taken);
  expect_hops(there.hops(arrived), 7, 4);
  there.add_hop(arrived, hop_of(7, 4));
  expect_hops(there.hops(arrived), 7, 5);
}

// Two hops share a cache line, and none has parts of two.
TEST(telemetry_pool, a_hop_lies_in_one_cache_line) {
  TelemetryPool pool;
  for (std::uint32_t p = 0; p < 3; ++p) {
    std::uint32_t record = pool.add();
    for (std::uint32_t h = 0; h < TelemetryPool::max_hops; ++h) pool.add_hop(record, hop_of(p, h));
    for (const HopTelemetry& hop : pool.hops(record)) EXPECT_EQ(reinterpret_cast<std::uintptr_t>(&hop) % 32, 0U);
  }
}

}  // namespace
}  // namespace weft::telemetry_pool_test
