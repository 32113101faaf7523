// SPDX-License-Identifier: GPL-2.0-only
// The radix heap against an ordered set, with many events at one time and events that come while it is being served.
#include "fabric/ideal/ideal_events.hpp"

#include <cstdint>
#include <set>
#include <tuple>

#include <gtest/gtest.h>

#include "support/basics/random.hpp"
#include "tests/literals.hpp"

namespace weft::ideal_events_test {
namespace {

using namespace literals;

TEST(ideal_events, come_in_the_order_of_time_place_and_number) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    IdealEvents events;
    std::set<std::tuple<Time, std::uint64_t, std::uint64_t>> expected;
    std::uint64_t thrown = 0;
    const auto below = [&](std::uint64_t n) { return random_below(n, seed, 0, thrown++); };
    Time now;
    std::uint64_t number = 0;
    const std::int64_t farthest = std::int64_t{1} << (1 + seed * 3);
    for (int step = 0; step < 20'000; ++step) {
      ASSERT_EQ(events.empty(), expected.empty());
      ASSERT_EQ(events.next_time(), expected.empty() ? Time::max() : std::get<0>(*expected.begin()));
      if (expected.empty() || below(10) < (step < 10'000 ? 6U : 4U)) {
        const std::int64_t later =
            below(4) == 0 ? 0 : static_cast<std::int64_t>(below(static_cast<std::uint64_t>(farthest)));
        const Time time = now + Time::from_ps(later);
        const std::uint64_t order = below(5);
        events.push({time, order, number, number});
        expected.emplace(time, order, number++);
        continue;
      }
      const IdealEvent event = events.pop();
      ASSERT_EQ(std::make_tuple(event.time, event.order, event.number), *expected.begin());
      ASSERT_EQ(event.what, event.number);
      expected.erase(expected.begin());
      now = event.time;
    }
    EXPECT_GT(events.memory_bytes(), 0U);
  }
}

// After a look at the time of the first event, an earlier one may still arrive: from another process.
TEST(ideal_events, looking_does_not_move_time) {
  IdealEvents events;
  events.push({1_us, 0, 0, 0});
  EXPECT_EQ(events.next_time(), 1_us);
  events.push({5_ps, 0, 1, 0});
  EXPECT_EQ(events.next_time(), 5_ps);
  EXPECT_EQ(events.pop().time, 5_ps);
  EXPECT_EQ(events.pop().time, 1_us);
  EXPECT_TRUE(events.empty());
}

}  // namespace
}  // namespace weft::ideal_events_test
