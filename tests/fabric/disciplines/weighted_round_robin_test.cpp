// SPDX-License-Identifier: GPL-2.0-only
// Weighted round robin: of classes that always have something to send, class i sends w_i of the packets of each round,
// so that its share of the link is w_i s_i / sum of w_j s_j with packets of s_i bytes. Katevenis, Sidiropoulos and
// Courcoubetis, "Weighted round-robin cell multiplexing in a general-purpose ATM switch chip", IEEE JSAC 9(8), 1991.
#include <array>
#include <cstdint>
#include <memory>

#include <gtest/gtest.h>

#include "fabric/scheduling/port_scheduler.hpp"

namespace weft::weighted_round_robin_test {
namespace {

std::unique_ptr<PortScheduler> scheduler(const PerLane<std::int64_t>& weight, std::uint32_t sharing) {
  return SchedulingRegistry::instance().find("weighted_round_robin")->make()->make({4, sharing, weight, Bytes(1500)});
}

TEST(weighted_round_robin, shares_are_weights_in_packets) {
  const PerLane<std::int64_t> weight{0, 3, 1, 4};
  const std::array<std::int64_t, 4> size{0, 1500, 64, 700};
  const auto rounds = scheduler(weight, 0b1110);
  std::array<std::int64_t, 4> bytes{};
  for (int packet = 0; packet < 8 * 100; ++packet) {
    ReadyClasses ready;
    ready.lanes = 0b1110;
    for (std::uint32_t lane = 1; lane < 4; ++lane) ready.frame[LaneId(lane)] = Bytes(size[lane]);
    const LaneId lane = rounds->choose(ready);
    ASSERT_EQ(rounds->choose(ready), lane);  // until it sends
    rounds->sends(lane, ready.frame[lane]);
    bytes[lane.value()] += size[lane.value()];
  }
  for (std::uint32_t lane = 1; lane < 4; ++lane)
    EXPECT_EQ(bytes[lane], 100 * weight[LaneId(lane)] * size[lane]) << lane;
}

// A class that had nothing to send when its turn was on gives up the rest of it, and gets no more in the next round.
TEST(weighted_round_robin, what_an_empty_class_does_not_use_is_lost) {
  const auto rounds = scheduler({0, 5, 2}, 0b0110);
  const auto send = [&rounds](std::uint32_t lanes) {
    ReadyClasses ready;
    ready.lanes = lanes;
    const LaneId lane = rounds->choose(ready);
    rounds->sends(lane, Bytes(100));
    return lane.value();
  };
  EXPECT_EQ(send(0b0110), 1U);
  EXPECT_EQ(send(0b0110), 1U);
  rounds->emptied(0b0010);
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 2; ++i) EXPECT_EQ(send(0b0110), 2U);
    for (int i = 0; i < 5; ++i) EXPECT_EQ(send(0b0110), 1U);
  }
}

}  // namespace
}  // namespace weft::weighted_round_robin_test
