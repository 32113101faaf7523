// SPDX-License-Identifier: GPL-2.0-only
// The calendar of epochs against a plain map.
#include "fabric/packet/node_calendar.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include <gtest/gtest.h>

#include "support/basics/random.hpp"

namespace weft::node_calendar_test {
namespace {

/// Beside each other: the calendar and the epoch of each node.
class Pair {
 public:
  explicit Pair(std::uint32_t nodes) { calendar_.resize(nodes); }

  void schedule(std::uint32_t node, std::uint64_t epoch) {
    calendar_.schedule(node, epoch);
    const auto [at, fresh] = naive_.emplace(node, epoch);
    if (!fresh) at->second = std::min(at->second, epoch);
  }
  std::uint64_t naive_first() const {
    std::uint64_t min = NodeCalendar::none;
    for (const auto& [node, epoch] : naive_) min = std::min(min, epoch);
    return min;
  }
  void expect_first() { ASSERT_EQ(calendar_.first(), naive_first()); }
  /// The nodes of the first epoch, which must be the same in both.
  std::vector<std::uint32_t> take() {
    const std::uint64_t epoch = calendar_.first();
    EXPECT_EQ(epoch, naive_first());
    std::vector<std::uint32_t> nodes{99, 98, 97};  // take() replaces the content
    calendar_.take(epoch, nodes);
    std::vector<std::uint32_t> expected;
    for (const auto& [node, at] : naive_)
      if (at == epoch) expected.push_back(node);
    std::vector<std::uint32_t> sorted = nodes;
    std::sort(sorted.begin(), sorted.end());
    EXPECT_EQ(sorted, expected) << "epoch " << epoch;
    for (const std::uint32_t node : expected) naive_.erase(node);
    return nodes;
  }
  bool empty() const { return naive_.empty(); }

 private:
  NodeCalendar calendar_;
  std::map<std::uint32_t, std::uint64_t> naive_;
};

TEST(node_calendar, empty) {
  NodeCalendar calendar;
  calendar.resize(3);
  EXPECT_EQ(calendar.first(), NodeCalendar::none);
}

TEST(node_calendar, nodes_of_one_epoch_come_together) {
  Pair pair(5);
  for (const std::uint32_t node : {3U, 0U, 4U}) pair.schedule(node, 7);
  pair.schedule(1, 8);
  EXPECT_EQ(pair.take().size(), 3U);
  EXPECT_EQ(pair.take().size(), 1U);
  EXPECT_TRUE(pair.empty());
  pair.expect_first();
}

TEST(node_calendar, an_earlier_epoch_replaces_a_later_one_and_not_the_other_way_round) {
  Pair pair(2);
  pair.schedule(0, 20);
  pair.schedule(0, 10);
  pair.schedule(0, 30);
  EXPECT_EQ(pair.take(), (std::vector<std::uint32_t>{0}));  // 10
  pair.expect_first();                                      // nothing at 20 nor 30
  pair.schedule(0, 20);                                     // beside the stale entry
  EXPECT_EQ(pair.take(), (std::vector<std::uint32_t>{0}));
  pair.expect_first();
}

TEST(node_calendar, far_epochs_and_the_way_back) {
  Pair pair(4);
  constexpr std::uint64_t far = std::uint64_t{1} << 50;
  pair.schedule(0, far);
  pair.schedule(1, far + 255);
  pair.schedule(2, far + 256);
  pair.expect_first();
  // Before the first one, although that has been looked at: an idle rank gets a packet from another process.
  pair.schedule(3, 5);
  EXPECT_EQ(pair.take(), (std::vector<std::uint32_t>{3}));
  // The same places of a ring of any power of two.
  pair.schedule(3, far - 1024);
  for (const std::uint32_t node : {3U, 0U, 1U, 2U}) EXPECT_EQ(pair.take(), (std::vector<std::uint32_t>{node}));
  EXPECT_TRUE(pair.empty());
}

TEST(node_calendar, random_schedules_against_a_map) {
  // Distances as in runs: dense, at the edge of what a ring of epochs spans, and far.
  for (const std::uint64_t span : {1, 3, 200, 256, 257, 300, 5000, 1'000'000}) {
    for (const std::uint32_t nodes : {1U, 2U, 30U}) {
      Pair pair(nodes);
      std::uint64_t now = 0;
      for (std::uint64_t i = 0; i < 4000; ++i) {
        const auto draw = [&](std::uint64_t n, std::uint64_t what) {
          return random_below(n, span * 100 + nodes, what, i);
        };
        if (draw(3, 0) != 0) {
          pair.schedule(static_cast<std::uint32_t>(draw(nodes, 1)), now + draw(span, 2));
        } else if (draw(4, 3) == 0) {
          pair.expect_first();
        } else if (!pair.empty()) {
          now = pair.naive_first();
          for (const std::uint32_t node : pair.take())
            if (draw(2, 4 + node) == 0) pair.schedule(node, now + draw(span, 100 + node));
        }
        if (HasFailure()) FAIL() << "span " << span << " nodes " << nodes << " step " << i;
      }
      while (!pair.empty()) pair.take();
      pair.expect_first();
    }
  }
}

}  // namespace
}  // namespace weft::node_calendar_test
