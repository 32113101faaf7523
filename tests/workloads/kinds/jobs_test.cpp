// SPDX-License-Identifier: GPL-2.0-only
// Several workloads as one: ranks, calls, peers and times of the whole.
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/workloads/workload_under_test.hpp"

namespace weft::test::jobs_test {
namespace {

const std::string two_jobs =
    "kind: jobs\n"
    "jobs:\n"
    "  - {name: a, workload: {kind: collective, collective: all_reduce, ranks: 3, size: 1 kB, iterations: 2}}\n"
    "  - name: b\n"
    "    start: 7 us\n"
    "    workload: {kind: program, ranks: 2, communicators: {both: [1, 0]}, operations: [\n"
    "      {rank: 0, send: 5 B, to: 1}, {rank: 1, recv: 5 B, from: 0},\n"
    "      {collective: all_gather, size: 4 B, communicator: both, not_before: 1 us}]}\n";

TEST(Jobs, RanksAndCallsFollowEachOther) {
  const auto workload = read_workload(two_jobs, context_of(8));
  EXPECT_EQ(workload->ranks(), 5U);
  EXPECT_EQ(workload->call_count(), 3U);
  const auto jobs = workload->jobs();
  ASSERT_EQ(jobs.size(), 2U);
  EXPECT_EQ(jobs[0].name, "a");
  EXPECT_EQ(jobs[0].steps, 2U);
  EXPECT_EQ(jobs[1].first_rank, 3U);
  EXPECT_EQ(jobs[1].ranks, 2U);
  EXPECT_EQ(jobs[1].first_call, 2U);
  EXPECT_EQ(jobs[1].calls, 1U);
  EXPECT_EQ(workload->start(Rank(2)), Time());
  EXPECT_EQ(workload->start(Rank(3)), Time::from_us(7));
  EXPECT_TRUE(workload->from_user());
}

TEST(Jobs, OperationsNameRanksCallsAndTimesOfTheWhole) {
  const auto workload = read_workload(two_jobs, context_of(8));
  const auto sender = operations_of(*workload, 3);
  ASSERT_EQ(sender.size(), 2U);
  EXPECT_EQ(sender[0].peer, Rank(4));
  EXPECT_EQ(sender[0].not_before, Time::from_us(7));
  EXPECT_EQ(operations_of(*workload, 4)[0].peer, Rank(3));
  const Operation& gather = sender[1];
  EXPECT_EQ(gather.not_before, Time::from_us(8));
  EXPECT_EQ(gather.call->id, 2U);
  EXPECT_EQ(gather.call->communicator->rank(0), Rank(4));  // [1, 0] of the job
  EXPECT_EQ(gather.call->communicator->rank(1), Rank(3));
  EXPECT_EQ(gather.call->communicator->index_of(Rank(3)), 1U);
  const CollectiveCall first = workload->call(1);
  EXPECT_EQ(first.id, 1U);
  EXPECT_EQ(first.communicator->rank(2), Rank(2));
  EXPECT_NE(first.communicator->id(), gather.call->communicator->id());
  EXPECT_EQ(operations_of(*workload, 0)[1].call->id, 1U);
}

TEST(Jobs, PlacementBehindEachOtherOrAsTheySay) {
  const auto hosts = [](const std::string& text) {
    const auto workload = read_workload(text, context_of(8));
    std::vector<std::uint32_t> result;
    for (std::uint32_t rank = 0; rank < workload->ranks(); ++rank)
      result.push_back(workload->placement()->host(rank).value());
    return result;
  };
  using Hosts = std::vector<std::uint32_t>;
  const std::string job = "workload: {kind: traffic, pattern: incast, ranks: 2, size: 1 B}";
  EXPECT_EQ(hosts("{kind: jobs, jobs: [{" + job + "}, {" + job + "}]}"), (Hosts{0, 1, 2, 3}));
  EXPECT_EQ(hosts("{kind: jobs, jobs: [{placement: {first: 3}, " + job + "}, {" + job + "}]}"), (Hosts{3, 4, 5, 6}));
  EXPECT_EQ(hosts("{kind: jobs, placement: {hosts: [7, 1, 0, 2]}, jobs: [{" + job + "}, {" + job + "}]}"),
            (Hosts{7, 1, 0, 2}));
  EXPECT_EQ(hosts("{kind: jobs, jobs: [{" + job + "}, {share: true, placement: {first: 1}, " + job + "}]}"),
            (Hosts{0, 1, 1, 2}));
  // Alone, a job stays where it is among the others.
  EXPECT_EQ(hosts("{kind: jobs, only: job1, jobs: [{" + job + "}, {" + job + "}]}"), (Hosts{2, 3}));
}

// The random draws of a job depend on its place in the list, and not on the others. Two jobs that write checkpoints
// share the storage hosts, and nothing else; the third continues behind the others.
TEST(Jobs, StorageHostsServeAllJobs) {
  WorkloadContext context = context_of(6);  // of 8 hosts
  context.storage = {3, 7};
  const std::string text =
      "{kind: jobs, jobs: [{name: a, ranks: 2, workload: {kind: checkpoint, size: 1 B}}, {name: b, workload: {kind: "
      "checkpoint, ranks: 2, targets: 1, size: 1 B}}, {name: c, workload: {kind: collective, collective: all_reduce, "
      "ranks: 2, size: 1 kB}}]";
  const auto hosts = [&](const std::string& all) {
    const auto workload = read_workload(text + all + "}", context);
    std::vector<std::uint32_t> result;
    for (std::uint32_t rank = 0; rank < workload->ranks(); ++rank)
      result.push_back(workload->placement()->host(rank).value());
    return result;
  };
  EXPECT_EQ(hosts(""), (std::vector<std::uint32_t>{0, 1, 3, 7, 2, 4, 3, 5, 6}));
  EXPECT_EQ(hosts(", placement: {hosts: [6, 5, 4, 2, 1, 0]}"), (std::vector<std::uint32_t>{6, 5, 3, 7, 4, 2, 3, 1, 0}));
}

TEST(Jobs, SeedsOfTheirOwn) {
  const std::string job = "workload: {kind: traffic, pattern: permutation, ranks: 64, size: 1 B}";
  const auto peers = [](const Workload& workload, std::uint32_t first) {
    std::vector<std::uint32_t> result;
    for (std::uint32_t rank = first; rank < first + 64; ++rank)
      result.push_back(operations_of(workload, rank).at(0).peer.value() - first);
    return result;
  };
  const auto both = read_workload("{kind: jobs, jobs: [{" + job + "}, {" + job + "}]}", context_of(128));
  const auto second = read_workload("{kind: jobs, only: job1, jobs: [{" + job + "}, {" + job + "}]}", context_of(128));
  const auto alone = read_workload("{kind: traffic, pattern: permutation, ranks: 64, size: 1 B}", context_of(128));
  EXPECT_EQ(peers(*both, 0), peers(*alone, 0));
  EXPECT_NE(peers(*both, 64), peers(*both, 0));
  EXPECT_EQ(peers(*both, 64), peers(*second, 0));
}

// Times of computing are those that the job would have alone, from its start on.
TEST(Jobs, ComputeTimesGoByTheClockOfTheJob) {
  const std::string noisy =
      "{kind: program, ranks: 2, operations: [{rank: all, compute: 1 ms}], compute_slowdown_while_communicating: 1.5, "
      "compute_noise: "
      "{jitter: 0.1, stragglers: {probability: 0.5, factor: 3, interval: 1 ms}}}";
  const auto alone = read_workload(noisy, context_of(8));
  const auto jobs = read_workload("{kind: jobs, jobs: [{start: 5.5 ms, workload: " + noisy + "}]}", context_of(8));
  std::set<Time> seen;
  for (const std::uint32_t rank : {0U, 1U}) {
    const auto one = alone->program(Rank(rank));
    const auto late = jobs->program(Rank(rank));
    Operation first, second;
    ASSERT_TRUE(one->next(first));
    ASSERT_TRUE(late->next(second));
    EXPECT_EQ(late->compute_slowdown(), 1.5);
    for (std::int64_t us = 0; us < 20'000; us += 300) {
      const Time now = Time::from_us(us);
      EXPECT_EQ(late->compute_time(second, now + Time::from_us(5500)), one->compute_time(first, now));
      seen.insert(one->compute_time(first, now));
    }
  }
  EXPECT_EQ(seen.size(), 4U);  // two ranks, slow and not
}

TEST(Jobs, WorkloadsOfFiles) {
  const TemporaryFile experiment("x.yaml",
                                 "topology: {kind: star}\nworkload: {kind: traffic, pattern: incast, ranks: 3, "
                                 "size: 1 B}\n");
  const TemporaryFile alone("y.yaml", "{kind: traffic, pattern: incast, ranks: 2, size: 1 B}\n");
  const auto workload = read_workload(
      "{kind: jobs, jobs: [{workload: " + experiment.path() + "}, {workload: " + alone.path() + "}]}", context_of(8));
  EXPECT_EQ(workload->ranks(), 5U);
  const auto changed = read_workload("{kind: jobs, jobs: [{set: [ranks=4], workload: " + experiment.path() +
                                         "}, {set: ['start={process: periodic, interval: 1 us, count: 2}', ranks=3], " +
                                         "workload: " + alone.path() + "}]}",
                                     context_of(8));
  EXPECT_EQ(changed->ranks(), 7U);
}

TEST(Jobs, Complaints) {
  const std::string job = "workload: {kind: traffic, pattern: incast, ranks: 2, size: 1 B}";
  const auto expect = [&](const std::string& text, const std::vector<std::string>& parts) {
    expect_complaint("{kind: jobs, " + text + "}", context_of(4), "x.yaml:1", parts);
  };
  expect("jobs: []", {"found 0 jobs"});
  expect("jobs: [{" + job + "}, {placement: {first: 1}, " + job + "}]",
         {"'job0' and 'job1' both have a rank on host 1"});
  expect("jobs: [{name: x, " + job + "}, {name: x, " + job + "}]", {"two jobs have the name 'x'"});
  expect("jobs: [{" + job + "}, {" + job + "}, {" + job + "}]", {"rank 1 would be on host 5"});
  expect("jobs: [{workload: {kind: jobs}}]", {"unknown value 'jobs'"});
  expect("jobs: [{workload: {kind: traffic, placement: packed}}]", {"stands beside its workload"});
  expect("jobs: [{workload: nowhere.yaml}]", {"there is no file"});
  expect("jobs: [{ranks: 3, " + job + "}]", {"found 3, but the workload has 2 ranks"});
  expect("jobs: [{background: true, " + job + "}]", {"all jobs are in the background"});
  expect("only: b, jobs: [{name: a, " + job + "}]", {"unknown value 'b'"});
  expect("placement: packed, jobs: [{placement: packed, " + job + "}]", {"a placement for all jobs already"});
  expect("jobs: [{strat: 1 us, " + job + "}]", {"did you mean 'start'?"});
  expect("jobs: [{set: [ranks], " + job + "}]", {"found 'ranks'; expected KEY.PATH=VALUE"});
  expect_complaint("{kind: jobs, jobs: [{set: [rank=2], " + job + "}]}", context_of(4), "--set rank=2",
                   {"unknown key"});
}

}  // namespace
}  // namespace weft::test::jobs_test
