// SPDX-License-Identifier: GPL-2.0-only
// The replay finds all errors, and nothing else, in hand-written collectives.
#include "schedule/collective/collective_check.hpp"

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

namespace weft::collective_check_test {
namespace {

using P = Primitive;

/// Lists of steps by rank, one channel.
class Listed final : public CollectiveAlgorithm {
 public:
  explicit Listed(std::vector<std::vector<Step>> steps, std::uint32_t credits = 4)
      : steps_(std::move(steps)), credits_(credits) {}
  bool supports(CollectiveKind) const override { return true; }
  std::uint32_t credits(const CollectiveCall&) const override { return credits_; }
  std::unique_ptr<StepStream> steps(const CollectiveCall&, std::uint32_t index, std::uint32_t) const override {
    return std::make_unique<Stream>(steps_[index]);
  }

 private:
  class Stream final : public StepStream {
   public:
    explicit Stream(const std::vector<Step>& steps) : steps_(steps) {}
    bool next(Step& step) override {
      if (at_ == steps_.size()) return false;
      step = steps_[at_++];
      return true;
    }

   private:
    const std::vector<Step>& steps_;
    std::size_t at_ = 0;
  };
  std::vector<std::vector<Step>> steps_;
  std::uint32_t credits_;
};

Step step_of(P primitive, std::uint32_t peer, std::int64_t input, std::int64_t output, std::int64_t bytes,
             std::int64_t slice = 0) {
  Step step;
  step.primitive = primitive;
  step.send_peer = step.receive_peer = peer;
  step.input_offset = Bytes(input);
  step.output_offset = Bytes(output);
  step.bytes = Bytes(bytes);
  step.slice = Bytes(slice == 0 ? bytes : slice);
  return step;
}

class Replay : public testing::Test {
 protected:
  CollectiveReplay run(CollectiveKind kind, std::int64_t size, std::vector<std::vector<Step>> steps,
                       std::uint32_t credits = 4) {
    communicator_ = Communicator(0, static_cast<std::uint32_t>(steps.size()));
    CollectiveCall call;
    call.kind = kind;
    call.communicator = &communicator_;
    call.size = Bytes(size);
    call.root = 0;
    return replay(Listed(std::move(steps), credits), call, 100);
  }
  /// The replay must complain, and one of its complaints must contain `text`.
  void expect_violation(const CollectiveReplay& result, const std::string& text) {
    bool found = false;
    for (const std::string& violation : result.violations) found |= violation.find(text) != std::string::npos;
    EXPECT_TRUE(found) << "no '" << text << "' in:\n" << fmt::format("{}", fmt::join(result.violations, "\n"));
  }

 private:
  Communicator communicator_{0, 1};
};

TEST_F(Replay, RightOnesPass) {
  // all_reduce of two ranks: exchange everything, both reduce.
  const CollectiveReplay exchange =
      run(CollectiveKind::all_reduce, 100,
          {{step_of(P::send, 1, 0, 0, 100, 30), step_of(P::recv_reduce_copy, 1, 0, 0, 100, 30)},
           {step_of(P::send, 0, 0, 0, 100, 30), step_of(P::recv_reduce_copy, 0, 0, 0, 100, 30)}});
  EXPECT_EQ(exchange.violations, std::vector<std::string>{});
  EXPECT_EQ(exchange.messages, 2u * 4);  // slices of 30 in 100: 30, 30, 30, 10
  EXPECT_EQ(exchange.steps, 4u);
  EXPECT_EQ(exchange.sent, (std::vector<Bytes>{Bytes(100), Bytes(100)}));
  EXPECT_EQ(exchange.total_sent(), Bytes(200));

  EXPECT_EQ(
      run(CollectiveKind::reduce, 10, {{step_of(P::recv_reduce_copy, 1, 0, 0, 10)}, {step_of(P::send, 0, 0, 0, 10)}})
          .violations,
      std::vector<std::string>{});
  EXPECT_EQ(
      run(CollectiveKind::broadcast, 10, {{step_of(P::send, 1, 0, 0, 10)}, {step_of(P::recv, 0, 0, 0, 10)}}).violations,
      std::vector<std::string>{});
  // 11 bytes: block 0 has 6, block 1 has 5. Rank 0 sends its block 1, rank 1 its block 0.
  EXPECT_EQ(run(CollectiveKind::all_to_all, 11,
                {{step_of(P::copy, 0, 0, 0, 6), step_of(P::send, 1, 6, 0, 5), step_of(P::recv, 1, 0, 6, 6)},
                 {step_of(P::copy, 0, 6, 6, 5), step_of(P::send, 0, 0, 0, 6), step_of(P::recv, 0, 0, 0, 5)}})
                .violations,
            std::vector<std::string>{});
}

TEST_F(Replay, PiecesThatWereReducedDifferentlyMayMeet) {
  // Rank 1 gets bytes [0,4) and [4,10) of rank 0 in two chunks, stores them, and nothing is missing at the seam.
  EXPECT_EQ(run(CollectiveKind::broadcast, 10,
                {{step_of(P::send, 1, 4, 0, 6, 4), step_of(P::send, 1, 0, 0, 4)},
                 {step_of(P::recv, 0, 0, 4, 6, 4), step_of(P::recv, 0, 0, 0, 4)}})
                .violations,
            std::vector<std::string>{});
}

TEST_F(Replay, FindsMissingBytes) {
  expect_violation(run(CollectiveKind::broadcast, 10, {{step_of(P::send, 1, 0, 0, 9)}, {step_of(P::recv, 0, 0, 0, 9)}}),
                   "rank 1: output byte 9 is never written");
  expect_violation(run(CollectiveKind::broadcast, 10, {{}, {}}), "rank 1: output byte 0 is never written");
}

TEST_F(Replay, FindsTheWrongSourceByte) {
  expect_violation(run(CollectiveKind::broadcast, 10,
                       {{step_of(P::send, 1, 0, 0, 5), step_of(P::send, 1, 4, 0, 5)},
                        {step_of(P::recv, 0, 0, 0, 5), step_of(P::recv, 0, 0, 5, 5)}}),
                   "output byte 5 consists of {0@4} (rank@byte of its input), and should of {0@5}");
}

TEST_F(Replay, FindsAContributionThatIsMissingOrTwice) {
  expect_violation(run(CollectiveKind::reduce, 8, {{step_of(P::recv, 1, 0, 0, 8)}, {step_of(P::send, 0, 0, 0, 8)}}),
                   "consists of {1@0}");
  expect_violation(run(CollectiveKind::reduce, 8,
                       {{step_of(P::send, 1, 0, 0, 8), step_of(P::recv_reduce_copy, 1, 0, 0, 8)},
                        {step_of(P::recv_reduce_send, 0, 0, 0, 8)}}),
                   "consists of {0@0 0@0 1@0} (rank@byte of its input), and should of {0@0 1@0}");
}

TEST_F(Replay, FindsDoubleAndSuperfluousWriting) {
  expect_violation(run(CollectiveKind::broadcast, 8,
                       {{step_of(P::send, 1, 0, 0, 8), step_of(P::send, 1, 7, 0, 1)},
                        {step_of(P::recv, 0, 0, 0, 8), step_of(P::recv, 0, 0, 7, 1)}}),
                   "written twice");
  expect_violation(run(CollectiveKind::broadcast, 8, {{step_of(P::send, 1, 0, 0, 8)}, {step_of(P::recv, 0, 0, 1, 8)}}),
                   "output byte 0 is never written");
  expect_violation(run(CollectiveKind::broadcast, 8,
                       {{step_of(P::copy, 0, 0, 0, 3), step_of(P::send, 1, 0, 0, 8)}, {step_of(P::recv, 0, 0, 0, 8)}}),
                   "rank 0: 3 bytes are written, but its result has 0");
}

Step with_buffers(Step step, Buffer source, Buffer target) {
  step.source = source;
  step.target = target;
  return step;
}

TEST_F(Replay, ScratchMayBeOverwrittenAndOutputReadAgain) {
  // Rank 0 collects three contributions in two overlapping pieces of scratch, of which the second covers a part of the
  // first one again, and passes the result on.
  constexpr Buffer in = Buffer::input;
  constexpr Buffer mid = Buffer::scratch;
  constexpr Buffer out = Buffer::output;
  const auto run_with = [&](std::int64_t read_from) {
    return run(
        CollectiveKind::all_reduce, 8,
        {{with_buffers(step_of(P::recv_reduce_copy, 1, 0, 0, 6), in, mid),
          with_buffers(step_of(P::recv_reduce_copy, 1, 3, 3, 5), in, mid),
          with_buffers(step_of(P::recv_reduce_copy, 2, read_from, 0, 8), mid, out),
          with_buffers(step_of(P::send, 1, 0, 0, 8), out, out), with_buffers(step_of(P::send, 2, 0, 0, 8), out, out)},
         {step_of(P::send, 0, 0, 0, 6), step_of(P::send, 0, 3, 0, 5), step_of(P::recv, 0, 0, 0, 8)},
         {step_of(P::send, 0, 0, 0, 8), step_of(P::recv, 0, 0, 0, 8)}});
  };
  EXPECT_EQ(run_with(0).violations, std::vector<std::string>{});
  expect_violation(run_with(1), "reads [1, 9) of its scratch, where it has not stored all of that");
  expect_violation(run_with(-1), "reads at -1");
}

TEST_F(Replay, FindsReadingOfWhatIsNotThere) {
  expect_violation(run(CollectiveKind::broadcast, 8,
                       {{with_buffers(step_of(P::send, 1, 0, 0, 8), Buffer::output, Buffer::output)},
                        {step_of(P::recv, 0, 0, 0, 8)}}),
                   "reads [0, 8) of its output, where it has not stored all of that");
  expect_violation(run(CollectiveKind::broadcast, 8,
                       {{step_of(P::send, 1, 0, 0, 8)},
                        {with_buffers(step_of(P::recv, 0, 0, 0, 8), Buffer::input, Buffer::scratch)}}),
                   "rank 1: output byte 0 is never written");
  expect_violation(
      run(CollectiveKind::broadcast, 8,
          {{step_of(P::send, 1, 0, 0, 8)}, {with_buffers(step_of(P::recv, 0, 0, 0, 8), Buffer::input, Buffer::input)}}),
      "writes to its input");
}

TEST_F(Replay, FindsDeadlocks) {
  expect_violation(run(CollectiveKind::broadcast, 8, {{}, {step_of(P::recv, 0, 0, 0, 8)}}),
                   "waits for ever for byte 0 from rank 0");
  expect_violation(run(CollectiveKind::all_reduce, 8,
                       {{step_of(P::send, 1, 0, 0, 8, 4), step_of(P::recv_reduce_copy, 1, 0, 0, 8, 4)},
                        {step_of(P::send, 0, 0, 0, 8, 4), step_of(P::recv_reduce_copy, 0, 0, 0, 8, 4)}},
                       1),
                   "waits for ever for one of 1 credits to send byte 4 to rank 1");
  expect_violation(
      run(CollectiveKind::broadcast, 8, {{step_of(P::send, 1, 0, 0, 8)}, {step_of(P::recv, 0, 0, 0, 8)}}, 0),
      "no credits");
}

TEST_F(Replay, FindsWhatIsLeftInFlight) {
  expect_violation(run(CollectiveKind::broadcast, 8,
                       {{step_of(P::send, 1, 0, 0, 8), step_of(P::send, 1, 0, 0, 8)}, {step_of(P::recv, 0, 0, 0, 8)}}),
                   "1 slices from rank 0 to rank 1 on channel 0 are never received");
}

TEST_F(Replay, FindsDifferentChunksAndSlices) {
  expect_violation(
      run(CollectiveKind::broadcast, 8, {{step_of(P::send, 1, 0, 0, 8, 4)}, {step_of(P::recv, 0, 0, 0, 8, 8)}}),
      "expects byte 0 of 8 in slices of 8, but rank 0 sent byte 0 of 8 in slices of 4");
  expect_violation(run(CollectiveKind::broadcast, 8,
                       {{step_of(P::send, 1, 0, 0, 8)}, {step_of(P::recv, 0, 0, 0, 4), step_of(P::recv, 0, 0, 4, 4)}}),
                   "expects byte 0 of 4");
}

TEST_F(Replay, FindsUnsoundSteps) {
  Step unsliced = step_of(P::copy, 0, 0, 0, 8);
  unsliced.slice = Bytes(0);
  expect_violation(run(CollectiveKind::all_reduce, 8, {{unsliced}, {}}), "slices of 0 B");
  expect_violation(run(CollectiveKind::all_reduce, 8, {{step_of(P::copy, 0, 0, 0, 0, 1)}, {}}), "empty step");
  expect_violation(run(CollectiveKind::all_reduce, 8, {{step_of(P::send, 0, 0, 0, 8)}, {}}), "sends to 0");
  expect_violation(run(CollectiveKind::all_reduce, 8, {{step_of(P::recv, 2, 0, 0, 8)}, {}}), "receives from 2");
  expect_violation(run(CollectiveKind::all_reduce, 8, {{step_of(P::send, 1, 1, 0, 8)}, {}}),
                   "reads [1, 9) of its input, where it does not have all of that");
  expect_violation(run(CollectiveKind::broadcast, 8, {{}, {step_of(P::send, 0, 0, 0, 8)}}),
                   "reads [0, 8) of its input, where it does not have all of that");
  expect_violation(run(CollectiveKind::all_reduce, 8, {{step_of(P::copy, 0, 0, -1, 8)}, {}}), "writes at -1");
}

TEST_F(Replay, EndsWithStreamsThatDoNot) {
  std::vector<Step> endless;
  for (int i = 0; i < 1000; ++i) endless.push_back(step_of(P::copy, 0, 0, i, 1));
  expect_violation(run(CollectiveKind::all_reduce, 1000, {endless, {}}), "more than 100 steps");
}

TEST_F(Replay, FindsLanesThatWaitForEachOther) {
  Step wait;
  wait.primitive = Primitive::nop;
  wait.wait_lane = 0;
  wait.wait_marks = 1;
  expect_violation(run(CollectiveKind::all_reduce, 8, {{wait}, {}}),
                   "waits for ever for mark 1 of lane 0, which has 0");
}

TEST_F(Replay, SumsWhatComesFromSeveralPeers) {
  Step sum = step_of(P::recv_reduce_copy_send, 1, 0, 0, 8);
  sum.add_receive(2);
  sum.add_send(2);
  const auto run_with = [&](const Step& step) {
    return run(CollectiveKind::all_reduce, 8,
               {{step},
                {step_of(P::send, 0, 0, 0, 8), step_of(P::recv, 0, 0, 0, 8)},
                {step_of(P::send, 0, 0, 0, 8), step_of(P::recv, 0, 0, 0, 8)}});
  };
  EXPECT_EQ(run_with(sum).violations, std::vector<std::string>{});
  EXPECT_EQ(run_with(sum).messages, 4U);
  sum.primitive = P::recv_copy_send;
  expect_violation(run_with(sum), "receives from several peers without reducing");
}

TEST(LeastBytesSent, PerKind) {
  const Communicator communicator(0, 5);
  CollectiveCall call;
  call.communicator = &communicator;
  call.size = Bytes(7);  // blocks of 2, 2, 2, 1, 0
  call.root = 3;
  const std::map<std::string, std::int64_t> expected = {
      {"all_reduce", 2 * 4 * 7}, {"all_gather", 4 * 7}, {"reduce_scatter", 4 * 7}, {"broadcast", 4 * 7},
      {"reduce", 4 * 7},         {"all_to_all", 4 * 7}, {"gather", 7 - 1},         {"scatter", 7 - 1},
      {"barrier", 4 * 7},        {"send_recv", 5 * 7}};
  for (const std::string& name : collective_kind_names()) {
    call.kind = parse_collective_kind(name).value();
    EXPECT_EQ(min_bytes_sent(call), Bytes(expected.at(name))) << name;
  }
}

}  // namespace
}  // namespace weft::collective_check_test
