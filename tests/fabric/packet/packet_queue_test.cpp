// SPDX-License-Identifier: GPL-2.0-only
// Queues of packets over a common pool of blocks, against deques.
#include "fabric/packet/packet_queue.hpp"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/basics/random.hpp"

namespace weft::packet_queue_test {
namespace {

Packet numbered(std::uint64_t i) {
  Packet packet;
  packet.psn = static_cast<std::uint32_t>(i);
  packet.time = Time::from_ps(-1);  // replaced by the time of arrival
  return packet;
}

TEST(packet_queue, counts_what_came_and_what_went) {
  PacketBlocks blocks;
  PacketQueue queue;
  EXPECT_TRUE(queue.empty());
  // Several times through lengths around a block's.
  std::uint64_t pushed = 0;
  std::uint64_t taken = 0;
  for (std::uint64_t length = 1; length <= 30; ++length) {
    for (std::uint64_t i = 0; i < length; ++i, ++pushed)
      queue.push(numbered(pushed), Time::from_ps(static_cast<std::int64_t>(10 * pushed)), blocks);
    EXPECT_EQ(queue.size(), length);
    EXPECT_EQ(queue.pushed(), pushed);
    for (; taken < pushed; ++taken) {
      EXPECT_EQ(queue.taken(), taken);
      ASSERT_EQ(queue.front().psn, taken);
      ASSERT_EQ(queue.front().time, Time::from_ps(static_cast<std::int64_t>(10 * taken)));
      queue.pop(blocks);
    }
    EXPECT_TRUE(queue.empty());
    blocks.reuse_retired();
  }
}

TEST(packet_queue, random_pushes_and_pops_of_several_queues_against_deques) {
  constexpr std::uint64_t queues = 5;
  for (const std::uint64_t max : {1, 7, 8, 100}) {
    PacketBlocks blocks;
    std::vector<PacketQueue> real(queues);
    std::vector<std::deque<std::pair<std::uint32_t, Time>>> naive(queues);  // number, arrival
    for (std::uint64_t i = 0; i < 30'000; ++i) {
      const auto draw = [&](std::uint64_t n, std::uint64_t what) { return random_below(n, max, what, i); };
      const std::uint64_t q = draw(queues, 0);
      // Long phases of filling and of emptying.
      const bool fills = i / (20 * max) % 2 == 0;
      if (naive[q].size() < max && draw(4, 1) < (fills ? 3U : 1U)) {
        const Time arrival = Time::from_ps(static_cast<std::int64_t>(draw(1'000'000, 2)));
        real[q].push(numbered(i), arrival, blocks);
        naive[q].emplace_back(static_cast<std::uint32_t>(i), arrival);
      } else if (!naive[q].empty()) {
        real[q].pop(blocks);
        naive[q].pop_front();
      }
      if (draw(3, 3) == 0) blocks.reuse_retired();
      ASSERT_EQ(real[q].size(), naive[q].size());
      ASSERT_EQ(real[q].empty(), naive[q].empty());
      if (naive[q].empty()) continue;
      ASSERT_EQ(real[q].front().psn, naive[q].front().first);
      ASSERT_EQ(real[q].front().time, naive[q].front().second);
    }
  }
}

TEST(packet_queue, takes_all_that_arrive_before_a_time) {
  PacketBlocks blocks;
  PacketQueue queue;
  std::deque<std::uint64_t> naive;  // numbers, which are the times of arrival too
  std::uint64_t number = 0;
  std::uint64_t taken = 0;
  for (std::uint64_t round = 0; round < 2'000; ++round) {
    for (std::uint64_t left = random_below(25, 1, 0, round); left > 0; --left, ++number) {
      queue.push(numbered(number), Time::from_ps(static_cast<std::int64_t>(number)), blocks);
      naive.push_back(number);
    }
    const std::uint64_t end = taken + random_below(25, 1, 1, round);
    std::vector<const Packet*> packets;
    queue.pop_before(Time::from_ps(static_cast<std::int64_t>(end)), blocks,
                     [&](const Packet& packet, std::uint64_t sequence) {
                       EXPECT_EQ(sequence, taken++);
                       packets.push_back(&packet);
                     });
    for (const Packet* packet : packets) {
      ASSERT_EQ(packet->psn, naive.front()) << "round " << round;
      naive.pop_front();
    }
    ASSERT_TRUE(naive.empty() || naive.front() >= end) << "round " << round;
    ASSERT_EQ(queue.size(), naive.size());
    ASSERT_EQ(queue.taken(), taken);
    if (!naive.empty()) {
      ASSERT_EQ(queue.front().psn, naive.front());
    }
    blocks.reuse_retired();
  }
  EXPECT_GT(taken, 10'000U);
}

TEST(packet_queue, what_was_popped_stays_readable_until_blocks_are_used_again) {
  PacketBlocks blocks;
  PacketQueue source;
  PacketQueue other;
  std::uint64_t number = 0;
  for (std::uint64_t round = 0; round < 200; ++round) {
    std::vector<std::pair<const Packet*, std::uint32_t>> popped;
    const std::uint64_t count = 1 + random_below(40, 1, 0, round);
    for (std::uint64_t i = 0; i < count; ++i, ++number)
      source.push(numbered(number), Time::from_ps(static_cast<std::int64_t>(number)), blocks);
    const std::uint64_t taken = random_below(source.size() + 1, 1, 1, round);
    for (std::uint64_t i = 0; i < taken; ++i) {
      popped.emplace_back(&source.front(), source.front().psn);
      source.pop(blocks);
    }
    // As a switch does: others' queues grow while it reads its arrivals.
    for (std::uint64_t i = 0; i < count; ++i) other.push(numbered(1'000'000 + i), Time(), blocks);
    for (const auto& [packet, psn] : popped) ASSERT_EQ(packet->psn, psn) << "round " << round;
    while (!other.empty()) other.pop(blocks);
    blocks.reuse_retired();
  }
}

TEST(packet_queue, memory_follows_the_most_packets_at_once) {
  PacketBlocks blocks;
  PacketQueue queue;
  constexpr std::uint64_t max = 70;  // in at most 11 blocks of 7, wherever the first one begins
  for (std::uint64_t i = 0; i < 100'000; ++i) {
    queue.push(numbered(i), Time(), blocks);
    if (queue.size() == max) queue.pop(blocks);
    blocks.reuse_retired();
  }
  EXPECT_LE(blocks.memory(), 11 * PacketBlock::size);
}

TEST(packet_queue, many_more_packets_than_a_chunk_of_memory_holds) {
  PacketBlocks blocks;
  PacketQueue queue;
  constexpr std::uint64_t count = 200'000;  // 28,572 blocks of 256 B: 7 MB
  for (std::uint64_t i = 0; i < count; ++i) queue.push(numbered(i), Time(), blocks);
  EXPECT_GE(blocks.memory(), count / 7 * PacketBlock::size);
  EXPECT_LE(blocks.memory(), (count / 7 + 1) * PacketBlock::size);
  for (std::uint64_t i = 0; i < count; ++i) {
    ASSERT_EQ(queue.front().psn, i);
    queue.pop(blocks);
  }
  EXPECT_TRUE(queue.empty());
}

}  // namespace
}  // namespace weft::packet_queue_test
