// SPDX-License-Identifier: GPL-2.0-only
// Messages find their recvs: the n-th send of a (source, tag) the n-th recv, however they overtake each other.
#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "support/basics/random.hpp"
#include "tests/runtime/job.hpp"

namespace weft::matching_test {
namespace {

using test::Job;
using test::ListWorkload;
using test::us;

/// When the message of so many bytes (which name it in these tests) was delivered.
std::int64_t delivery(Job& job, std::int64_t bytes) {
  for (const MessageRecord& row : job.messages())
    if (row.bytes == bytes) return row.delivered;
  ADD_FAILURE() << "no message of " << bytes << " B";
  return -1;
}

TEST(matching, many_messages_of_one_tag_in_flight) {
  constexpr std::int64_t count = 500;
  auto list = std::make_unique<ListWorkload>(2);
  const auto bytes = [](std::int64_t i) { return (i * 7919) % 10'007; };
  for (std::int64_t i = 0; i < count; ++i) {
    list->send(0, 1, bytes(i), 3);
    list->recv(1, 0, bytes(i), 3);
  }
  Job job(2, std::move(list));
  job.complete();
  ASSERT_EQ(job.messages().size(), static_cast<std::size_t>(count));
  std::int64_t last = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t end = job.operation(1, static_cast<std::uint64_t>(i)).end;
    EXPECT_EQ(end, delivery(job, bytes(i))) << i;
    EXPECT_GT(end, last);
    last = end;
  }
}

TEST(matching, a_message_that_overtakes_waits_for_its_own_recv) {
  // 100 kB on one queue pair, then 1 B on another, under one tag.
  auto list = std::make_unique<ListWorkload>(2);
  list->send(0, 1, 100'000, 3, 0);
  list->send(0, 1, 1, 3, 1);
  list->recv(1, 0, 100'000, 3);
  list->recv(1, 0, 1, 3);
  Job job(2, std::move(list));
  job.complete();
  EXPECT_LT(delivery(job, 1), delivery(job, 100'000));
  EXPECT_EQ(job.operation(1, 0).end, delivery(job, 100'000));
  EXPECT_EQ(job.operation(1, 1).end, delivery(job, 1));
}

TEST(matching, goes_by_program_order_and_not_by_the_order_of_starting) {
  // The first send and the first recv are held up; the second of each are not.
  auto list = std::make_unique<ListWorkload>(2);
  const auto busy = list->compute(0, us(50));
  list->send(0, 1, 100, 3, 0, {busy});
  list->send(0, 1, 200, 3);
  const auto occupied = list->compute(1, us(20));
  list->recv(1, 0, 100, 3, {occupied});
  list->recv(1, 0, 200, 3);
  Job job(2, std::move(list));
  job.complete();
  EXPECT_EQ(job.operation(1, 1).end, (us(50) + test::one_packet(100)).ps());
  EXPECT_EQ(job.operation(1, 2).end, test::one_packet(200).ps());
}

TEST(matching, sources_and_tags_are_apart) {
  // The largest tag and tag 0, of two sources, posted by the receiver in the reverse order.
  constexpr std::uint32_t max = 0xffffffffU;
  auto list = std::make_unique<ListWorkload>(3);
  std::int64_t bytes = 100;
  for (const std::uint32_t tag : {0U, 1U, max})
    for (const std::uint32_t source : {0U, 1U}) list->send(source, 2, bytes++, tag);
  for (const std::uint32_t tag : {max, 1U, 0U})
    for (const std::uint32_t source : {1U, 0U}) list->recv(2, source, --bytes, tag);
  Job job(3, std::move(list));
  job.complete();
  EXPECT_EQ(job.messages().size(), 6U);
}

TEST(matching, a_recv_of_what_is_there_already_takes_no_time) {
  auto list = std::make_unique<ListWorkload>(2);
  for (int i = 0; i < 10; ++i) list->send(0, 1, 1000 + i);
  const auto busy = list->compute(1, us(100));
  for (int i = 0; i < 10; ++i) list->recv(1, 0, 1000 + i, 0, {busy});
  Job job(2, std::move(list));
  job.complete();
  for (std::uint64_t i = 1; i <= 10; ++i) {
    EXPECT_EQ(job.start(1, i), us(100));
    EXPECT_EQ(job.end(1, i), us(100));
  }
}

TEST(matching, random_programs_against_the_rule) {
  // A recv ends when both it has started and its message is there.
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    constexpr std::uint32_t ranks = 4;
    auto list = std::make_unique<ListWorkload>(ranks);
    std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, std::vector<std::int64_t>> lanes;
    for (std::int64_t i = 0; i < 150; ++i) {
      const auto draw = [&](std::uint64_t n, std::uint64_t what) {
        return random_below(n, seed, what, static_cast<std::uint64_t>(i));
      };
      const auto source = static_cast<std::uint32_t>(draw(ranks, 0));
      const auto to = static_cast<std::uint32_t>((source + 1 + draw(ranks - 1, 1)) % ranks);
      const auto tag = static_cast<std::uint32_t>(draw(2, 2));
      // Sizes differ, so that they name the messages; some are of many packets, some of one.
      const std::int64_t bytes = draw(3, 3) == 0 ? 20'000 + 150 * static_cast<std::int64_t>(draw(100, 4)) + i : i;
      std::vector<std::uint64_t> after;
      if (draw(2, 5) == 0) after.push_back(list->compute(source, us(static_cast<std::int64_t>(draw(30, 6)))));
      list->send(source, to, bytes, tag, static_cast<std::uint32_t>(draw(3, 7)), after);
      lanes[{source, to, tag}].push_back(bytes);
    }
    std::map<std::pair<std::uint32_t, std::uint64_t>, std::int64_t> message_of;  // (rank, recv) -> bytes
    for (const auto& [lane, sizes] : lanes) {
      const auto& [source, to, tag] = lane;
      for (std::size_t i = 0; i < sizes.size(); ++i) {
        const std::uint64_t entity = (std::uint64_t{source} << 16) + (to << 8) + tag;
        std::vector<std::uint64_t> after;
        if (random_below(2, seed, entity, i) == 0)
          after.push_back(list->compute(to, us(static_cast<std::int64_t>(random_below(60, seed, entity, 1000 + i)))));
        message_of[{to, list->recv(to, source, sizes[i], tag, after)}] = sizes[i];
      }
    }
    Job job(ranks, std::move(list));
    job.complete();
    for (const auto& [recv, bytes] : message_of) {
      const OperationRecord row = job.operation(recv.first, recv.second);
      ASSERT_EQ(row.end, std::max(row.start, delivery(job, bytes))) << "seed " << seed;
    }
  }
}

TEST(matching, another_size_than_expected_is_a_bug_of_the_workload) {
  for (const std::int64_t wait : {0, 100}) {  // the message arrives after the recv, and before it
    auto list = std::make_unique<ListWorkload>(2);
    list->send(0, 1, 1000, 7);
    list->recv(1, 0, 1001, 7, {list->compute(1, us(wait))});
    Job job(2, std::move(list));
    try {
      job.run();
      ADD_FAILURE() << "nothing was thrown";
    } catch (const InternalError& error) {
      EXPECT_NE(std::string(error.what()).find("rank 1 receives 1000 bytes from rank 0 tag 7, expected 1001"),
                std::string::npos)
          << error.what();
    }
  }
}

TEST(matching, a_message_that_nobody_receives_leaves_the_rank_unfinished) {
  auto list = std::make_unique<ListWorkload>(2);
  list->send(0, 1, 1000);
  Job job(2, std::move(list));
  job.run();
  EXPECT_EQ(job.runtime.unfinished(), 1U);
  EXPECT_EQ(job.runtime.waiting(9),
            (std::vector<std::string>{"rank 1: messages have come that no operation receives"}));
}

TEST(matching, traffic_needs_no_recvs) {
  Job job(4, "{kind: traffic, pattern: all_to_all, size: 10 kB, queue_pairs: 3, start: [0 us, 1 us]}");
  job.complete();
  EXPECT_EQ(job.messages().size(), 4U * 3 * 3 * 2);
}

}  // namespace
}  // namespace weft::matching_test
