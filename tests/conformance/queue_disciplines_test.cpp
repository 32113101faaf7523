// SPDX-License-Identifier: GPL-2.0-only
// The contracts of the interfaces, for every registered discipline of marking, scheduling and buffer sharing.
#include <bit>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "fabric/buffer_sharing/buffer_sharing.hpp"
#include "fabric/load_balancing/load_balancing.hpp"
#include "fabric/marking/queue_marking.hpp"
#include "fabric/scheduling/port_scheduler.hpp"
#include "support/basics/random.hpp"
#include "tests/conformance/samples.hpp"

namespace weft::queue_disciplines_test {
namespace {

const MarkedPort port{Bandwidth::from_gbps(100), {Bytes(20'000), Bytes(80'000), 0.5}, Bytes(4158), Time::from_us(20)};

/// Marks of `packets` with random queues from `min` to `max`: each waits for its queue at the rate of the port.
std::uint64_t marks(QueueMarker& marker, std::int64_t min, std::int64_t max, std::uint32_t packets) {
  std::uint64_t marked = 0;
  Time now;
  for (std::uint32_t i = 0; i < packets; ++i) {
    now += serialization_time(port.largest_frame, port.rate);
    const auto drawn = static_cast<std::int64_t>(mix64(i) % static_cast<std::uint64_t>(max - min + 1));
    const Bytes queue(min + drawn);
    marked += marker.marks({now, serialization_time(queue, port.rate), queue, {3, i, i}}) ? 1 : 0;
  }
  return marked;
}

class Marking : public testing::TestWithParam<std::string> {};

TEST_P(Marking, nothing_is_marked_up_to_the_floor_and_something_in_a_long_queue) {
  const auto discipline = MarkingRegistry::instance().find(GetParam())->make();
  const std::int64_t floor = discipline->floor(port).count();
  if (floor >= 0) {
    EXPECT_EQ(marks(*discipline->make(port), 0, floor, 10'000), 0U);
  }
  EXPECT_EQ(marks(*discipline->make(port), 0, 0, 10'000), 0U);
  EXPECT_GT(marks(*discipline->make(port), 10'000'000, 20'000'000, 10'000), 0U);
}

// The state of a marker is that of its queue: another one of the same discipline knows nothing of it.
TEST_P(Marking, the_same_history_has_the_same_marks) {
  const auto discipline = MarkingRegistry::instance().find(GetParam())->make();
  const auto first = discipline->make(port);
  const std::uint64_t marked = marks(*first, 0, 200'000, 10'000);
  EXPECT_EQ(marks(*discipline->make(port), 0, 200'000, 10'000), marked);
}

INSTANTIATE_TEST_SUITE_P(Registered, Marking, testing::ValuesIn(MarkingRegistry::instance().names()),
                         conformance::test_name);

class Scheduling : public testing::TestWithParam<std::string> {};

TEST_P(Scheduling, a_ready_class_is_chosen_and_each_gets_its_turn) {
  const ClassShares shares{5, 0b11110, {0, 1, 2, 7, 1}, Bytes(4158)};
  const auto discipline = SchedulingRegistry::instance().find(GetParam())->make();
  const auto scheduler = discipline->make(shares);
  ASSERT_EQ(scheduler != nullptr, discipline->shares());
  if (!scheduler) return;
  std::vector<int> since(shares.classes, 0);
  for (std::uint64_t i = 0; i < 20'000; ++i) {
    ReadyClasses ready;
    ready.lanes = static_cast<std::uint32_t>(mix64(i)) & shares.sharing;
    if (std::popcount(ready.lanes) < 2) continue;
    for (std::uint32_t lane = 1; lane < 5; ++lane)
      ready.frame[LaneId(lane)] = Bytes(64 + static_cast<int>(mix64(i ^ lane) % 4095));
    const LaneId lane = scheduler->choose(ready);
    ASSERT_TRUE(ready.has(lane));
    for (std::uint32_t other = 1; other < 5; ++other) since[other] += ready.has(LaneId(other)) ? 1 : 0;
    since[lane.value()] = 0;
    for (const int waited : since) ASSERT_LT(waited, 2'000);
    scheduler->sends(lane, ready.frame[lane]);
    if (i % 7 == 0) scheduler->emptied(lane.bit());
  }
}

INSTANTIATE_TEST_SUITE_P(Registered, Scheduling, testing::ValuesIn(SchedulingRegistry::instance().names()),
                         conformance::test_name);

class Sharing : public testing::TestWithParam<std::string> {};

TEST_P(Sharing, a_limit_does_not_rise_while_more_is_used) {
  const auto discipline = BufferSharingRegistry::instance().find(GetParam())->make();
  discipline->configure(
      Spec::parse(GetParam() == "static_threshold" ? "{threshold: 100 kB}" : "{alpha_rate: 100 Gb/s}", "test.yaml"));
  constexpr std::int64_t shared = 16'000'000;
  for (const Bandwidth rate : {Bandwidth::from_gbps(25), Bandwidth::from_gbps(400)}) {
    Bytes before = Bytes(INT64_MAX);
    for (std::int64_t used = 0; used <= shared; used += shared / 1000) {
      const Bytes limit = discipline->limit({Bytes(shared), Bytes(used), 96, rate});
      ASSERT_LE(limit, before);
      ASSERT_GE(limit, Bytes());
      before = limit;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Registered, Sharing, testing::ValuesIn(BufferSharingRegistry::instance().names()),
                         conformance::test_name);

class Balancing : public testing::TestWithParam<std::string> {};

TEST_P(Balancing, those_who_decide_somewhere_let_packets_overtake) {
  const auto discipline = LoadBalancingRegistry::instance().find(GetParam())->make();
  const bool decides = discipline->spreads() || discipline->at_switch() || discipline->at_sender();
  EXPECT_EQ(decides, discipline->overtaking() != Overtaking::never);
}

INSTANTIATE_TEST_SUITE_P(Registered, Balancing, testing::ValuesIn(LoadBalancingRegistry::instance().names()),
                         conformance::test_name);

}  // namespace
}  // namespace weft::queue_disciplines_test
