// SPDX-License-Identifier: GPL-2.0-only
// Arrivals leave in order for any number of ports and any number of arrivals at the same time.
#include "fabric/packet/arrival_order.hpp"

#include <algorithm>
#include <random>
#include <tuple>

#include <gtest/gtest.h>

namespace weft::arrival_order_test {
namespace {

using Key = std::tuple<Time, std::uint64_t, std::uint32_t>;

Key key(const Arrival& arrival) {
  // A tie of any kind between ports, which is not their number.
  return {arrival.time, (arrival.sequence + arrival.port.value()) * 0x9e3779b97f4a7c15U, arrival.port.value()};
}

bool before(const Arrival& a, const Arrival& b) { return key(a) < key(b); }

/// Ports with `max` arrivals each at the most, at times below `span`, in steps of `step`.
void expect_ordered(ArrivalOrder& order, std::mt19937_64& random, std::uint32_t ports, std::size_t max,
                    std::int64_t span, std::int64_t step) {
  std::vector<Arrival> expected;
  order.clear();
  for (std::uint32_t port = 0; port < ports; ++port) {
    std::vector<std::int64_t> times(random() % (max + 1));
    for (std::int64_t& time : times) time = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(span));
    for (std::int64_t& time : times) time = time / step * step;
    std::ranges::sort(times);
    times.erase(std::unique(times.begin(), times.end()), times.end());  // a link's packets follow one another
    if (times.empty()) continue;
    Arrival* at = order.begin_run(times.size());
    for (std::uint64_t sequence = 0; sequence < times.size(); ++sequence) {
      *at = {Time::from_ps(times[sequence]), sequence, nullptr, PortId(port)};
      expected.push_back(*at++);
    }
    order.end_run(at);
  }
  std::ranges::sort(expected, before);
  const auto sorted = order.sorted(before);
  ASSERT_EQ(sorted.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i)
    ASSERT_EQ(key(sorted[i]), key(expected[i])) << i << " of " << expected.size() << " from " << ports << " ports";
}

TEST(ArrivalOrder, AgreesWithASortOfAllArrivals) {
  ArrivalOrder order;  // one for all, as at a process's nodes
  std::mt19937_64 random(1);
  for (int round = 0; round < 300; ++round)
    for (const std::uint32_t ports : {0U, 1U, 2U, 3U, 5U, 8U, 32U, 64U})
      expect_ordered(order, random, ports, 12, 500'000, 1);
}

TEST(ArrivalOrder, ManyArriveAtTheSameMoment) {
  ArrivalOrder order;
  std::mt19937_64 random(2);
  for (int round = 0; round < 100; ++round)
    for (const std::int64_t step : {2'000, 40'960, 81'920, 500'000})
      expect_ordered(order, random, 33, 6, 500'000, step);
}

/// Random arrivals dealt out to `outputs` ports: at each port all that leave by it, in order.
void expect_dealt_out(ArrivalOrder& order, std::mt19937_64& random, std::uint32_t inputs, std::uint32_t outputs,
                      std::int64_t step) {
  order.clear();
  for (std::uint32_t port = 0; port < inputs; ++port) {
    const std::size_t count = random() % 8;
    if (count == 0) continue;
    Arrival* const at = order.begin_run(count);
    for (std::uint64_t i = 0; i < count; ++i)
      at[i] = {Time::from_ps(static_cast<std::int64_t>(i) * step), i, nullptr, PortId(port)};
    order.end_run(at + count);
  }
  const auto collected = order.collected();
  std::vector<std::uint16_t> routes(collected.size());
  std::vector<std::vector<Key>> expected(outputs);
  for (std::size_t i = 0; i < collected.size(); ++i) {
    routes[i] = static_cast<std::uint16_t>(random() % outputs);
    expected[routes[i]].push_back(key(collected[i]));
  }
  order.deal_out(routes, outputs, before);
  for (std::uint32_t port = 0; port < outputs; ++port) {
    std::ranges::sort(expected[port]);
    std::vector<Key> dealt;
    for (const Departure& departure : order.departures(port)) dealt.push_back(key(collected[departure.number]));
    EXPECT_EQ(dealt, expected[port]) << "port " << port << " of " << outputs;
  }
}

TEST(ArrivalOrder, WhatLeavesByAPortIsInOrder) {
  ArrivalOrder order;
  std::mt19937_64 random(5);
  for (int round = 0; round < 100; ++round)
    for (const std::uint32_t inputs : {0U, 1U, 2U, 8U, 64U})
      for (const std::uint32_t outputs : {1U, 2U, 8U, 64U})
        for (const std::int64_t step : {1'000, 1}) expect_dealt_out(order, random, inputs, outputs, step);
}

TEST(ArrivalOrder, RunsArePortByPort) {
  ArrivalOrder order;
  for (const std::uint32_t port : {3U, 7U}) {
    Arrival* const at = order.begin_run(10);  // fewer arrive than fit
    for (std::uint64_t i = 0; i < port - 1; ++i)
      at[i] = {Time::from_ps(static_cast<std::int64_t>(i)), i, nullptr, PortId(port)};
    order.end_run(at + port - 1);
  }
  ASSERT_EQ(order.runs(), 2U);
  EXPECT_EQ(order.run(0).size(), 2U);
  EXPECT_EQ(order.run(1).size(), 6U);
  EXPECT_EQ(order.run(1).front().port, PortId(7));
  EXPECT_EQ(order.collected().size(), 8U);
}

TEST(ArrivalOrder, MoreArrivalsThanPlaces) {
  ArrivalOrder order;
  std::mt19937_64 random(3);
  expect_ordered(order, random, 64, 300, 500'000'000, 1);
}

TEST(ArrivalOrder, FarApartAndCrowdedAtOneEnd) {
  ArrivalOrder order;
  std::mt19937_64 random(4);
  for (int round = 0; round < 50; ++round) {
    expect_ordered(order, random, 16, 4, std::int64_t{1} << 50, 1);
    order.clear();
    for (std::uint32_t port = 0; port < 16; ++port) {
      Arrival* const at = order.begin_run(2);
      at[0] = {Time::from_ps(port), 0, nullptr, PortId(port)};
      at[1] = {Time::from_ps((std::int64_t{1} << 52) - port), 1, nullptr, PortId(port)};
      order.end_run(at + 2);
    }
    const auto sorted = order.sorted(before);
    ASSERT_TRUE(std::ranges::is_sorted(sorted, before));
    ASSERT_EQ(sorted.size(), 32U);
  }
}

}  // namespace
}  // namespace weft::arrival_order_test
