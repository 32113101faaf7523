// SPDX-License-Identifier: GPL-2.0-only
// The baseline carries the expected traffic over the paths of a fat-tree.
#include "app/ns3_baseline/ns3_stack_bench.hpp"

#include <cstdint>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>
#include <ns3/nstime.h>

#include "support/basics/error.hpp"
#include "tests/picoseconds.hpp"

namespace weft::ns3_stack_bench_test {
namespace {

struct PicosecondResolution {
  PicosecondResolution() { count_in_picoseconds(); }
} const picosecond_resolution;

constexpr unsigned k = 4;
constexpr std::uint32_t hosts = k * k * k / 4;
constexpr std::uint32_t payload = 4096;

std::vector<std::uint32_t> silence() {
  std::vector<std::uint32_t> destinations(hosts);
  std::iota(destinations.begin(), destinations.end(), 0U);
  return destinations;
}

std::vector<std::uint32_t> shift_by(std::uint32_t distance) {
  std::vector<std::uint32_t> destinations = silence();
  for (std::uint32_t& host : destinations) host = (host + distance) % hosts;
  return destinations;
}

/// Links between two hosts: 2 under one edge switch, 4 within a pod, 6 between pods.
std::uint64_t links_between(std::uint32_t a, std::uint32_t b) {
  if (a / (k / 2) == b / (k / 2)) return 2;
  return a / (k * k / 4) == b / (k * k / 4) ? 4 : 6;
}

TEST(Ns3StackBench, NobodySends) {
  const Ns3StackResult result = run_ns3_stack_permutation(k, silence(), 1'000'000);
  EXPECT_EQ(result.packet_hops, 0U);
  EXPECT_EQ(result.packets_delivered, 0U);
  EXPECT_EQ(result.simulated_ps, 0);
}

TEST(Ns3StackBench, OnePacketTakesStoreAndForwardTime) {
  for (const std::uint32_t destination : {1U, 2U, 4U, 15U}) {
    std::vector<std::uint32_t> destinations = silence();
    destinations[0] = destination;
    const Ns3StackResult result = run_ns3_stack_permutation(k, destinations, payload);
    const std::int64_t links = static_cast<std::int64_t>(links_between(0, destination));
    // UDP 8 B, IPv4 20 B and PPP 2 B of headers; 400 Gb/s is 20 ps per byte; 500 ns per link; the answer has 4 B.
    const std::int64_t there = links * ((payload + 30) * 20 + 500'000);
    const std::int64_t back = links * ((4 + 30) * 20 + 500'000);
    EXPECT_EQ(result.simulated_ps, there + back) << "to " << destination;
    EXPECT_EQ(result.packet_hops, 2U * links_between(0, destination));
    EXPECT_EQ(result.packets_delivered, 1U);
  }
}

TEST(Ns3StackBench, PermutationsDeliverAllOverShortestPaths) {
  constexpr std::uint64_t bytes = 50 * payload + 1;  // the last packet carries one byte
  for (std::uint32_t distance = 1; distance < hosts; ++distance) {
    const std::vector<std::uint32_t> destinations = shift_by(distance);
    const Ns3StackResult result = run_ns3_stack_permutation(k, destinations, bytes);
    std::uint64_t hops = 0;
    for (std::uint32_t host = 0; host < hosts; ++host) hops += 51 * 2 * links_between(host, destinations[host]);
    EXPECT_EQ(result.packets_delivered, 51U * hosts);
    EXPECT_EQ(result.packet_hops, hops);
    EXPECT_GT(result.wall_seconds, 0);
  }
}

TEST(Ns3StackBench, TheWindowLimitsWhatIsOnTheWay) {
  std::vector<std::uint32_t> destinations = silence();
  destinations[0] = 1;
  constexpr std::int64_t packets = 10;
  const std::int64_t round_trip = 2 * ((payload + 30) * 20 + 500'000) + 2 * ((4 + 30) * 20 + 500'000);
  // One packet per round trip.
  EXPECT_EQ(run_ns3_stack_permutation(k, destinations, packets * payload, payload, payload).simulated_ps,
            packets * round_trip);
  // No limit: the link is never idle.
  EXPECT_EQ(run_ns3_stack_permutation(k, destinations, packets * payload, payload, packets * payload).simulated_ps,
            round_trip + (packets - 1) * (payload + 30) * 20);
}

TEST(Ns3StackBench, RefusesDestinationsThatAreNotThere) {
  EXPECT_THROW(run_ns3_stack_permutation(k, std::vector<std::uint32_t>(3), 1), InternalError);
  EXPECT_THROW(run_ns3_stack_permutation(k, std::vector<std::uint32_t>(hosts, hosts), 1), InternalError);
  EXPECT_THROW(run_ns3_stack_permutation(3, {}, 1), InternalError);
}

}  // namespace
}  // namespace weft::ns3_stack_bench_test
