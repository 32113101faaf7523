// SPDX-License-Identifier: GPL-2.0-only
// Workload kind `collective`: calls, programs, volumes, complaints.
#include <algorithm>
#include <tuple>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/workloads/workload_under_test.hpp"

namespace weft::test::collective_test {
namespace {

TEST(Collective, OneCallPerIterationInSeries) {
  const auto workload =
      read_workload("{kind: collective, collective: all_reduce, ranks: 4, size: 1 MiB, iterations: 3}", context_of(16));
  EXPECT_EQ(workload->ranks(), 4U);
  ASSERT_EQ(workload->call_count(), 3U);
  for (std::uint32_t i = 0; i < 3; ++i) {
    const CollectiveCall call = workload->call(i);
    EXPECT_EQ(call.id, i);
    EXPECT_EQ(call.kind, CollectiveKind::all_reduce);
    EXPECT_EQ(call.size, Bytes::mib(1));
    EXPECT_EQ(call.algorithm, "ring");
    EXPECT_EQ(call.communicator->size(), 4U);
    EXPECT_EQ(call.where.text(), "x.yaml:1");
  }
  const auto operations = operations_of(*workload, 3);
  ASSERT_EQ(operations.size(), 3U);
  for (std::uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(operations[i].stream, Stream::communication);
    EXPECT_EQ(operations[i].call->id, i);
  }
}

TEST(Collective, GapStandsBetweenIterations) {
  const auto workload = read_workload(
      "{kind: collective, collective: broadcast, ranks: 2, size: 1 KiB, iterations: 3, gap: 5 us, root: 1}",
      context_of(2));
  const auto operations = operations_of(*workload, 0);
  ASSERT_EQ(operations.size(), 5U);
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(operations[i].kind, i % 2 == 0 ? Operation::Kind::collective : Operation::Kind::compute);
    if (i % 2 == 1) {
      EXPECT_EQ(operations[i].duration, Time::from_us(5));
      EXPECT_EQ(operations[i].stream, Stream::compute);
    }
    if (i > 0) {
      EXPECT_EQ(operations[i].after, std::vector<std::uint64_t>{operations[i - 1].id});
    }
  }
  EXPECT_EQ(workload->call(2).root, 1U);
  EXPECT_EQ(workload->estimate().compute, Time::from_us(2 * 5));
}

TEST(Collective, TuningReachesTheCall) {
  const auto workload = read_workload(
      "{kind: collective, collective: all_gather, size: 1 MiB, channels: 2, chunk_size: 64 KiB, slices_per_chunk: 4, "
      "credits: 6}",
      context_of(8));
  const CollectiveCall call = workload->call(0);
  EXPECT_EQ(workload->ranks(), 8U);  // all hosts
  EXPECT_EQ(call.tuning.channels, 2U);
  EXPECT_EQ(call.tuning.chunk, Bytes::kib(64));
  EXPECT_EQ(call.tuning.slices, 4U);
  EXPECT_EQ(call.tuning.credits, 6U);
}

/// Bytes and messages that the steps of all ranks send.
std::pair<std::int64_t, std::uint64_t> sent(const Workload& workload) {
  std::int64_t bytes = 0;
  std::uint64_t messages = 0;
  for (const CollectiveCall& call : calls_of(workload))
    for (std::uint32_t index = 0; index < workload.ranks(); ++index)
      for (std::uint32_t channel = 0; channel < call.tuning.channels; ++channel) {
        const auto steps = CollectiveRegistry::instance().find(call.algorithm)->make()->steps(call, index, channel);
        for (Step step; steps->next(step);) {
          if (!sends(step.primitive)) continue;
          bytes += step.bytes.count();
          for (std::int64_t left = step.bytes.count(); left > 0; left -= step.slice.count()) ++messages;
        }
      }
  return {bytes, messages};
}

TEST(Collective, EstimateIsWhatTheStepsSend) {
  const std::int64_t n = 8, size = std::int64_t{3} << 20, iterations = 2;
  for (const std::string kind : {"all_reduce", "all_gather", "reduce_scatter", "broadcast"}) {
    const auto workload =
        read_workload("{kind: collective, collective: " + kind + ", ranks: 8, size: 3 MiB, iterations: 2, channels: 2}",
                      context_of(16));
    const auto [bytes, messages] = sent(*workload);
    const std::int64_t expected = (kind == "all_reduce" ? 2 : 1) * (n - 1) * size * iterations;
    EXPECT_EQ(workload->estimate().bytes.count(), expected) << kind;
    EXPECT_EQ(bytes, expected) << kind;
    EXPECT_EQ(workload->estimate().messages, messages) << kind;
  }
}

// Of 32 members 16 are asked. With recursive doubling each sends everything in each of log2 P rounds (Thakur et al.,
// IJHPCA 19(1), 2005), with halving and doubling 2 (P - 1)/P of it.
TEST(Collective, EstimateKnowsAlgorithmsThatSendMoreThanTheLeast) {
  const std::int64_t n = 32, size = std::int64_t{4} << 20;
  for (const auto& [algorithm, expected] :
       {std::pair{"recursive_doubling", n * 5 * size}, std::pair{"halving_doubling", 2 * (n - 1) * size}}) {
    const auto workload = read_workload(
        fmt::format("{{kind: collective, collective: all_reduce, algorithm: {}, ranks: 32, size: 4 MiB}}", algorithm),
        context_of(32));
    EXPECT_EQ(workload->estimate().bytes.count(), expected) << algorithm;
    EXPECT_EQ(sent(*workload).first, expected) << algorithm;
  }
}

// Each of g GPUs sends S + S/g to its NVSwitch and gets as much (docs/reference/collectives.md), 18 S for eight. Of two
// servers those of the same place form trees: the upper one of two gets S/g and sends S/g, 2 S in all.
TEST(Collective, EstimateCountsSwitchesThatReduce) {
  const std::int64_t size = std::int64_t{64} << 20;
  WorkloadContext context = context_of(16);
  context.switches_reduce = true;
  for (const auto& [algorithm, ranks, expected] :
       {std::tuple{"nvls", 8, 18 * size}, std::tuple{"nvls_tree", 16, 2 * 18 * size + 2 * size}}) {
    const auto workload =
        read_workload(fmt::format("{{kind: collective, collective: all_reduce, algorithm: {}, ranks: {}, "
                                  "ranks_per_server: 8, size: 64 MiB}}",
                                  algorithm, ranks),
                      context);
    EXPECT_EQ(workload->estimate().bytes.count(), expected) << algorithm;
  }
}

// The ring has no all-to-all, gather, scatter and barrier (docs/reference/workload_kinds.md).
TEST(Collective, EachKindHasAnAlgorithmThatCanDoIt) {
  for (const std::string& kind : collective_kind_names()) {
    const bool in_pairs = kind == "all_to_all" || kind == "gather" || kind == "scatter";
    const auto workload = read_workload("{kind: collective, collective: " + kind + ", size: 1 MiB}", context_of(4));
    EXPECT_EQ(workload->call(0).algorithm, in_pairs ? "nccl_p2p" : kind == "barrier" ? "double_binary_tree" : "ring");
  }
}

TEST(Collective, OneRankAndNoBytesAreFine) {
  const auto alone = read_workload("{kind: collective, collective: all_reduce, ranks: 1, size: 1 MiB}", context_of(1));
  EXPECT_EQ(operations_of(*alone, 0).size(), 1U);
  EXPECT_EQ(alone->estimate().bytes, Bytes(0));
  const auto empty = read_workload("{kind: collective, collective: all_reduce, ranks: 4, size: 0 B}", context_of(4));
  EXPECT_EQ(empty->estimate().messages, 0U);
}

TEST(Collective, Complaints) {
  const auto context = context_of(16);
  const std::string start = "kind: collective\ncollective: all_reduce\nsize: 1 MiB\n";
  expect_complaint(start + "ranks: 32\n", context, "x.yaml:4", {"32 ranks", "16 hosts"});
  expect_complaint(start + "ranks: 0\n", context, "x.yaml:4", {"0 ranks"});
  expect_complaint(start + "algorithm: rign\n", context, "x.yaml:4", {"rign", "did you mean 'ring'"});
  expect_complaint(start + "root: 1\n", context, "x.yaml:4", {"no root"});
  expect_complaint(start + "iterations: 0\n", context, "x.yaml:4", {"0"});
  expect_complaint(start + "chunk_size: 0 B\n", context, "x.yaml:4", {"0 B"});
  expect_complaint(start + "gap: 3\n", context, "x.yaml:4", {"unit"});
  expect_complaint(start + "credit: 3\n", context, "x.yaml:4", {"credit", "did you mean 'credits'"});
  expect_complaint("kind: collective\ncollective: all_redcue\nsize: 1 B\n", context, "x.yaml:2",
                   {"did you mean 'all_reduce'"});
  expect_complaint("kind: collective\ncollective: all_to_all\nsize: 1 B\nalgorithm: ring\n", context, "x.yaml:2",
                   {"'ring' cannot do 'all_to_all'", "nccl_p2p"});
  expect_complaint("kind: collective\ncollective: broadcast\nsize: 1 B\nranks: 4\nroot: 4\n", context, "x.yaml:5",
                   {"root 4", "0 to 3"});
  expect_complaint("kind: collective\ncollective: broadcast\n", context, "x.yaml:1", {"size"});
}

}  // namespace
}  // namespace weft::test::collective_test
