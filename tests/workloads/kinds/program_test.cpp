// SPDX-License-Identifier: GPL-2.0-only
// Workload kind `program`: traces, their dependencies and their complaints.
#include <algorithm>
#include <fstream>
#include <iterator>

#include <gtest/gtest.h>

#include "tests/workloads/workload_under_test.hpp"

namespace weft::test::program_test {
namespace {

const std::string example = R"(kind: program
ranks: 4
communicators: {tp: [2, 1]}
operations:
  - {rank: all, id: fwd, compute: 10 us, label: forward}
  - {id: grads, collective: all_reduce, size: 4 MiB, after: fwd}
  - {rank: [1, 2], id: part, collective: all_gather, size: 1 MiB, communicator: tp, after: [fwd, grads]}
  - {rank: 0, id: s, send: 1 KiB, to: 1, tag: 7, after: [grads], stream: communication, queue_pair: 2}
  - {rank: 1, id: r, recv: 1 KiB, from: 0, tag: 7, not_before: 3 us}
  - {rank: 0, id: own, compute: 5 us, stream: none}
  - {rank: 1, id: own, compute: 6 us}
  - {rank: [0, 1], compute: 1 us, after: own}
)";

TEST(Program, EachRankGetsItsOperations) {
  const auto workload = read_workload(example, context_of(16));
  EXPECT_EQ(workload->ranks(), 4U);
  const auto zero = operations_of(*workload, 0);
  const auto one = operations_of(*workload, 1);
  ASSERT_EQ(zero.size(), 5U);
  ASSERT_EQ(one.size(), 6U);
  EXPECT_EQ(operations_of(*workload, 2).size(), 3U);
  EXPECT_EQ(operations_of(*workload, 3).size(), 2U);

  EXPECT_EQ(zero[0].kind, Operation::Kind::compute);
  EXPECT_EQ(zero[0].stream, Stream::compute);
  EXPECT_EQ(zero[0].duration, Time::from_us(10));
  EXPECT_EQ(zero[0].label, "forward");
  EXPECT_EQ(zero[0].line, 5U);
  EXPECT_EQ(zero[1].kind, Operation::Kind::collective);
  EXPECT_EQ(zero[1].stream, Stream::communication);
  EXPECT_EQ(zero[1].after, std::vector<std::uint64_t>{zero[0].id});
  EXPECT_EQ(zero[1].call->where.text(), "x.yaml:6");
  EXPECT_EQ(zero[2].kind, Operation::Kind::send);
  EXPECT_EQ(zero[2].stream, Stream::communication);
  EXPECT_EQ(zero[2].peer, Rank(1));
  EXPECT_EQ(zero[2].bytes, Bytes::kib(1));
  EXPECT_EQ(zero[2].tag, 7U);
  EXPECT_EQ(zero[2].queue_pair, 2U);
  EXPECT_EQ(zero[3].stream, Stream::none);
  EXPECT_EQ(one[2].call->communicator->rank(0), Rank(2));
  EXPECT_EQ(one[2].after, (std::vector<std::uint64_t>{one[0].id, one[1].id}));
  EXPECT_EQ(one[3].kind, Operation::Kind::recv);
  EXPECT_EQ(one[3].stream, Stream::none);
  EXPECT_EQ(one[3].peer, Rank(0));
  EXPECT_EQ(one[3].not_before, Time::from_us(3));
  // One name, two operations: each rank waits for its own.
  EXPECT_EQ(zero[4].after, std::vector<std::uint64_t>{zero[3].id});
  EXPECT_EQ(one[5].after, std::vector<std::uint64_t>{one[4].id});
  EXPECT_NE(zero[3].id, one[4].id);
}

TEST(Program, EstimateAddsUp) {
  const auto estimate = read_workload(example, context_of(16))->estimate();
  const std::int64_t all_reduce = 2 * (4 - 1) * (std::int64_t{4} << 20);
  const std::int64_t all_gather = (2 - 1) * (std::int64_t{1} << 20);
  EXPECT_EQ(estimate.bytes.count(), all_reduce + all_gather + 1024);
  EXPECT_EQ(estimate.compute, Time::from_us(10 + 6 + 1));
}

TEST(Program, OptionsOfCollectivesHoldForAllAndCanBeOverridden) {
  const auto workload = read_workload(
      "{kind: program, ranks: 2, channels: 3, operations: [{collective: all_reduce, size: 1 B, algorithm: ring}]}",
      context_of(2));
  EXPECT_EQ(workload->call(0).tuning.channels, 3U);
  EXPECT_EQ(workload->call(0).label, "all_reduce");
}

TEST(Program, ReadyMadeTraceIsReadFromItsFile) {
  const auto workload = read_workload("{kind: program, file: traces/ddp_step.yaml}", context_of(16));
  EXPECT_EQ(workload->ranks(), 4U);
  EXPECT_EQ(workload->call_count(), 2U);
  EXPECT_EQ(workload->call(0).where.file, workloads_folder() + "/traces/ddp_step.yaml");
  for (std::uint32_t rank = 0; rank < 4; ++rank)
    EXPECT_EQ(operations_of(*workload, rank).size(), rank % 3 == 0 ? 7U : 6U);
  EXPECT_EQ(read_workload("{kind: program, file: ddp_step}", context_of(16))->ranks(), 4U);
}

TEST(Program, ExampleOfTheManualIsRead) {
  std::ifstream page(workloads_folder() + "/../docs/reference/program_format.md");
  ASSERT_TRUE(page);
  const std::string text{std::istreambuf_iterator<char>(page), {}};
  const std::size_t begin = text.find("```yaml\n") + 8;
  const auto workload = read_workload(text.substr(begin, text.find("```", begin) - begin), context_of(4));
  EXPECT_EQ(workload->call_count(), 2U);
  EXPECT_EQ(operations_of(*workload, 1).size(), 5U);
  EXPECT_EQ(operations_of(*workload, 3).size(), 2U);
}

/// One bad line, the fifth, in a program of four ranks.
void expect_bad(const std::string& operation, const std::vector<std::string>& parts,
                const std::string& place = "x.yaml:5") {
  expect_complaint(
      "kind: program\nranks: 4\noperations:\n  - {rank: 0, id: first, compute: 1 us}\n  - " + operation + "\n",
      context_of(16), place, parts);
}

TEST(Program, ComplaintsAboutCalls) {
  const std::string sums = "collective: all_reduce, size: 1 B";
  expect_bad("{" + sums + ", call: 0}\n  - {" + sums + "}", {"some have none"}, "x.yaml:6");
  expect_bad("{" + sums + ", call: 1}", {"1 calls", "without gaps"});
  expect_bad("{rank: [0, 1], " + sums + ", call: 0}", {"call 0 has 2 ranks", "has 4"});
  expect_bad("{rank: [0, 0], " + sums + ", call: 0}", {"listed twice"});
  expect_bad("{rank: [0, 1], " + sums + ", call: 0}\n  - {rank: [1, 2, 3], " + sums + ", call: 0}",
             {"rank 1 takes part in call 0 twice"}, "x.yaml:6");
  expect_bad("{rank: [0, 1], " + sums + ", call: 0}\n  - {rank: [2, 3], collective: all_reduce, size: 2 B, call: 0}",
             {"another one on line 5"}, "x.yaml:6");
  expect_bad("{rank: 4, " + sums + ", call: 0}", {"rank 4"});
  expect_bad("{" + sums + ", tuning: quick}", {"unknown tuning 'quick'"});
  expect_bad("{collective: all_to_all, blocks: [1, 2, 3]}", {"3 blocks", "16"});
  expect_bad("{collective: all_reduce, blocks: [1, 2, 3, 4]}", {"4 blocks"});
  expect_bad("{collective: all_gather, blocks: [1, 2, 3, 4], size: 10 B}", {"beside 'blocks'"});
  expect_bad("{rank: 0, compute: {bytes: 1 B}}", {"'device'"});
}

TEST(Program, ComplaintsAboutOperations) {
  expect_bad("{rank: 4, compute: 1 us}", {"rank 4", "0 to 3"});
  expect_bad("{rank: [0, 0], compute: 1 us}", {"rank 0", "twice"});
  expect_bad("{rank: [], compute: 1 us}", {"no ranks"});
  expect_bad("{compute: 1 us}", {"rank"});
  expect_bad("{rank: 0}", {"exactly one"});
  expect_bad("{rank: 0, comput: 1 us}", {"did you mean 'compute'"});
  expect_bad("{rank: 0, compute: 1 us, send: 1 B, to: 1}", {"exactly one", "compute, send"});
  expect_bad("{rank: 0, compute: 1}", {"unit"});
  expect_bad("{rank: 0, compute: 1 us, to: 1}", {"'to'"});
  expect_bad("{rank: 0, compute: 1 us, after: frist}", {"frist", "did you mean 'first'"});
  expect_bad("{rank: 1, compute: 1 us, after: first}", {"rank 1", "first"});
  expect_bad("{rank: all, compute: 1 us, after: first}", {"rank 1", "first"});
  expect_bad("{rank: 0, id: first, compute: 1 us}", {"two operations 'first'", "line 4"});
  expect_bad("{rank: all, id: first, compute: 1 us}", {"two operations 'first'"});
  expect_bad("{rank: 0, compute: 1 us, after: later}\n  - {rank: 0, id: later, compute: 1 us}", {"later", "line 6"});
  expect_bad("{rank: 0, id: me, compute: 1 us, after: me}", {"me", "program order"});
  expect_bad("{rank: 0, compute: 1 us, stream: communicatoin}", {"did you mean 'communication'"});
  expect_bad("{rank: 0, send: 1 B, to: 0}", {"itself"});
  expect_bad("{rank: all, send: 1 B, to: 2}", {"itself"});
  expect_bad("{rank: 0, send: 1 B, to: 9}", {"rank 9"});
  expect_bad("{rank: 0, send: 1 B, to: 1, tag: -1}", {"-1"});
  expect_bad("{collective: all_reduce, size: 1 B, communicator: tp}", {"unknown communicator 'tp'", "all"});
  expect_bad("{rank: [0, 1], collective: all_reduce, size: 1 B}", {"2 ranks", "4 members"});
  expect_bad("{collective: broadcast, size: 1 B, root: 4}", {"root 4"});
  expect_bad("17", {"map"});
}

TEST(Program, ComplaintsAboutMatching) {
  expect_bad("{rank: 0, send: 1 B, to: 1}", {"from rank 0 to rank 1 with tag 0", "no recv", "1 sends and 0 recvs"});
  expect_bad("{rank: 1, recv: 1 B, from: 0}", {"no send"});
  expect_bad("{rank: 0, send: 1 B, to: 1}\n  - {rank: 1, recv: 2 B, from: 0}", {"1 B", "2 B", "line 5", "line 6"});
  expect_bad("{rank: 0, send: 1 B, to: 1, tag: 1}\n  - {rank: 1, recv: 1 B, from: 0, tag: 2}", {"tag 1"});
  // The second of two sends is the one without a partner, not the first, and not the recv further down.
  const std::string text =
      "kind: program\nranks: 4\noperations:\n"
      "  - {rank: 0, send: 1 B, to: 1}\n"
      "  - {rank: 0, send: 1 B, to: 1}\n"
      "  - {rank: 3, recv: 1 B, from: 2}\n"
      "  - {rank: 1, recv: 1 B, from: 0}\n";
  expect_complaint(text, context_of(4), "x.yaml:5", {"2 sends and 1 recvs"});
}

TEST(Program, ComplaintsAboutTheRest) {
  const auto context = context_of(4);
  expect_complaint("kind: program\nranks: 5\noperations: []\n", context, "x.yaml:2", {"5 ranks", "4 hosts"});
  expect_complaint("kind: program\nranks: 4\n", context, "x.yaml:1", {"operations"});
  expect_complaint("kind: program\nranks: 4\ncommunicators:\n  tp: [0, 4]\noperations: []\n", context, "x.yaml:4",
                   {"rank 4"});
  expect_complaint("kind: program\nranks: 4\ncommunicators:\n  all: [0, 1]\noperations: []\n", context, "x.yaml:4",
                   {"another name"});
  expect_complaint(
      "kind: program\nranks: 4\ncommunicators: {tp: [0, 1]}\noperations:\n"
      "  - {rank: [0, 2], collective: all_reduce, size: 1 B, communicator: tp}\n",
      context, "x.yaml:5", {"rank 2", "not a member"});
  expect_complaint("kind: program\nranks: 4\noperation: []\n", context, "x.yaml", {"operations"});
  expect_complaint("kind: program\nfile: nothing.yaml\n", context, "x.yaml:2", {"no file", "ddp_step"});
  expect_complaint("kind: program\nfile: traces/ddp_step.yaml\noperations: []\n", context, "x.yaml:3", {"both"});
  const TemporaryFile trace("trace.yaml", "ranks: 2\noperations:\n- {rank: 0, compute: 1 us, after: x}\n");
  expect_complaint("kind: program\nfile: " + trace.path() + "\n", context, trace.path() + ":3",
                   {"unknown operation 'x'"});
}

}  // namespace
}  // namespace weft::test::program_test
