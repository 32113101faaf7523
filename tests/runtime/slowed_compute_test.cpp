// SPDX-License-Identifier: GPL-2.0-only
// Compute operations that are slower while their rank communicates: when they end, to the picosecond.
#include "runtime/execution/slowed_compute.hpp"

#include <gtest/gtest.h>

#include "tests/runtime/job.hpp"

namespace weft::slowed_compute_test {
namespace {

using test::Job;
using test::ListWorkload;
using test::us;

constexpr Time ps(std::int64_t time) { return Time::from_ps(time); }

/// Checks at the returned times, as a timer would; returns the end.
Time end_of(SlowedCompute& compute, std::uint64_t operation, Time now) {
  for (Time left = compute.left(now, operation); left > Time(); left = compute.left(now, operation)) now += left;
  return now;
}

TEST(slowed_compute, without_communication_takes_its_duration) {
  SlowedCompute compute(1.5);
  compute.start(ps(7), 1, ps(100));
  EXPECT_EQ(compute.left(ps(7), 1), ps(100));
  EXPECT_EQ(compute.left(ps(50), 1), ps(57));
  EXPECT_EQ(end_of(compute, 1, ps(50)), ps(107));
}

TEST(slowed_compute, beside_communication_takes_factor_times_as_long) {
  for (const double factor : {1.25, 1.5, 2.0, 10.0}) {
    SlowedCompute compute(factor);
    compute.begin_communication(ps(0));
    compute.start(ps(0), 1, ps(1000));
    EXPECT_EQ(end_of(compute, 1, ps(0)), ps(static_cast<std::int64_t>(1000 * factor))) << factor;
  }
}

// One operation is slowed by a factor of its own, the other by the rank's: 1000 ps of work each, beside communication
// for 600 ps: of the first 600 / 1.2 = 500 are done, of the second 300.
TEST(slowed_compute, has_a_factor_for_each_operation) {
  SlowedCompute compute(2);
  compute.begin_communication(ps(0));
  compute.start(ps(0), 1, ps(1000), 1.2);
  compute.start(ps(0), 2, ps(1000));
  compute.start(ps(0), 3, ps(1000), 1);
  compute.end_communication(ps(600));
  EXPECT_EQ(end_of(compute, 1, ps(600)), ps(1100));
  EXPECT_EQ(end_of(compute, 2, ps(600)), ps(1300));
  EXPECT_EQ(end_of(compute, 3, ps(600)), ps(1000));
}

TEST(slowed_compute, ends_at_the_next_whole_picosecond) {
  SlowedCompute compute(1.25);
  compute.begin_communication(ps(0));
  compute.start(ps(0), 1, ps(3));  // 3.75 ps
  EXPECT_EQ(end_of(compute, 1, ps(0)), ps(4));
}

// 1000 ps of work at a factor of 2: 100 at full speed, 300 slowed (150 done), 100 at full speed, then the last 650
// slowed: 100 + 300 + 100 + 1300.
TEST(slowed_compute, goes_with_the_communication) {
  SlowedCompute compute(2);
  compute.start(ps(0), 1, ps(1000));
  compute.begin_communication(ps(100));
  compute.begin_communication(ps(150));  // a second one changes nothing
  compute.end_communication(ps(200));
  compute.end_communication(ps(400));
  EXPECT_EQ(compute.left(ps(450), 1), ps(700));
  compute.begin_communication(ps(500));
  EXPECT_EQ(end_of(compute, 1, ps(500)), ps(1800));
}

TEST(slowed_compute, several_at_once) {
  SlowedCompute compute(2);
  compute.start(ps(0), 1, ps(100));
  compute.start(ps(50), 2, ps(100));
  compute.begin_communication(ps(80));
  EXPECT_EQ(end_of(compute, 1, ps(80)), ps(120));
  EXPECT_EQ(end_of(compute, 2, ps(120)), ps(220));
}

TEST(slowed_compute, a_factor_of_one_is_off) {
  EXPECT_FALSE(SlowedCompute(1).active());
  EXPECT_TRUE(SlowedCompute(1.01).active());
}

/// Wraps each rank's program: compute is slower by `factor` beside communication, and lasts longer from `later` on.
class Slowed final : public Workload {
 public:
  Slowed(std::unique_ptr<ListWorkload> list, double factor, Time later = Time::max())
      : list_(std::move(list)), factor_(factor), later_(later) {}
  std::uint32_t ranks() const override { return list_->ranks(); }
  std::unique_ptr<RankProgram> program(Rank rank) const override {
    return std::make_unique<Program>(list_->program(rank), factor_, later_);
  }
  std::uint64_t call_count() const override { return list_->call_count(); }
  CollectiveCall call(std::uint32_t id) const override { return list_->call(id); }
  WorkloadEstimate estimate() const override { return {}; }
  std::vector<std::pair<std::string, std::string>> description() const override { return {}; }

 private:
  class Program final : public RankProgram {
   public:
    Program(std::unique_ptr<RankProgram> inner, double factor, Time later)
        : inner_(std::move(inner)), factor_(factor), later_(later) {}
    bool next(Operation& operation) override { return inner_->next(operation); }
    double compute_slowdown() const override { return factor_; }
    Time compute_time(const Operation& operation, Time now) const override {
      return now >= later_ ? operation.duration * 3 : operation.duration;
    }

   private:
    std::unique_ptr<RankProgram> inner_;
    double factor_;
    Time later_;
  };
  std::unique_ptr<ListWorkload> list_;
  double factor_;
  Time later_;
};

// A send of 1 MB takes `sending`; of that time the compute operation beside it does 1 / 1.25.
TEST(slowed_compute, in_a_run) {
  for (const double factor : {1.0, 1.25, 2.0}) {
    auto list = std::make_unique<ListWorkload>(2);
    list->compute(0, us(500));
    list->send(0, 1, 1'000'000);
    list->recv(1, 0, 1'000'000);
    list->compute(1, us(500));  // rank 1 has an open recv, which slows nothing
    Job job(2, std::make_unique<Slowed>(std::move(list), factor));
    job.complete();
    const std::int64_t sending = (job.end(0, 1) - job.start(0, 1)).ps();
    ASSERT_GT(sending, 0);
    ASSERT_LT(sending, us(400).ps());
    // 500 us - sending / factor of work remain when the send is over.
    const double left = 500e6 - static_cast<double>(sending) / factor;
    EXPECT_EQ(job.end(0, 0), ps(sending + static_cast<std::int64_t>(std::ceil(left)))) << factor;
    EXPECT_EQ(job.end(1, 1), us(500)) << factor;
  }
}

TEST(slowed_compute, a_collective_that_begins_within) {
  const Communicator both(0, 2);
  auto list = std::make_unique<ListWorkload>(2);
  const std::uint32_t call = list->define(both, CollectiveKind::all_reduce, Bytes(100'000));
  for (const std::uint32_t rank : {0, 1}) {
    const std::uint64_t before = list->compute(rank, us(20));
    list->compute(rank, us(200));
    list->call(rank, call, {before});
  }
  Job job(2, std::make_unique<Slowed>(std::move(list), 2));
  job.complete();
  for (const std::uint32_t rank : {0U, 1U}) {
    const Time reducing = job.end(rank, 2) - job.start(rank, 2);
    EXPECT_EQ(job.start(rank, 2), us(20));
    // Twice as slow for `reducing`: half of it is lost.
    EXPECT_EQ(job.end(rank, 1), us(200) + ps((reducing.ps() + 1) / 2));
  }
}

TEST(compute_time, is_asked_for_when_the_operation_starts) {
  auto list = std::make_unique<ListWorkload>(1);
  const std::uint64_t first = list->compute(0, us(10));
  list->compute(0, us(10), {first});
  Job job(1, std::make_unique<Slowed>(std::move(list), 1, us(10)));
  job.complete();
  EXPECT_EQ(job.end(0, 0), us(10));
  EXPECT_EQ(job.end(0, 1), us(40));
}

}  // namespace
}  // namespace weft::slowed_compute_test
