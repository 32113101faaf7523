// SPDX-License-Identifier: GPL-2.0-only
// A port at which messages wait: never idle while there is work, against a naive line of single picoseconds.
#include "fabric/ideal/waiting_line.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "support/basics/random.hpp"

namespace weft::waiting_line_test {
namespace {

TEST(waiting_line, serves_one_after_another) {
  WaitingLine line;
  EXPECT_EQ(line.serve(10, 5), 15);
  EXPECT_EQ(line.serve(10, 5), 20);
  EXPECT_EQ(line.serve(30, 5), 35);
}

// The small message comes at 500, the large one has been coming since 0: it is late by the small one only.
TEST(waiting_line, a_message_is_not_late_by_what_was_before_one_that_overtook_it) {
  WaitingLine line;
  EXPECT_EQ(line.serve(500, 10), 510);
  EXPECT_EQ(line.serve(0, 1000), 1010);
  EXPECT_EQ(line.serve(0, 1), 1011);
}

TEST(waiting_line, takes_the_first_free_picoseconds) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    WaitingLine line;
    std::vector<bool> taken(4000);
    std::uint64_t thrown = 0;
    for (int message = 0; message < 8; ++message) {  // as many gaps as a line remembers
      const auto from = static_cast<std::int64_t>(random_below(1000, seed, 1, thrown++));
      const auto work = static_cast<std::int64_t>(1 + random_below(200, seed, 1, thrown++));
      std::int64_t at = from;
      for (std::int64_t left = work; left > 0; ++at) {
        if (taken[static_cast<std::size_t>(at)]) continue;
        taken[static_cast<std::size_t>(at)] = true;
        --left;
      }
      ASSERT_EQ(line.serve(from, work), at) << "seed " << seed << " message " << message;
    }
  }
}

// With more times between than it remembers it is pessimistic, never optimistic.
TEST(waiting_line, forgets_the_oldest_times_between) {
  WaitingLine line;
  for (std::int64_t i = 1; i <= 10; ++i) EXPECT_EQ(line.serve(100 * i, 1), 100 * i + 1);
  EXPECT_EQ(line.serve(0, 1), 302 - 100);  // those before 100 and before 200 are forgotten
}

}  // namespace
}  // namespace weft::waiting_line_test
