// SPDX-License-Identifier: GPL-2.0-only
// The table of receiving halves: one state for each (sender, queue pair), whatever comes between.
#include "transport/messages/receiver_table.hpp"

#include <cstdint>
#include <map>
#include <utility>

#include <gtest/gtest.h>

#include "support/basics/random.hpp"

namespace weft::receiver_table_test {
namespace {

TEST(receiver_table, a_new_connection_expects_packet_0) {
  ReceiverTable<ReceiverState> table;
  const ReceiverState& state = table.find(NodeId(3), 5);
  EXPECT_TRUE(state.used);
  EXPECT_EQ(state.expected_psn, 0U);
  EXPECT_EQ(state.message_bytes, Bytes());
  EXPECT_EQ(state.message_packets, 0U);
}

TEST(receiver_table, host_0_and_queue_pair_0_are_a_connection_like_others) {
  ReceiverTable<ReceiverState> table;
  table.find(NodeId(0), 0).expected_psn = 1;
  table.find(NodeId(0), 1).expected_psn = 2;
  table.find(NodeId(1), 0).expected_psn = 3;
  EXPECT_EQ(table.find(NodeId(0), 0).expected_psn, 1U);
  EXPECT_EQ(table.find(NodeId(0), 1).expected_psn, 2U);
  EXPECT_EQ(table.find(NodeId(1), 0).expected_psn, 3U);
}

TEST(receiver_table, the_largest_numbers_do_not_meet_others) {
  constexpr std::uint32_t max = 0xffffffffU;
  ReceiverTable<ReceiverState> table;
  table.find(NodeId(max), max).expected_psn = 1;
  table.find(NodeId(max), 0).expected_psn = 2;
  table.find(NodeId(0), max).expected_psn = 3;
  EXPECT_EQ(table.find(NodeId(max), max).expected_psn, 1U);
  EXPECT_EQ(table.find(NodeId(max), 0).expected_psn, 2U);
  EXPECT_EQ(table.find(NodeId(0), max).expected_psn, 3U);
}

TEST(receiver_table, random_packets_against_a_map) {
  for (const std::uint64_t connections : {1, 2, 3, 40, 3000}) {
    ReceiverTable<ReceiverState> table;
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> naive;
    for (std::uint64_t i = 0; i < 20'000; ++i) {
      const std::uint64_t which = random_below(connections, 7, connections, i);
      const auto source = static_cast<std::uint32_t>(which % 17);
      const auto queue_pair = static_cast<std::uint32_t>(which / 17);
      // A burst, as a message is: the table remembers the last one found.
      for (std::uint64_t packet = 0; packet <= i % 3; ++packet) {
        ReceiverState& state = table.find(NodeId(source), queue_pair);
        std::uint32_t& expected = naive[{source, queue_pair}];
        ASSERT_EQ(state.expected_psn, expected) << "host " << source << " queue pair " << queue_pair;
        state.expected_psn = ++expected;
      }
    }
    for (const auto& [key, expected] : naive)
      ASSERT_EQ(table.find(NodeId(key.first), key.second).expected_psn, expected);
  }
}

}  // namespace
}  // namespace weft::receiver_table_test
