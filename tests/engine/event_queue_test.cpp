// SPDX-License-Identifier: GPL-2.0-only
// The queue of pending events against a sorted list.
#include "engine/event_queue.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include <gtest/gtest.h>

#include "support/basics/random.hpp"

namespace weft::event_queue_test {
namespace {

// The queue only compares and hands back these pointers.
ns3::EventImpl* label(std::uintptr_t number) { return reinterpret_cast<ns3::EventImpl*>(8 * (number + 1)); }

TEST(EventQueue, OrdersByTimeThenScheduledThenSourceThenSequence) {
  const std::vector<EventKey> in_order{
      {1, 0, 9, 9}, {2, 0, 5, 1}, {2, 0, 6, 1}, {2, 0, 0, 2}, {2, 1, 0, 0}, {3, 0, 0, 0},
  };
  std::vector<std::size_t> permutation{0, 1, 2, 3, 4, 5};
  do {
    EventQueue queue;
    for (const std::size_t i : permutation) queue.insert(in_order[i], label(i), 0);
    for (std::size_t i = 0; i < in_order.size(); ++i) {
      EXPECT_EQ(queue.next_time(), in_order[i].time);
      EXPECT_EQ(queue.pop().impl, label(i));
    }
    EXPECT_TRUE(queue.empty());
  } while (std::next_permutation(permutation.begin(), permutation.end()));
}

TEST(EventQueue, AgreesWithASortedMapUnderRandomInsertionPopAndErasure) {
  EventQueue queue;
  std::map<EventKey, std::uintptr_t> expected;
  std::map<std::uintptr_t, std::pair<EventKey, std::uint32_t>> pending;  // label -> key and slot
  for (std::uint64_t step = 0; step < 20'000; ++step) {
    const std::uint64_t choice = random_below(10, 1, 0, step);
    if (choice < 5 || expected.empty()) {
      // Few times and sources, so that ties are common.
      const EventKey key{static_cast<std::int64_t>(random_below(50, 1, 1, step)),
                         static_cast<std::int64_t>(random_below(3, 1, 2, step)), step,
                         static_cast<std::uint32_t>(random_below(4, 1, 3, step))};
      const std::uint32_t slot = queue.insert(key, label(step), key.source);
      expected.emplace(key, step);
      pending.emplace(step, std::pair(key, slot));
    } else if (choice < 8) {
      const auto [key, number] = *expected.begin();
      const EventQueue::Event event = queue.pop();
      ASSERT_EQ(event.impl, label(number));
      ASSERT_EQ(event.time, key.time);
      ASSERT_EQ(event.context, key.source);
      EXPECT_FALSE(queue.holds(pending.at(number).second, label(number), key.time));
      pending.erase(number);
      expected.erase(expected.begin());
    } else {
      const auto chosen =
          std::next(pending.begin(), static_cast<std::ptrdiff_t>(random_below(pending.size(), 1, 4, step)));
      const auto [key, slot] = chosen->second;
      ASSERT_TRUE(queue.holds(slot, label(chosen->first), key.time));
      queue.erase(slot);
      EXPECT_FALSE(queue.holds(slot, label(chosen->first), key.time));
      expected.erase(key);
      pending.erase(chosen);
    }
    ASSERT_EQ(queue.size(), expected.size());
  }
}

TEST(EventQueue, HoldsTellsReusedSlotsApart) {
  EventQueue queue;
  const std::uint32_t slot = queue.insert({5, 0, 0, 0}, label(0), 0);
  queue.pop();
  ASSERT_EQ(queue.insert({5, 0, 1, 0}, label(1), 0), slot);
  EXPECT_FALSE(queue.holds(slot, label(0), 5));
  EXPECT_TRUE(queue.holds(slot, label(1), 5));
  EXPECT_FALSE(queue.holds(slot, label(1), 6));
  EXPECT_FALSE(queue.holds(slot + 1, label(1), 5));
}

}  // namespace
}  // namespace weft::event_queue_test
