// SPDX-License-Identifier: GPL-2.0-only
// Queue pairs: messages into packets, and a window that acknowledged bytes alone open.
#include "transport/messages/queue_pair.hpp"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "support/basics/error.hpp"
#include "support/basics/random.hpp"
#include "tests/literals.hpp"

namespace weft::queue_pair_test {
namespace {

using namespace literals;

constexpr NodeId source(11);
constexpr NodeId destination(22);
constexpr std::uint32_t number = 33;

/// A queue pair of source with its pool.
struct Sender {
  MessagePool pool;
  explicit Sender(Bytes full = 4096_B) : mtu(full), pair(destination, number, 0, full) {}
  Bytes mtu;
  QueuePair pair;
  Bytes window = Bytes::max();

  std::uint32_t post(Bytes bytes, bool notify = false) {
    Message message;
    message.bytes = bytes;
    message.notify = notify ? 1 : 0;
    const std::uint32_t slot = pool.add(message);
    pair.post(Time(), slot, pool);
    return slot;
  }
  bool ready() const { return pair.ready(window); }
  Packet send(bool counted = true) { return pair.next_packet(Time(), source, counted, pool); }
  std::vector<Packet> send_all(bool counted = true) {
    std::vector<Packet> packets;
    while (ready()) packets.push_back(send(counted));
    return packets;
  }
};

TEST(queue_pair, an_empty_one_has_nothing_to_send) {
  Sender sender;
  EXPECT_FALSE(sender.ready());
  EXPECT_TRUE(sender.pair.idle());
  EXPECT_EQ(sender.pair.destination(), destination);
}

TEST(queue_pair, sizes_around_the_mtu) {
  struct Case {
    Bytes bytes;
    std::vector<std::int64_t> payloads;
  };
  const Case cases[] = {{0_B, {0}},
                        {1_B, {1}},
                        {4095_B, {4095}},
                        {4096_B, {4096}},
                        {4097_B, {4096, 1}},
                        {8191_B, {4096, 4095}},
                        {8192_B, {4096, 4096}},
                        {8193_B, {4096, 4096, 1}}};
  for (const Case& one : cases) {
    Sender sender;
    const std::uint32_t slot = sender.post(one.bytes, true);
    const auto packets = sender.send_all();
    ASSERT_EQ(packets.size(), one.payloads.size()) << one.bytes.count();
    ASSERT_EQ(packets.size(), packet_count(one.bytes, sender.mtu));
    for (std::size_t i = 0; i < packets.size(); ++i) {
      const Packet& packet = packets[i];
      const bool last = i + 1 == packets.size();
      EXPECT_EQ(packet.kind, PacketKind::data);
      EXPECT_EQ(packet.source(), source);
      EXPECT_EQ(packet.destination(), destination);
      EXPECT_EQ(packet.queue_pair, number);
      EXPECT_EQ(packet.psn, i);
      EXPECT_EQ(packet.payload, one.payloads[i]) << one.bytes.count();
      EXPECT_EQ(packet.flags, (i == 0 ? packet_first : 0) | (last ? packet_last | packet_notify : 0))
          << one.bytes.count();
      if (last) {
        EXPECT_EQ(packet.message, slot);
      }
    }
    EXPECT_EQ(sender.pair.in_flight(), one.bytes);
  }
}

TEST(queue_pair, messages_follow_in_the_order_of_posting_with_one_sequence_of_numbers) {
  Sender sender(100_B);
  const std::vector<Bytes> sizes{250_B, 0_B, 100_B, 1_B, 0_B, 0_B, 301_B};
  std::vector<std::uint32_t> slots;
  for (const Bytes size : sizes) slots.push_back(sender.post(size));
  std::uint32_t psn = 0;
  for (std::size_t m = 0; m < sizes.size(); ++m) {
    const std::uint64_t packets = packet_count(sizes[m], sender.mtu);
    for (std::uint64_t i = 0; i < packets; ++i) {
      ASSERT_TRUE(sender.ready());
      const Packet packet = sender.send();
      EXPECT_EQ(packet.psn, psn++);
      EXPECT_EQ((packet.flags & packet_first) != 0, i == 0);
      EXPECT_EQ((packet.flags & packet_last) != 0, i + 1 == packets);
      EXPECT_EQ(packet.flags & packet_notify, 0);
      if (i + 1 == packets) {
        EXPECT_EQ(packet.message, slots[m]);
        // The slot is the receiver's now, who may free it while others still wait here.
        sender.pool.release(slots[m]);
      }
    }
  }
  EXPECT_FALSE(sender.ready());
  // A later message continues the count.
  sender.post(5_B);
  const Packet packet = sender.send();
  EXPECT_EQ(packet.psn, psn);
  EXPECT_EQ(packet.flags, packet_first | packet_last);
}

TEST(queue_pair, the_window_opens_with_the_byte_that_makes_room) {
  Sender sender(1000_B);
  sender.window = 3500_B;
  sender.post(10'000_B);
  EXPECT_EQ(sender.send_all().size(), 3U);  // a fourth would make 4000
  EXPECT_EQ(sender.pair.in_flight(), 3000_B);
  sender.pair.acknowledge(499_B);
  EXPECT_FALSE(sender.ready());  // 2501 + 1000
  sender.pair.acknowledge(1_B);
  EXPECT_TRUE(sender.ready());  // 2500 + 1000
  EXPECT_EQ(sender.send_all().size(), 1U);
  EXPECT_EQ(sender.pair.in_flight(), sender.window);
  EXPECT_FALSE(sender.ready());
}

TEST(queue_pair, a_short_last_packet_fits_where_a_full_one_does_not) {
  for (const Bytes last : {499_B, 500_B, 501_B}) {
    Sender sender(1000_B);
    sender.window = 2500_B;
    sender.post(2000_B + last);
    sender.send();
    sender.send();
    EXPECT_EQ(sender.ready(), last <= 500_B) << last.count();
  }
}

TEST(queue_pair, a_window_below_the_mtu_sends_packet_by_packet) {
  Sender sender(1000_B);
  sender.window = 1_B;
  sender.post(2500_B);
  for (const std::int64_t payload : {1000, 1000, 500}) {
    ASSERT_TRUE(sender.ready());
    EXPECT_EQ(sender.send().payload, payload);
    EXPECT_FALSE(sender.ready());
    sender.pair.acknowledge(Bytes(payload - 1));
    EXPECT_FALSE(sender.ready());  // one byte is still unacknowledged
    sender.pair.acknowledge(1_B);
  }
  EXPECT_FALSE(sender.ready());
  EXPECT_TRUE(sender.pair.idle());
}

TEST(queue_pair, empty_messages_need_no_room_but_a_window_that_is_not_exceeded) {
  Sender sender(1000_B);
  sender.window = 1000_B;
  sender.post(1000_B);
  sender.post(0_B);
  sender.post(0_B);
  sender.post(1_B);
  EXPECT_EQ(sender.send_all().size(), 3U);  // 1000, 0, 0
  EXPECT_FALSE(sender.ready());
  sender.pair.acknowledge(1000_B);
  EXPECT_EQ(sender.send_all().size(), 1U);
  // Beyond the window, by a packet larger than it, nothing follows.
  Sender narrow(1000_B);
  narrow.window = 999_B;
  narrow.post(1000_B);
  narrow.post(0_B);
  EXPECT_EQ(narrow.send_all().size(), 1U);
}

TEST(queue_pair, without_acks_nothing_is_in_flight) {
  Sender sender;
  sender.post(1'000'000_B);
  EXPECT_EQ(sender.send_all(false).size(), packet_count(1'000'000_B, sender.mtu));
  EXPECT_EQ(sender.pair.in_flight(), 0_B);
  EXPECT_TRUE(sender.pair.idle());
}

TEST(queue_pair, more_bytes_acknowledged_than_sent_are_a_bug) {
  Sender sender;
  sender.post(1000_B);
  sender.send();
  sender.pair.acknowledge(999_B);
  EXPECT_THROW(sender.pair.acknowledge(2_B), InternalError);
}

TEST(queue_pair, beyond_4_gib) {
  Sender sender(65'535_B);
  const Bytes bytes = 4 * Bytes::kib(1024 * 1024) + 5_B;  // 65537 full packets, which are 2^32 - 1, and 6 bytes
  const std::uint32_t slot = sender.post(bytes);
  Bytes sent;
  std::uint32_t psn = 0;
  Packet packet;
  while (sender.ready()) {
    packet = sender.send();
    ASSERT_EQ(packet.psn, psn++);
    ASSERT_EQ((packet.flags & packet_last) != 0, sent + Bytes(packet.payload) == bytes);
    sent += Bytes(packet.payload);
  }
  EXPECT_EQ(sent, bytes);
  EXPECT_EQ(psn, 65'538U);
  EXPECT_EQ(packet.payload, 6);
  EXPECT_EQ(packet.message, slot);
  EXPECT_EQ(sender.pair.in_flight(), bytes);
  sender.pair.acknowledge(bytes);
  EXPECT_TRUE(sender.pair.idle());
}

TEST(queue_pair, a_window_beyond_4_gib) {
  Sender sender(65'535_B);
  sender.window = 4 * Bytes::kib(1024 * 1024) + 65'535_B;  // 65538 packets less one byte
  sender.post(sender.window + 10 * sender.mtu);
  EXPECT_EQ(sender.send_all().size(), 65'538U);
  EXPECT_EQ(sender.pair.in_flight(), 65'538 * sender.mtu);
}

TEST(queue_pair, random_messages_windows_and_acks_against_lists) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    auto draw = [seed, count = std::uint64_t{0}](std::int64_t n) mutable {
      return static_cast<std::int64_t>(random_below(static_cast<std::uint64_t>(n), seed, 0, count++));
    };
    Sender sender(Bytes(1 + draw(2000)));
    sender.window = Bytes(1 + draw(8000));
    std::deque<std::int64_t> to_send;      // payloads of packets
    std::deque<std::int64_t> outstanding;  // of those on their way
    std::int64_t unacknowledged = 0;
    std::uint32_t psn = 0;
    for (int step = 0; step < 2000; ++step) {
      const std::int64_t action = draw(4);
      if (action == 0 && to_send.size() < 100) {
        std::int64_t rest = draw(5) == 0 ? 0 : draw(4 * sender.mtu.count());
        sender.post(Bytes(rest));
        do {
          to_send.push_back(std::min(rest, sender.mtu.count()));
          rest -= to_send.back();
        } while (rest > 0);
      } else if (action == 1 && !outstanding.empty()) {
        sender.pair.acknowledge(Bytes(outstanding.front()));
        unacknowledged -= outstanding.front();
        outstanding.pop_front();
      }
      const bool may =
          !to_send.empty() && (unacknowledged == 0 || unacknowledged + to_send.front() <= sender.window.count());
      ASSERT_EQ(sender.ready(), may) << "seed " << seed << " step " << step;
      if (!may || action == 2) continue;
      const Packet packet = sender.send();
      ASSERT_EQ(packet.payload, to_send.front());
      ASSERT_EQ(packet.psn, psn++);
      unacknowledged += to_send.front();
      outstanding.push_back(to_send.front());
      to_send.pop_front();
      ASSERT_EQ(sender.pair.in_flight(), Bytes(unacknowledged));
    }
  }
}

TEST(queue_pair, completions_come_in_the_order_of_posting) {
  QueuePair pair(destination, number, 0, 4096_B);
  std::deque<std::uint64_t> naive;
  for (std::uint64_t i = 0; i < 5000; ++i) {
    if (naive.empty() || random_below(2, 3, 0, i) == 0) {
      pair.push_completion(i);
      naive.push_back(i);
    } else {
      ASSERT_EQ(pair.pop_completion(), naive.front());
      naive.pop_front();
    }
  }
}

}  // namespace
}  // namespace weft::queue_pair_test
