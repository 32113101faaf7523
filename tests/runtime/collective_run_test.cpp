// SPDX-License-Identifier: GPL-2.0-only
// Collectives slice by slice: credits limit the slices in flight, a step forwards and then frees its slot, connections
// are kept, communicators keep their order.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/execution/connection.hpp"
#include "tests/runtime/job.hpp"

namespace weft::collective_run_test {
namespace {

using test::control_packet;
using test::Job;
using test::ListWorkload;
using test::us;

/// From index 0 to 1 to 2 ..., `size` bytes on each channel, in slices of `tuning.chunk`.
class Pipe final : public CollectiveAlgorithm {
 public:
  bool supports(CollectiveKind kind) const override { return kind == CollectiveKind::broadcast; }
  std::uint32_t credits(const CollectiveCall& call) const override { return call.tuning.credits; }
  std::unique_ptr<StepStream> steps(const CollectiveCall& call, std::uint32_t index, std::uint32_t) const override {
    return std::make_unique<OneStep>(call, index);
  }

 private:
  class OneStep final : public StepStream {
   public:
    OneStep(const CollectiveCall& call, std::uint32_t index) {
      const bool last = index + 1 == call.communicator->size();
      step_.primitive = index == 0 ? Primitive::send : last ? Primitive::recv : Primitive::recv_copy_send;
      step_.send_peer = index + 1;
      step_.receive_peer = index - 1;
      step_.bytes = call.size;
      step_.slice = call.tuning.chunk;
    }
    bool next(Step& step) override {
      if (done_) return false;
      step = step_;
      return done_ = true;
    }

   private:
    Step step_;
    bool done_ = false;
  };
};
const Registration<CollectiveAlgorithm, Pipe> registration("test_pipe", "a chain with the credits of its call");

constexpr std::int64_t slice = 1000;
constexpr std::int64_t slices = 20;

CollectiveTuning tuning(std::uint32_t credits, std::uint32_t channels = 1) {
  CollectiveTuning result;
  result.credits = credits;
  result.channels = channels;
  result.chunk = Bytes(slice);
  return result;
}

/// A pipe of 20 slices over the first `ranks` ranks, the last of which is busy until `busy`.
Job pipe_job(const Communicator& communicator, std::uint32_t credits, Time busy,
             const NetworkParameters& network = {}) {
  const std::uint32_t ranks = communicator.size();
  auto list = std::make_unique<ListWorkload>(ranks);
  list->define(communicator, CollectiveKind::broadcast, Bytes(slices * slice), "test_pipe", tuning(credits));
  for (std::uint32_t rank = 0; rank + 1 < ranks; ++rank) list->call(rank, 0);
  list->call(ranks - 1, 0, {list->compute(ranks - 1, busy)});
  return Job(ranks, std::move(list), network);
}

/// The messages of a source in the order of their posting.
std::vector<MessageRecord> messages_of(Job& job, std::uint32_t source) {
  std::vector<MessageRecord> rows;
  for (const MessageRecord& row : job.messages())
    if (row.source == source) rows.push_back(row);
  std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  return rows;
}

TEST(credits, bound_what_waits_at_a_receiver_that_is_late) {
  const Communicator both(0, 2);
  const Time busy = us(1000);
  for (const std::uint32_t credits : {1U, 2U, 8U, 19U, 20U, 30U}) {
    Job job = pipe_job(both, credits, busy);
    job.run_until(busy);
    EXPECT_EQ(job.messages().size(), std::min<std::size_t>(credits, slices));
    job.complete();
    const auto rows = messages_of(job, 0);
    ASSERT_EQ(rows.size(), static_cast<std::size_t>(slices));
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (i < credits) {
        EXPECT_EQ(rows[i].issued, 0) << i;
      } else if (i < 2 * credits) {
        // At `busy` the receiver frees all its slots at once: the credits follow each other over the wire.
        const Time credit = busy + control_packet + static_cast<std::int64_t>(i - credits) * Time::from_ps(86 * 80);
        EXPECT_EQ(rows[i].issued, credit.ps()) << i;
      }
    }
  }
}

TEST(credits, come_back_for_every_slice) {
  // The receiver is ready: a slot is free again when the slice and then the credit have arrived. The first one finds an
  // idle network; its ACK precedes its credit.
  const Communicator both(0, 2);
  const Time ack = Time::from_ps(86 * 80);
  for (const std::uint32_t credits : {1U, 3U, 8U}) {
    Job job = pipe_job(both, credits, Time());
    job.complete();
    const auto rows = messages_of(job, 0);
    ASSERT_EQ(rows.size(), static_cast<std::size_t>(slices));
    EXPECT_EQ(rows[credits].issued, (Time::from_ps(rows[0].delivered) + ack + control_packet).ps());
    for (std::size_t i = credits; i < rows.size(); ++i)
      EXPECT_GE(rows[i].issued, (Time::from_ps(rows[i - credits].delivered) + control_packet).ps()) << i;
  }
}

TEST(credits, a_relay_frees_a_slot_when_it_forwards) {
  // The last rank is late. The relay forwards as many slices as that one has slots, and then fills its own.
  const Communicator three(0, 3);
  const Time busy = us(1000);
  for (const std::uint32_t credits : {1U, 3U, 9U}) {
    Job job = pipe_job(three, credits, busy);
    job.run_until(busy);
    EXPECT_EQ(messages_of(job, 1).size(), credits);
    EXPECT_EQ(messages_of(job, 0).size(), 2 * credits);
    job.complete();
    EXPECT_EQ(messages_of(job, 1).size(), static_cast<std::size_t>(slices));
    EXPECT_EQ(messages_of(job, 0).size(), static_cast<std::size_t>(slices));
  }
}

// A block passes on what comes before it has handled the bytes itself. At `rate` a slice takes D: rank 0 sends the k-th
// at k D; each further rank passes it on as soon as it has come, since that is also D after the one before. All slices
// take slices x D and once the network's time for each hop, and not hops x D more.
TEST(pace, delays_the_source_and_not_what_passes_through) {
  const Communicator four(0, 4);
  const auto job_of = [&](std::int64_t channels_rate) {
    auto list = std::make_unique<ListWorkload>(4);
    CollectiveTuning tuned = tuning(30);
    tuned.pace_rate = Bandwidth::from_bps(channels_rate);
    list->define(four, CollectiveKind::broadcast, Bytes(slices * slice), "test_pipe", tuned);
    for (std::uint32_t rank = 0; rank < 4; ++rank) list->call(rank, 0);
    return Job(4, std::move(list));
  };
  const std::int64_t ps_of_slice = 80'000'000;  // 1000 B at 100 Mb/s: longer than a slice takes in the network
  Job job = job_of(100'000'000);
  job.complete();
  const auto first = messages_of(job, 0);
  ASSERT_EQ(first.size(), static_cast<std::size_t>(slices));
  for (std::int64_t k = 0; k < slices; ++k) EXPECT_EQ(first[k].issued, (k + 1) * ps_of_slice);
  for (std::uint32_t rank = 1; rank < 3; ++rank) {
    const auto before = messages_of(job, rank - 1);
    const auto passed = messages_of(job, rank);
    ASSERT_EQ(passed.size(), static_cast<std::size_t>(slices));
    for (std::int64_t k = 0; k < slices; ++k) EXPECT_EQ(passed[k].issued, before[k].delivered) << rank << ' ' << k;
  }
}

// A limit of what follows one another alone does not delay the first slice: the k-th is sent at (k - 1) D.
TEST(pace, may_leave_the_first_slice_alone) {
  const Communicator two(0, 2);
  auto list = std::make_unique<ListWorkload>(2);
  CollectiveTuning tuned = tuning(30);
  tuned.pace_rate = Bandwidth::from_bps(100'000'000);
  tuned.paces_own_data = false;
  list->define(two, CollectiveKind::broadcast, Bytes(slices * slice), "test_pipe", tuned);
  for (std::uint32_t rank = 0; rank < 2; ++rank) list->call(rank, 0);
  Job job(2, std::move(list));
  job.complete();
  const auto sent = messages_of(job, 0);
  ASSERT_EQ(sent.size(), static_cast<std::size_t>(slices));
  for (std::int64_t k = 0; k < slices; ++k) EXPECT_EQ(sent[k].issued, k * 80'000'000);
}

TEST(credits, do_not_exist_without_acks) {
  NetworkParameters network;
  network.acks = false;
  const Communicator both(0, 2);
  Job job = pipe_job(both, 1, us(1000), network);
  job.run_until(us(1000));
  EXPECT_EQ(job.messages().size(), static_cast<std::size_t>(slices));
  job.complete();
  EXPECT_EQ(job.machine.fabric->packet_hops(), 2U * slices);
}

TEST(credits, belong_to_the_connection_and_outlive_a_collective) {
  // The first call leaves its 2 slices in the receiver's 3 slots; the second may send one more and no other.
  const Communicator both(0, 2);
  auto list = std::make_unique<ListWorkload>(2);
  list->define(both, CollectiveKind::broadcast, Bytes(2 * slice), "test_pipe", tuning(3));
  list->define(both, CollectiveKind::broadcast, Bytes(5 * slice), "test_pipe", tuning(3));
  const auto busy = list->compute(1, us(1000));
  list->call(0, 0);
  list->call(0, 1);
  list->call(1, 0, {busy});
  list->call(1, 1);
  Job job(2, std::move(list));
  job.run_until(us(1000));
  EXPECT_EQ(job.end(0, 0), Time());
  EXPECT_EQ(job.messages().size(), 3U);
  EXPECT_EQ(job.runtime.unfinished(), 2U);
  job.complete();
  EXPECT_EQ(job.end(1, 1), us(1000));
  EXPECT_EQ(job.messages().size(), 7U);
}

TEST(collective_run, cuts_a_step_into_slices_and_counts_them) {
  const Communicator both(0, 2);
  auto list = std::make_unique<ListWorkload>(2);
  list->define(both, CollectiveKind::broadcast, Bytes(2 * slice + 300), "test_pipe", tuning(8, 3));
  list->call(0, 0);
  list->call(1, 0);
  Job job(2, std::move(list));
  job.complete();
  std::vector<std::int64_t> sizes;
  for (const MessageRecord& row : job.messages()) {
    sizes.push_back(row.bytes);
    EXPECT_EQ(row.collective, 0U);
  }
  std::sort(sizes.begin(), sizes.end());
  EXPECT_EQ(sizes, (std::vector<std::int64_t>{300, 300, 300, slice, slice, slice, slice, slice, slice}));
  std::int64_t last = 0;
  for (const MessageRecord& row : job.messages()) last = std::max(last, row.delivered);
  CollectiveLog& log = job.runtime.records().collectives;
  log.sort();
  EXPECT_EQ(log.size(), 2U);
  CollectiveLog::PartCursor parts = log.parts();
  for (CollectivePart part; parts.next(part);) {
    EXPECT_EQ(part.messages, part.rank == 0 ? 9U : 0U);
    EXPECT_EQ(part.bytes, part.rank == 0 ? 3 * (2 * slice + 300) : 0);
    EXPECT_EQ(part.end, part.rank == 0 ? 0 : last);
  }
}

TEST(collective_run, a_connection_has_one_queue_pair_for_ever) {
  Job job(2, "{kind: collective, collective: all_reduce, size: 100 kB, channels: 3, iterations: 4}");
  job.complete();
  // The next one that is opened.
  EXPECT_EQ(job.machine.fabric->open_queue_pair(NodeId(0), NodeId(1)), 3U);
}

TEST(collective_run, channels_and_communicators_have_connections_of_their_own) {
  // More channels than 2^12, on two communicators of the same ranks at the same time.
  constexpr std::uint32_t channels = 4100;
  const Communicator one(0, 2);
  const Communicator two(1, 2);
  auto list = std::make_unique<ListWorkload>(2);
  list->define(one, CollectiveKind::broadcast, Bytes(100), "test_pipe", tuning(1, channels));
  list->define(two, CollectiveKind::broadcast, Bytes(200), "test_pipe", tuning(1, channels));
  list->call(0, 0);
  list->call(0, 1, {list->compute(0, us(2000))});
  list->call(1, 0, {list->compute(1, us(10'000))});
  list->call(1, 1);
  Job job(2, std::move(list));
  // The slices of the one wait at the receiver while those of the other arrive and are consumed.
  job.run_until(us(10'000));
  EXPECT_EQ(job.messages().size(), 2U * channels);
  EXPECT_LT(job.end(1, 2), us(10'000));
  job.complete();
  EXPECT_EQ(job.machine.fabric->open_queue_pair(NodeId(0), NodeId(1)), 2 * channels);
}

TEST(communicators, run_their_collectives_in_program_order) {
  // Rank 1 holds up the first call. On one communicator the second waits for it; on two it does not.
  const Communicator first(0, 2);
  const Communicator other(1, 2);
  for (const bool same : {true, false}) {
    auto list = std::make_unique<ListWorkload>(2);
    list->define(first, CollectiveKind::all_reduce, Bytes(1000));
    list->define(same ? first : other, CollectiveKind::all_reduce, Bytes(1000));
    list->call(0, 0);
    list->call(0, 1);
    const auto busy = list->compute(1, us(100));
    list->call(1, 0, {busy});
    list->call(1, 1);
    Job job(2, std::move(list));
    job.complete();
    EXPECT_GT(job.end(0, 0), us(100));
    for (const std::uint32_t rank : {0U, 1U}) {
      const std::uint64_t second = rank == 0 ? 1 : 2;
      const std::uint64_t before = second - 1;
      if (same) {
        EXPECT_EQ(job.start(rank, second), job.end(rank, before));
      } else {
        EXPECT_EQ(job.start(rank, second), Time());
        EXPECT_LT(job.end(rank, second), us(100));
      }
    }
  }
}

TEST(receive_connection, gives_slices_in_the_order_of_arrival) {
  ReceiveConnection connection;
  EXPECT_TRUE(connection.empty());
  std::uint32_t next = 0;
  std::int64_t popped = 0;
  for (int round = 0; round < 50; ++round) {
    for (int i = 0; i < round % 7; ++i, ++next) EXPECT_TRUE(connection.arrive(next, 1, {Bytes(next), 1, 2}));
    while (popped < next && (round % 3 == 0 || popped + 2 < next)) {
      ASSERT_FALSE(connection.empty());
      ASSERT_EQ(connection.pop().bytes, Bytes(popped++));
    }
    ASSERT_EQ(connection.empty(), popped == next);
  }
}

TEST(receive_connection, slices_that_have_overtaken_others_wait_for_them) {
  ReceiveConnection connection;
  EXPECT_FALSE(connection.arrive(1, 1, {Bytes(101), 1, 5}));
  EXPECT_FALSE(connection.arrive(3, 1, {Bytes(103), 1, 7}));
  EXPECT_TRUE(connection.empty());
  EXPECT_TRUE(connection.arrive(0, 1, {Bytes(100), 1, 4}));
  EXPECT_EQ(connection.pop().bytes, Bytes(100));
  EXPECT_EQ(connection.pop().queue_pair, 5U);
  EXPECT_TRUE(connection.empty());
  EXPECT_TRUE(connection.arrive(2, 1, {Bytes(102), 1, 6}));
  EXPECT_EQ(connection.pop().bytes, Bytes(102));
  EXPECT_EQ(connection.pop().bytes, Bytes(103));
}

TEST(receive_connection, parts_make_up_a_slice) {
  ReceiveConnection connection;
  EXPECT_FALSE(connection.arrive(0, 3, {Bytes(128), 1, 4}));
  EXPECT_FALSE(connection.arrive(1, 2, {Bytes(256), 1, 4}));
  EXPECT_FALSE(connection.arrive(1, 2, {Bytes(6), 1, 5}));
  EXPECT_FALSE(connection.arrive(0, 3, {Bytes(128), 1, 5}));
  EXPECT_TRUE(connection.empty());
  EXPECT_TRUE(connection.arrive(0, 3, {Bytes(50), 1, 6}));
  EXPECT_EQ(connection.pop().bytes, Bytes(306));
  EXPECT_EQ(connection.pop().bytes, Bytes(262));
  EXPECT_TRUE(connection.empty());
}

TEST(connection_key, tells_all_its_parts_apart) {
  EXPECT_NE((ConnectionKey{0, 4096, 1}), (ConnectionKey{1, 0, 1}));
  EXPECT_NE((ConnectionKey{0, 0, 1}), (ConnectionKey{0, 1, 0}));
  EXPECT_EQ((ConnectionKey{1, 2, 3}), (ConnectionKey{1, 2, 3}));
}

}  // namespace
}  // namespace weft::collective_run_test
