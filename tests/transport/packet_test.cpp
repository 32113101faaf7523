// SPDX-License-Identifier: GPL-2.0-only
// Properties of plain data on which the hot path relies: sizes, trivial copies, counts of packets, reuse of
// descriptors.
#include "transport/messages/packet.hpp"

#include <cstdint>
#include <limits>
#include <map>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include "support/basics/random.hpp"
#include "tests/literals.hpp"
#include "transport/messages/message.hpp"

namespace weft::packet_test {
namespace {

using namespace literals;

// Packets and descriptors are copied byte by byte between processes.
static_assert(sizeof(Packet) == 32 && 64 % sizeof(Packet) == 0);
static_assert(std::is_trivially_copyable_v<Packet> && std::is_trivially_copyable_v<Message>);
// The largest MTU of the experiment file fits.
static_assert(std::numeric_limits<decltype(Packet::payload)>::max() == 65'535);
static_assert((packet_first & packet_last) == 0 && ((packet_first | packet_last) & packet_notify) == 0);

static_assert(packet_count(0_B, 4096_B) == 1);
static_assert(packet_count(1_B, 4096_B) == 1);
static_assert(packet_count(4095_B, 4096_B) == 1);
static_assert(packet_count(4096_B, 4096_B) == 1);
static_assert(packet_count(4097_B, 4096_B) == 2);
static_assert(packet_count(5_B, 1_B) == 5);
static_assert(packet_count(Bytes((std::int64_t{1} << 32) + 1), 4096_B) == (1U << 20) + 1);

Message numbered(std::uint64_t id) {
  Message message;
  message.id = id;
  message.next = 12345;  // of another list
  return message;
}

TEST(message_pool, a_slot_keeps_its_message_and_loses_its_list) {
  MessagePool pool;
  EXPECT_EQ(pool.live(), 0U);
  const std::uint32_t first = pool.add(numbered(7));
  const std::uint32_t second = pool.add(numbered(8));
  EXPECT_NE(first, second);
  EXPECT_EQ(pool[first].id, 7U);
  EXPECT_EQ(pool[second].id, 8U);
  EXPECT_EQ(pool[first].next, no_slot);
  EXPECT_EQ(pool.live(), 2U);
}

TEST(message_pool, released_slots_are_used_again_before_new_ones) {
  MessagePool pool;
  std::vector<std::uint32_t> slots;
  for (std::uint64_t i = 0; i < 5; ++i) slots.push_back(pool.add(numbered(i)));
  pool.release(slots[3]);
  pool.release(slots[1]);
  EXPECT_EQ(pool.live(), 3U);
  const std::uint32_t a = pool.add(numbered(10));
  const std::uint32_t b = pool.add(numbered(11));
  EXPECT_TRUE((a == slots[1] && b == slots[3]) || (a == slots[3] && b == slots[1])) << a << ' ' << b;
  EXPECT_EQ(pool[a].next, no_slot);
  EXPECT_EQ(pool.add(numbered(12)), 5U);
  EXPECT_EQ(pool.live(), 6U);
}

TEST(message_pool, memory_is_that_of_the_most_messages_at_once) {
  constexpr std::size_t max = 50;
  MessagePool pool;
  std::map<std::uint32_t, std::uint64_t> held;  // slot -> id
  for (std::uint64_t i = 0; i < 20'000; ++i) {
    if (held.size() < max && random_below(2, 1, 0, i) == 0) {
      const std::uint32_t slot = pool.add(numbered(i));
      ASSERT_LT(slot, max);
      ASSERT_TRUE(held.emplace(slot, i).second) << "slot " << slot << " was given twice";
    } else if (!held.empty()) {
      const auto victim = std::next(held.begin(), static_cast<std::ptrdiff_t>(random_below(held.size(), 1, 1, i)));
      ASSERT_EQ(pool[victim->first].id, victim->second);
      pool.release(victim->first);
      held.erase(victim);
    }
    ASSERT_EQ(pool.live(), held.size());
  }
}

}  // namespace
}  // namespace weft::packet_test
