// SPDX-License-Identifier: GPL-2.0-only
// When operations start and end: dependencies, streams, times, empty operations, and the books of a rank.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/runtime/job.hpp"

namespace weft::rank_executor_test {
namespace {

using test::control_packet;
using test::Job;
using test::one_packet;
using test::us;

/// `operations` of a program of so many ranks.
std::string program(int ranks, const std::string& operations) {
  return "kind: program\nranks: " + std::to_string(ranks) + "\noperations:\n" + operations;
}

TEST(dependencies, a_diamond) {
  Job job(1, program(1, R"(
  - {rank: 0, id: a, compute: 3 us, stream: none}
  - {rank: 0, id: b, compute: 5 us, stream: none, after: a}
  - {rank: 0, id: c, compute: 1 us, stream: none, after: a}
  - {rank: 0, id: d, compute: 2 us, stream: none, after: [b, c]}
  - {rank: 0, id: e, compute: 9 us, stream: none, after: [a, c]}
)"));
  job.complete();
  EXPECT_EQ(job.start(0, 0), us(0));
  EXPECT_EQ(job.start(0, 1), us(3));
  EXPECT_EQ(job.start(0, 2), us(3));
  EXPECT_EQ(job.start(0, 3), us(8));
  EXPECT_EQ(job.end(0, 3), us(10));
  EXPECT_EQ(job.start(0, 4), us(4));
  EXPECT_EQ(job.rank(0).finished, us(13).ps());
}

TEST(dependencies, of_one_that_is_named_twice_and_of_one_that_is_done) {
  Job job(1, program(1, R"(
  - {rank: 0, id: a, compute: 3 us, stream: none}
  - {rank: 0, id: late, compute: 1 us, stream: none, not_before: 10 us}
  - {rank: 0, id: b, compute: 1 us, stream: none, after: [a, a]}
  - {rank: 0, id: c, compute: 1 us, stream: none, after: [a, late]}
)"));
  job.complete();
  EXPECT_EQ(job.start(0, 2), us(3));
  EXPECT_EQ(job.start(0, 3), us(11));
}

TEST(streams, one_operation_at_a_time_in_program_order) {
  Job job(1, program(1, R"(
  - {rank: 0, compute: 3 us}
  - {rank: 0, compute: 1 us}
  - {rank: 0, compute: 4 us, stream: communication}
  - {rank: 0, compute: 1 us, stream: communication}
  - {rank: 0, compute: 2 us, stream: none}
  - {rank: 0, compute: 7 us, stream: none}
)"));
  job.complete();
  EXPECT_EQ(job.start(0, 0), us(0));
  EXPECT_EQ(job.start(0, 1), us(3));
  EXPECT_EQ(job.start(0, 2), us(0));
  EXPECT_EQ(job.start(0, 3), us(4));
  EXPECT_EQ(job.start(0, 4), us(0));
  EXPECT_EQ(job.start(0, 5), us(0));
}

TEST(streams, who_waits_at_the_head_holds_up_all_behind) {
  Job job(1, program(1, R"(
  - {rank: 0, id: a, compute: 10 us, stream: none}
  - {rank: 0, compute: 1 us, after: a}
  - {rank: 0, compute: 1 us}
  - {rank: 0, compute: 1 us, stream: communication, not_before: 4 us}
  - {rank: 0, compute: 1 us, stream: communication}
)"));
  job.complete();
  EXPECT_EQ(job.start(0, 1), us(10));
  EXPECT_EQ(job.start(0, 2), us(11));
  EXPECT_EQ(job.start(0, 3), us(4));
  EXPECT_EQ(job.start(0, 4), us(5));
}

TEST(not_before, delays_its_operation_and_no_other) {
  Job job(1, program(1, R"(
  - {rank: 0, id: late, compute: 1 us, not_before: 100 us}
  - {rank: 0, compute: 1 us, stream: none}
  - {rank: 0, compute: 1 us, stream: communication, not_before: 50 us}
  - {rank: 0, compute: 1 us, stream: none, not_before: 50 us}
  - {rank: 0, compute: 1 us, stream: none, after: late, not_before: 20 us}
  - {rank: 0, compute: 1 us, stream: none, not_before: 0 us}
)"));
  job.complete();
  EXPECT_EQ(job.start(0, 0), us(100));
  EXPECT_EQ(job.start(0, 1), us(0));
  EXPECT_EQ(job.start(0, 2), us(50));
  EXPECT_EQ(job.start(0, 3), us(50));
  EXPECT_EQ(job.start(0, 4), us(101));
  EXPECT_EQ(job.start(0, 5), us(0));
}

TEST(not_before, of_a_recv_leaves_the_message_waiting) {
  Job job(2, program(2, R"(
  - {rank: 0, send: 1 kB, to: 1}
  - {rank: 1, recv: 1 kB, from: 0, not_before: 30 us}
)"));
  job.complete();
  EXPECT_EQ(job.start(1, 1), us(30));
  EXPECT_EQ(job.end(1, 1), us(30));
}

/// Computes 1 us every 10 us for ever, and counts the requests for operations.
class Clockwork final : public RankProgram {
 public:
  explicit Clockwork(std::uint64_t& asked) : asked_(asked) {}
  bool next(Operation& operation) override {
    operation = Operation{};
    operation.id = asked_;
    operation.duration = us(1);
    operation.not_before = us(10 * static_cast<std::int64_t>(asked_++));
    return true;
  }
  bool in_order_of_time() const override { return true; }

 private:
  std::uint64_t& asked_;
};
class ClockworkWorkload final : public Workload {
 public:
  explicit ClockworkWorkload(std::uint64_t& asked) : asked_(asked) {}
  std::uint32_t ranks() const override { return 1; }
  std::unique_ptr<RankProgram> program(Rank) const override { return std::make_unique<Clockwork>(asked_); }
  std::uint64_t call_count() const override { return 0; }
  CollectiveCall call(std::uint32_t) const override { return {}; }
  WorkloadEstimate estimate() const override { return {}; }
  std::vector<std::pair<std::string, std::string>> description() const override { return {}; }

 private:
  std::uint64_t& asked_;
};

// A thousand operations, at most `ahead` of them at a time; returns how many are requested at most before one
// completes.
class Endless final : public RankProgram {
 public:
  Endless(std::uint64_t& asked, std::size_t ahead) : asked_(asked), ahead_(ahead) {}
  bool next(Operation& operation) override {
    if (asked_ == 1000) return false;
    operation = Operation{};
    operation.id = asked_++;
    operation.stream = Stream::compute;
    operation.duration = us(1);
    return true;
  }
  std::size_t read_ahead() const override { return ahead_; }

 private:
  std::uint64_t& asked_;
  std::size_t ahead_;
};
class EndlessWorkload final : public Workload {
 public:
  EndlessWorkload(std::uint64_t& asked, std::size_t ahead) : asked_(asked), ahead_(ahead) {}
  std::uint32_t ranks() const override { return 1; }
  std::unique_ptr<RankProgram> program(Rank) const override { return std::make_unique<Endless>(asked_, ahead_); }
  std::uint64_t call_count() const override { return 0; }
  CollectiveCall call(std::uint32_t) const override { return {}; }
  WorkloadEstimate estimate() const override { return {}; }
  std::vector<std::pair<std::string, std::string>> description() const override { return {}; }

 private:
  std::uint64_t& asked_;
  std::size_t ahead_;
};

TEST(read_ahead, no_more_operations_are_asked_for_than_may_be_under_way) {
  for (const std::size_t ahead : {1U, 3U, 64U}) {
    std::uint64_t asked = 0;
    Job job(1, std::make_unique<EndlessWorkload>(asked, ahead));
    // After t us, t operations are done and `ahead` more are known.
    job.run_until(Time::from_ps(us(10).ps() + 1));
    EXPECT_EQ(asked, 10 + ahead);
    job.run_until(us(2000));
    EXPECT_EQ(asked, 1000U);
  }
}

TEST(not_before, a_program_in_order_of_time_is_read_no_further_than_the_clock) {
  std::uint64_t asked = 0;
  Job job(1, std::make_unique<ClockworkWorkload>(asked));
  EXPECT_EQ(asked, 0U);
  job.run_until(us(5));
  EXPECT_EQ(asked, 2U);  // that of 0 us and the next one
  job.run_until(us(1005));
  EXPECT_EQ(asked, 102U);
  EXPECT_EQ(job.runtime.operations_done(), 101U);
  EXPECT_EQ(job.runtime.unfinished(), 1U);
}

TEST(empty_operations, complete_at_the_moment_of_their_start) {
  Job job(2, program(2, R"(
  - {rank: all, id: a, compute: 0 us}
  - {id: b, collective: all_reduce, size: 0 B, after: a}
  - {rank: 0, id: c, send: 0 B, to: 1, after: b}
  - {rank: 1, id: c, recv: 0 B, from: 0, after: b}
  - {rank: all, id: d, compute: 0 us, after: c}
)"));
  job.complete();
  for (const std::uint32_t rank : {0U, 1U}) {
    EXPECT_EQ(job.end(rank, 0), Time());
    EXPECT_EQ(job.end(rank, 1), Time());
  }
  EXPECT_EQ(job.end(0, 2), one_packet(0) + control_packet);
  EXPECT_EQ(job.end(1, 3), one_packet(0));
  EXPECT_EQ(job.end(0, 4), job.end(0, 2));
  EXPECT_EQ(job.end(1, 4), job.end(1, 3));
  EXPECT_EQ(job.messages().size(), 1U);
}

TEST(empty_operations, a_long_chain_of_them_takes_neither_time_nor_stack) {
  constexpr std::uint64_t length = 20'000;
  const Communicator alone(0, 1);
  auto list = std::make_unique<test::ListWorkload>(1);
  list->define(alone, CollectiveKind::all_reduce, Bytes(0));
  for (std::uint64_t i = 0; i < length; ++i)
    list->call(0, 0, i > 0 ? std::vector<std::uint64_t>{i - 1} : std::vector<std::uint64_t>());
  Job job(1, std::move(list));
  job.complete();
  EXPECT_EQ(job.runtime.operations_done(), length);
  EXPECT_EQ(job.machine.fabric->now(), Time());
}

TEST(a_lone_rank, does_every_collective_at_once) {
  for (const std::string kind : {"all_reduce", "all_gather", "reduce_scatter", "broadcast"}) {
    Job job(3, "{kind: collective, collective: " + kind + ", ranks: 1, size: 5 MB, iterations: 3, channels: 2}");
    job.complete();
    EXPECT_EQ(job.runtime.operations_done(), 3U) << kind;
    EXPECT_EQ(job.runtime.records().collectives.size(), 3U);
    EXPECT_EQ(job.messages().size(), 0U);
    EXPECT_EQ(job.machine.fabric->now(), Time());
  }
}

TEST(a_lone_rank, of_a_communicator_among_others) {
  Job job(3, program(3,
                     "  - {collective: all_reduce, size: 1 MB, communicator: me}\n"
                     "  - {rank: 2, compute: 1 us}\n"
                     "communicators: {me: [1]}\n"));
  job.complete();
  EXPECT_EQ(job.end(1, 0), Time());
}

TEST(books, communication_behind_compute_is_hidden) {
  // Rank 0 computes for 3 us. Its first message is acknowledged at `done`, beyond that; the second begins at 20 us,
  // behind another compute that begins at 10 us.
  Job job(2, program(2, R"(
  - {rank: 0, compute: 3 us}
  - {rank: 0, id: s, send: 1 kB, to: 1}
  - {rank: 0, id: c, compute: 10 us, not_before: 10 us}
  - {rank: 0, send: 1 kB, to: 1, after: c}
  - {rank: 1, recv: 1 kB, from: 0}
  - {rank: 1, recv: 1 kB, from: 0}
)"));
  job.complete();
  const Time arrives = one_packet(1000);
  const Time done = arrives + control_packet;
  ASSERT_GT(done, us(3));
  ASSERT_LT(done, us(10));
  const RankRecord zero = job.rank(0);
  EXPECT_EQ(zero.compute, us(13).ps());
  EXPECT_EQ(zero.communication, 2 * done.ps());
  EXPECT_EQ(zero.exposed, (done - us(3) + done).ps());
  EXPECT_EQ(zero.finished, (us(20) + done).ps());
  EXPECT_EQ(zero.idle, (us(20) + done).ps() - zero.compute - zero.exposed);
  EXPECT_EQ(zero.messages_sent, 2U);
  EXPECT_EQ(zero.bytes_sent, 2000);
  EXPECT_EQ(zero.messages_received, 0U);
  // Rank 1 has recvs open from the beginning until the second message is there.
  const RankRecord one = job.rank(1);
  EXPECT_EQ(one.compute, 0);
  EXPECT_EQ(one.communication, (us(20) + arrives).ps());
  EXPECT_EQ(one.exposed, one.communication);
  EXPECT_EQ(one.finished, (us(20) + arrives).ps());
  EXPECT_EQ(one.idle, (us(20) + done).ps() - one.exposed);
  EXPECT_EQ(one.messages_received, 2U);
  EXPECT_EQ(one.bytes_received, 2000);
}

TEST(books, computes_at_the_same_time_count_once) {
  Job job(1, program(1, R"(
  - {rank: 0, compute: 5 us}
  - {rank: 0, compute: 3 us, stream: none}
  - {rank: 0, compute: 4 us, stream: none, not_before: 4 us}
  - {rank: 0, compute: 1 us, stream: none, not_before: 20 us}
)"));
  job.complete();
  EXPECT_EQ(job.rank(0).compute, us(8 + 1).ps());
  EXPECT_EQ(job.rank(0).exposed, 0);
  EXPECT_EQ(job.rank(0).idle, us(12).ps());
}

TEST(books, a_collective_overlaps_with_compute) {
  // The ring of two ranks sends 2 x 2 slices of a 4 kB all-reduce: far longer than 1 us, far shorter than 100 us.
  for (const std::int64_t compute : {1, 100}) {
    Job job(2, program(2, "  - {collective: all_reduce, size: 4 kB}\n  - {rank: all, compute: " +
                              std::to_string(compute) + " us}\n"));
    job.complete();
    for (const std::uint32_t rank : {0U, 1U}) {
      EXPECT_EQ(job.start(rank, 0), Time());
      EXPECT_EQ(job.start(rank, 1), Time());
      const std::int64_t collective = job.operation(rank, 0).end;
      const RankRecord record = job.rank(rank);
      EXPECT_EQ(record.communication, collective);
      EXPECT_EQ(record.exposed, std::max<std::int64_t>(0, collective - us(compute).ps()));
      EXPECT_EQ(record.idle, job.machine.fabric->now().ps() - us(compute).ps() - record.exposed);
      EXPECT_EQ(compute == 1, record.exposed > 0);
    }
  }
}

TEST(hosts_beyond_the_last_rank, are_idle) {
  Job job(5, program(2, "  - {rank: 0, send: 1 kB, to: 1}\n  - {rank: 1, recv: 1 kB, from: 0}\n"));
  job.complete();
  EXPECT_EQ(job.runtime.rank_records(us(1)).size(), 2U);
  EXPECT_EQ(job.runtime.messages_delivered(), 1U);
  EXPECT_EQ(job.runtime.bytes_delivered(), 1000);
}

}  // namespace
}  // namespace weft::rank_executor_test
