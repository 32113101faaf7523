// SPDX-License-Identifier: GPL-2.0-only
// A port at which messages wait: never idle while there is work, against a naive line of single picoseconds.
#include "fabric/ideal/waiting_line.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "support/basics/random.hpp"
#include "tests/literals.hpp"

namespace weft::waiting_line_test {
namespace {

using namespace literals;

TEST(waiting_line, serves_one_after_another) {
  WaitingLine line;
  EXPECT_EQ(line.serve(10_ps, 5_ps), 15_ps);
  EXPECT_EQ(line.serve(10_ps, 5_ps), 20_ps);
  EXPECT_EQ(line.serve(30_ps, 5_ps), 35_ps);
}

// The small message comes at 500, the large one has been coming since 0: it is late by the small one only.
TEST(waiting_line, a_message_is_not_late_by_what_was_before_one_that_overtook_it) {
  WaitingLine line;
  EXPECT_EQ(line.serve(500_ps, 10_ps), 510_ps);
  EXPECT_EQ(line.serve(0_ps, 1000_ps), 1010_ps);
  EXPECT_EQ(line.serve(0_ps, 1_ps), 1011_ps);
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
      ASSERT_EQ(line.serve(Time::from_ps(from), Time::from_ps(work)), Time::from_ps(at))
          << "seed " << seed << " message " << message;
    }
  }
}

// With more times between than it remembers it is pessimistic, never optimistic.
TEST(waiting_line, forgets_the_oldest_times_between) {
  WaitingLine line;
  for (std::int64_t i = 1; i <= 10; ++i) EXPECT_EQ(line.serve(i * 100_ps, 1_ps), i * 100_ps + 1_ps);
  EXPECT_EQ(line.serve(0_ps, 1_ps), 302_ps - 100_ps);  // those before 100 and before 200 are forgotten
}

}  // namespace
}  // namespace weft::waiting_line_test
