// SPDX-License-Identifier: GPL-2.0-only
// Events of a node are popped in the order of time, kind, port, lane and data, for any order of pushing.
#include "fabric/packet/event_heap.hpp"

#include <algorithm>
#include <random>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

namespace weft::event_heap_test {
namespace {

using Key = std::tuple<std::int64_t, NodeEvent::Kind, std::uint32_t, std::uint32_t, std::uint32_t, std::uint16_t>;

Key key(const NodeEvent& event) {
  return {event.time.ps(), event.kind, event.port.value(), event.lane.value(), event.data, event.classes};
}

// Few values of each field, and the largest of each, so that ties of all depths occur.
NodeEvent random_event(std::mt19937& random) {
  const auto few = [&random](std::uint32_t largest) {
    const auto value = static_cast<std::uint32_t>(random() % 4);
    return value == 3 ? largest : value;
  };
  NodeEvent event;
  event.time = Time::from_ps(few(1000));
  event.port = PortId(few(UINT32_MAX));
  event.data = few(UINT32_MAX);
  event.kind = static_cast<NodeEvent::Kind>(random() % (static_cast<unsigned>(NodeEvent::Kind::reporting) + 1));
  event.lane = LaneId(few(UINT8_MAX));
  event.classes = static_cast<std::uint16_t>(few(UINT16_MAX));
  return event;
}

TEST(EventHeap, SortsWhateverComesIn) {
  std::mt19937 random(1);
  EventHeap heap;
  std::vector<Key> expected;
  for (int i = 0; i < 2000; ++i) {
    const NodeEvent event = random_event(random);
    heap.push(event);
    expected.push_back(key(event));
  }
  std::sort(expected.begin(), expected.end());
  for (const Key& next : expected) {
    ASSERT_FALSE(heap.empty());
    const NodeEvent event = heap.front();
    ASSERT_EQ(key(event), next);
    ASSERT_EQ(heap.time(), event.time);
    ASSERT_EQ(heap.kind(), event.kind);
    ASSERT_EQ(heap.port(), event.port);
    heap.take();
    heap.done();
  }
  EXPECT_TRUE(heap.empty());
}

// An event that happens leads to none, one or several later ones.
TEST(EventHeap, EventsThatLeadToOthers) {
  std::mt19937 random(2);
  EventHeap heap;
  std::vector<Key> waiting;
  const auto push = [&](const NodeEvent& event) {
    heap.push(event);
    waiting.push_back(key(event));
  };
  for (int i = 0; i < 50; ++i) push(random_event(random));
  for (int i = 0; i < 5000 && !waiting.empty(); ++i) {
    const auto first = std::min_element(waiting.begin(), waiting.end());
    const NodeEvent event = heap.front();
    ASSERT_EQ(key(event), *first);
    waiting.erase(first);
    heap.take();
    for (std::uint64_t more = random() % 3; more > 0; --more) {
      NodeEvent later = random_event(random);
      later.time += event.time;
      push(later);
    }
    heap.done();
    ASSERT_EQ(heap.empty(), waiting.empty());
  }
}

}  // namespace
}  // namespace weft::event_heap_test
