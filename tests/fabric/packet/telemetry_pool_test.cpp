// SPDX-License-Identifier: GPL-2.0-only
// Telemetry of packets in flight: the values that hops have written are read back, wherever their records are.
#include "fabric/packet/telemetry_pool.hpp"

#include <gtest/gtest.h>

namespace weft::telemetry_pool_test {
namespace {

// Link h of rate h + 1.
HopTelemetry hop_of(TelemetryPool& pool, std::uint32_t packet, std::uint32_t hop) {
  return {Time::from_ps(packet * 1000 + hop), Bytes(packet * 2000 + hop), Bytes(packet * 4000 + hop),
          pool.label_of(hop, Bandwidth::from_bps(hop + 1))};
}

void expect_hops(TelemetryPool& pool, std::uint32_t record, std::uint32_t packet, std::uint32_t count) {
  const std::span<const HopTelemetry> hops = pool.hops(record);
  ASSERT_EQ(hops.size(), count);
  for (std::uint32_t i = 0; i < count; ++i) {
    const HopTelemetry expected = hop_of(pool, packet, i);
    EXPECT_EQ(hops[i].elapsed_since(expected), Time());
    EXPECT_EQ(hops[i].transmitted_since(expected), Bytes());
    EXPECT_EQ(hops[i].queued(), expected.queued());
    EXPECT_TRUE(hops[i].port().is_same_port(PortLabel(i, 0)));
    EXPECT_EQ(pool.rates()[hops[i].port().rate()], Bandwidth::from_bps(i + 1));
  }
}

// The pool grows with the packets; each hop of all of them precedes the next hop of any.
TEST(telemetry_pool, keeps_the_hops_of_many_packets_apart) {
  constexpr std::uint32_t packets = 20'000;
  constexpr std::uint32_t hops = 6;
  TelemetryPool pool;
  std::vector<std::uint32_t> records;
  for (std::uint32_t p = 0; p < packets; ++p) {
    records.push_back(pool.add());
    pool.add_hop(records[p], hop_of(pool, p, 0));
  }
  for (std::uint32_t h = 1; h < hops; ++h)
    for (std::uint32_t p = 0; p < packets; ++p) pool.add_hop(records[p], hop_of(pool, p, h));
  EXPECT_EQ(pool.live(), packets);
  EXPECT_LT(pool.memory_bytes(), 2 * 160 * packets);
  for (std::uint32_t p = 0; p < packets; ++p) expect_hops(pool, records[p], p, hops);
}

TEST(telemetry_pool, a_record_that_is_used_again_begins_without_hops) {
  TelemetryPool pool;
  const std::uint32_t first = pool.add();
  std::uint32_t record = first;
  pool.add_hop(record, hop_of(pool, 1, 0));
  pool.release(record);
  EXPECT_EQ(pool.live(), 0U);
  EXPECT_EQ(pool.add(), first);  // the slot that was released last is in the cache
  EXPECT_TRUE(pool.hops(first).empty());
}

TEST(telemetry_pool, records_are_used_again_before_there_are_more) {
  TelemetryPool pool;
  std::vector<std::uint32_t> records;
  for (int i = 0; i < 64; ++i) records.push_back(pool.add());
  const std::uint64_t memory = pool.memory_bytes();
  for (int turn = 0; turn < 3; ++turn) {
    for (const std::uint32_t record : records) pool.release(record);
    for (std::uint32_t& record : records) record = pool.add();
  }
  EXPECT_EQ(pool.memory_bytes(), memory);
  EXPECT_EQ(pool.live(), 64U);
}

TEST(telemetry_pool, records_no_more_hops_than_a_packet_has_room_for) {
  TelemetryPool pool;
  std::uint32_t record = pool.add();
  const std::uint32_t next = pool.add();
  for (std::uint32_t h = 0; h < TelemetryPool::max_hops + 3; ++h) pool.add_hop(record, hop_of(pool, 1, h));
  expect_hops(pool, record, 1, TelemetryPool::max_hops);
  EXPECT_TRUE(pool.hops(next).empty());
}

TEST(telemetry_pool, a_record_goes_to_another_process_where_rates_have_other_positions) {
  TelemetryPool here;
  TelemetryPool there;
  for (std::uint32_t rate = 9; rate > 0; --rate) there.label_of(0, Bandwidth::from_bps(rate));
  for (std::uint32_t i = 0; i < 70; ++i) there.add();  // it has other records
  std::uint32_t record = here.add();
  for (std::uint32_t h = 0; h < 4; ++h) here.add_hop(record, hop_of(here, 7, h));
  const TelemetryRecord taken = here.take(record);
  EXPECT_EQ(here.live(), 0U);
  EXPECT_EQ(taken.count, 4U);
  std::uint32_t arrived = there.add(taken);
  expect_hops(there, arrived, 7, 4);
  there.add_hop(arrived, hop_of(there, 7, 4));
  expect_hops(there, arrived, 7, 5);
}

TEST(telemetry_pool, links_have_at_most_256_rates) {
  TelemetryPool pool;
  for (std::uint32_t rate = 1; rate <= 256; ++rate)
    EXPECT_EQ(pool.label_of(5, Bandwidth::from_bps(rate)).rate(), rate - 1);
  EXPECT_EQ(pool.label_of(6, Bandwidth::from_bps(256)).rate(), 255U);
  EXPECT_THROW(pool.label_of(5, Bandwidth::from_bps(257)), InternalError);
}

// Six hops, of the longest path of a fat-tree of three tiers, lie in two cache lines, and none has parts of two.
TEST(telemetry_pool, six_hops_lie_in_two_cache_lines) {
  TelemetryPool pool;
  for (std::uint32_t p = 0; p < 20'000; ++p) {
    std::uint32_t record = pool.add();
    for (std::uint32_t h = 0; h < 6; ++h) pool.add_hop(record, hop_of(pool, p, h));
    if (p < 10'000) continue;  // a small pool may lie anywhere
    const auto first = reinterpret_cast<std::uintptr_t>(pool.hops(record).data());
    EXPECT_EQ(first % 32, 0U);
    EXPECT_EQ((first + 6 * sizeof(HopTelemetry) - 1) / 64 - first / 64, 1U);
  }
}

}  // namespace
}  // namespace weft::telemetry_pool_test
