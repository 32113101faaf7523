// SPDX-License-Identifier: GPL-2.0-only
// Virtual lanes take turns by deficit round robin: Shreedhar and Varghese, "Efficient fair queueing using deficit round
// robin", SIGCOMM 1995.
#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/fabric/lean_machine.hpp"

namespace weft::scheduling_test {
namespace {

using test::LeanMachine;
using test::network_of;

/// A star on which queue pair q travels in lane q modulo 2.
class LaneByPair final : public RoutingAlgorithm {
 public:
  void prepare(const Topology& topology, std::uint64_t) override { hosts_ = topology.graph.host_count(); }
  void route(NodeId at, std::span<const RouteRequest> requests, std::uint16_t* ports) const override {
    for (std::size_t i = 0; i < requests.size(); ++i)
      ports[i] = at.value() < hosts_ ? 0 : static_cast<std::uint16_t>(requests[i].destination.value());
  }
  unsigned lanes() const override { return 2; }
  bool per_packet() const override { return true; }
  RouteChoice choose(NodeId at, const AdaptiveRequest& request, std::span<const Bytes>) const override {
    RouteChoice choice;
    route(at, {&request.flow, 1}, &choice.port);
    choice.lane = request.flow.queue_pair % 2;
    return choice;
  }
  std::vector<std::uint16_t> candidates(NodeId at, NodeId destination) const override {
    return {at.value() < hosts_ ? std::uint16_t{0} : static_cast<std::uint16_t>(destination.value())};
  }

 private:
  std::uint32_t hosts_ = 0;
};
const Registration<RoutingAlgorithm, LaneByPair> registration("lane_by_pair", "of a test");

constexpr std::int64_t mtu = 918, largest = 980;

/// Hosts 0 and 1 send to host 2 in packets of `payloads`, each in its lane. The most by which one of them was served
/// more than the other in any span in which both had packets waiting, in bytes of frames.
std::int64_t unfairness(const std::array<std::int64_t, 2>& payloads) {
  LeanMachine machine("{kind: star, hosts: 3, link_rate: 100 Gb/s, link_delay: 1 us}",
                      network_of("{mtu: 918 B, routing: lane_by_pair, window: 1 GiB, ack_interval: 1024}"));
  const auto tap = machine.tap(machine.a_switch(0), 2);
  for (std::uint32_t h = 0; h < 2; ++h) {
    std::uint32_t pair = machine.open(h, 2);
    if (h == 1) pair = machine.open(h, 2);
    for (std::int64_t sent = 0; sent < 200 * mtu; sent += payloads[h]) machine.post({Time(), h, pair, payloads[h]});
  }
  machine.run();
  machine.expect_quiet();
  std::int64_t difference = 0, low = 0, high = 0;
  std::array<std::size_t, 2> last = {};
  for (std::size_t i = 0; i < tap->entries.size(); ++i) last[tap->entries[i].packet.source().value()] = i;
  // Both wait from the second packet on, and until the last one of one of them leaves.
  for (std::size_t i = 1; i < std::min(last[0], last[1]); ++i) {
    const Packet& packet = tap->entries[i].packet;
    EXPECT_EQ(packet.lane, 1 + packet.source().value());
    difference += (packet.source() == NodeId(0) ? 1 : -1) * (packet.payload + 62);
    low = std::min(low, difference);
    high = std::max(high, difference);
  }
  EXPECT_GT(std::min(last[0], last[1]), 300U);
  return high - low;
}

TEST(scheduling, lanes_are_served_alike_whatever_the_size_of_their_packets) {
  // Their theorem 2: at most a quantum, here the largest frame, and two largest packets.
  for (const auto& payloads : {std::array<std::int64_t, 2>{mtu, mtu}, {mtu, 300}, {17, mtu}, {500, 499}})
    EXPECT_LE(unfairness(payloads), 3 * largest) << payloads[0] << " and " << payloads[1];
  EXPECT_LE(unfairness({mtu, mtu}), largest);  // strictly in turn
}

}  // namespace
}  // namespace weft::scheduling_test
