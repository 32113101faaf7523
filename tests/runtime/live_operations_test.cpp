// SPDX-License-Identifier: GPL-2.0-only
// Operations that have not ended, by id: as a map has them, at addresses that do not change.
#include "runtime/execution/live_operations.hpp"

#include <map>
#include <random>
#include <utility>

#include <gtest/gtest.h>

namespace weft::live_operations_test {
namespace {

LiveOperation numbered(std::uint64_t id) {
  LiveOperation live;
  live.turn.id = id;
  return live;
}

// Ids that ascend with gaps, so that many have the same place in the table, and whose operations end in any order.
TEST(LiveOperations, AreAsInAMap) {
  std::mt19937 random(1);
  for (const std::uint64_t widest_gap : {1U, 3U, 64U, 1000U}) {
    LiveOperations live;
    std::map<std::uint64_t, const LiveOperation*> expected;
    std::uint64_t next = 0;
    for (int i = 0; i < 4000; ++i) {
      const bool shrinks = i / 1000 % 2 == 1;
      if (expected.empty() || random() % 8 < (shrinks ? 3U : 5U)) {
        next += 1 + random() % widest_gap;
        expected[next] = &live.add(next, numbered(next));
      } else {
        const auto ends = std::next(expected.begin(), static_cast<std::ptrdiff_t>(random() % expected.size()));
        live.erase(ends->first);
        EXPECT_EQ(live.find(ends->first), nullptr);
        expected.erase(ends);
      }
      ASSERT_EQ(live.size(), expected.size());
      ASSERT_EQ(live.empty(), expected.empty());
      EXPECT_EQ(live.find(next + 1), nullptr);
    }
    for (const auto& [id, operation] : expected) {
      EXPECT_EQ(&live.at(id), operation) << "it has moved";
      EXPECT_EQ(live.at(id).turn.id, id);
    }
    std::map<std::uint64_t, const LiveOperation*> found;
    live.for_each([&](const LiveOperation& one) { found[one.turn.id] = &one; });
    EXPECT_EQ(found, expected);
  }
}

TEST(LiveOperations, EndOnce) {
  LiveOperations live;
  live.add(7, numbered(7));
  live.erase(7);
  EXPECT_THROW(live.erase(7), std::logic_error);
  EXPECT_THROW(live.at(7), std::logic_error);
  live.add(7, numbered(7));
  EXPECT_THROW(live.add(7, numbered(7)), std::logic_error);
}

}  // namespace
}  // namespace weft::live_operations_test
