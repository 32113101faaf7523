// SPDX-License-Identifier: GPL-2.0-only
// Parts of collectives on disk, against the same ones in memory.
#include "results/tables/collective_log.hpp"

#include <algorithm>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "results/tables/fingerprint.hpp"

namespace weft::collective_log_test {
namespace {

std::vector<CollectivePart> made_up(std::uint32_t collectives, std::uint32_t ranks) {
  std::vector<CollectivePart> parts;
  for (std::uint32_t id = 0; id < collectives; ++id)
    for (std::uint32_t rank = 0; rank < ranks; ++rank)
      parts.push_back({id, rank, std::int64_t{id} * 100 + rank, std::int64_t{id} * 100 + 50 + rank * 7 % 5, rank, 8});
  std::shuffle(parts.begin(), parts.end(), std::mt19937_64(1));
  return parts;
}

TEST(CollectiveLog, GivesPartsInOrderAsOftenAsAsked) {
  std::vector<CollectivePart> parts = made_up(200, 6);
  for (const std::size_t in_memory : {std::size_t{40}, std::size_t{100'000}}) {
    CollectiveLog log(in_memory);
    for (const CollectivePart& part : parts) log.add(part);
    log.sort();
    EXPECT_EQ(log.size(), parts.size());
    EXPECT_EQ(log.greatest().collective, 199U);
    EXPECT_EQ(log.fingerprint(), fingerprint_sum<CollectivePart>(parts));
    std::vector<CollectivePart> due = parts;
    std::sort(due.begin(), due.end());
    CollectiveLog::PartCursor first = log.parts(), second = log.parts();
    for (const CollectivePart& part : due) {
      CollectivePart got, again;
      ASSERT_TRUE(first.next(got) && second.next(again));
      EXPECT_EQ(got, part);
      EXPECT_EQ(again, part);
    }
    CollectivePart beyond;
    EXPECT_FALSE(first.next(beyond) || second.next(beyond));
  }
}

// Of each collective the rank that ended last, and of those that ended at once the one with the lowest number.
TEST(CollectiveLog, KeepsTheTimesOfTheRankThatEndedLast) {
  for (const std::size_t in_memory : {std::size_t{40}, std::size_t{100'000}}) {
    CollectiveLog log(in_memory);
    for (const CollectivePart& part : made_up(200, 6)) log.add(part.collective, {part.start, part.end, part.rank, {}});
    log.sort();
    std::vector<CollectiveTimes> last(200);
    CollectiveLog::TimesCursor times = log.times();
    std::uint32_t before = 0;
    for (CollectiveLog::Times one; times.next(one); before = one.collective) {
      EXPECT_GE(one.collective, before);
      if (last[one.collective].before(one.times)) last[one.collective] = one.times;
    }
    // rank * 7 % 5 is 0, 2, 4, 1, 3, 0: rank 2 ends last.
    for (const CollectiveTimes& one : last) EXPECT_EQ(one.rank, 2U);
  }
}

TEST(CollectiveLog, IsEmptyWithoutCollectives) {
  CollectiveLog log;
  log.sort();
  CollectivePart part;
  CollectiveLog::Times times;
  EXPECT_FALSE(log.parts().next(part) || log.times().next(times));
  EXPECT_EQ(log.size() + log.fingerprint(), 0U);
}

}  // namespace
}  // namespace weft::collective_log_test
