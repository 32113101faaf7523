// SPDX-License-Identifier: GPL-2.0-only
// Steps as values that tests compare and print, and a fixture that lists those of a rank.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "schedule/collective/collective.hpp"
#include "schedule/collective/collective_check.hpp"
#include "tests/collectives/altered.hpp"

namespace weft {

inline bool reads_local_data(const Step& step) { return reduces(step.primitive) || !receives(step.primitive); }

/// Equal in all that a step of its primitive means.
inline bool operator==(const Step& a, const Step& b) {
  return a.primitive == b.primitive && a.bytes == b.bytes && a.slice == b.slice &&
         (!sends(a.primitive) || a.send_peer == b.send_peer) &&
         (!receives(a.primitive) || a.receive_peer == b.receive_peer) &&
         (!stores(a.primitive) || (a.target == b.target && a.output_offset == b.output_offset)) &&
         (!reads_local_data(a) || (a.source == b.source && a.input_offset == b.input_offset));
}

inline std::ostream& operator<<(std::ostream& out, const Step& step) {
  out << to_text(step.primitive);
  if (sends(step.primitive)) out << " to " << step.send_peer;
  if (receives(step.primitive)) out << " from " << step.receive_peer;
  if (reads_local_data(step)) out << fmt::format(", {} {}", to_text(step.source), step.input_offset.count());
  if (stores(step.primitive)) out << fmt::format(", {} {}", to_text(step.target), step.output_offset.count());
  return out << fmt::format(", {} B, slice {}", step.bytes.count(), step.slice.count());
}

namespace testing_steps {

/// A step that is one message.
inline Step step_of(Primitive primitive, std::uint32_t peer, Buffer source, Buffer target, std::int64_t offset,
                    std::int64_t bytes) {
  Step step;
  step.primitive = primitive;
  step.send_peer = step.receive_peer = peer;
  step.source = source;
  step.target = target;
  step.input_offset = step.output_offset = Bytes(offset);
  step.bytes = step.slice = Bytes(bytes);
  return step;
}
inline Step send(std::uint32_t peer, Buffer source, std::int64_t offset, std::int64_t bytes) {
  return step_of(Primitive::send, peer, source, Buffer::output, offset, bytes);
}
inline Step take(std::uint32_t peer, Buffer target, std::int64_t offset, std::int64_t bytes) {
  return step_of(Primitive::recv, peer, Buffer::input, target, offset, bytes);
}
inline Step reduce(std::uint32_t peer, Buffer source, Buffer target, std::int64_t offset, std::int64_t bytes) {
  return step_of(Primitive::recv_reduce_copy, peer, source, target, offset, bytes);
}
inline Step copy(Buffer source, std::int64_t input, Buffer target, std::int64_t output, std::int64_t bytes) {
  Step step = step_of(Primitive::copy, 0, source, target, input, bytes);
  step.output_offset = Bytes(output);
  return step;
}

class AlgorithmTest : public testing::Test {
 protected:
  explicit AlgorithmTest(const std::string& name)
      : name_(name), algorithm_(CollectiveRegistry::instance().find(name)->make()) {}

  /// The call of the lines below it, with NCCL's sizes.
  CollectiveCall& call(CollectiveKind kind, std::uint32_t ranks, std::int64_t size) {
    communicator_ = Communicator(0, ranks);
    call_ = CollectiveCall{};
    call_.kind = kind;
    call_.communicator = &communicator_;
    call_.size = Bytes(size);
    call_.algorithm = name_;
    return call_;
  }
  /// The same with one message per exchange.
  CollectiveCall& whole(CollectiveKind kind, std::uint32_t ranks, std::int64_t size) {
    call(kind, ranks, size).tuning.chunk = Bytes(std::int64_t{1} << 50);
    call_.tuning.slices = 1;
    return call_;
  }
  std::vector<Step> steps(std::uint32_t index, std::uint32_t channel = 0) const {
    std::vector<Step> all;
    const auto stream = algorithm_->steps(call_, index, channel);
    for (Step step; stream->next(step);) all.push_back(step);
    return all;
  }
  CollectiveReplay replayed() const { return replay(*algorithm_, call_); }
  /// Bytes that each rank sends, after a replay without complaints.
  std::vector<std::int64_t> sent() const {
    const CollectiveReplay result = replayed();
    EXPECT_EQ(result.violations, std::vector<std::string>{});
    std::vector<std::int64_t> all;
    for (const Bytes bytes : result.sent) all.push_back(bytes.count());
    return all;
  }
  /// With chunks of 256 B, whatever credits are wanted: as many as a chunk has slices at least, with which ranks end.
  /// One less, and partners wait for each other (a single one less is none at all).
  void expect_enough_credits(CollectiveKind kind, std::uint32_t ranks) {
    for (const std::uint32_t slices : {1U, 2U, 4U}) {
      for (const std::uint32_t wanted : {1U, 3U, 8U, 9U, 100U}) {
        CollectiveCall& small = call(kind, ranks, 24 * 1024 + 7);
        small.tuning.chunk = Bytes(256);
        small.tuning.slices = slices;
        small.tuning.credits = wanted;
        EXPECT_EQ(algorithm().credits(small), std::max(wanted, slices));
        EXPECT_TRUE(replayed().violations.empty()) << ranks << " " << slices << " " << wanted;
        if (wanted == 1) {
          EXPECT_FALSE(replay(Starved(algorithm(), slices - 1), current()).violations.empty());
        }
      }
    }
  }
  const CollectiveAlgorithm& algorithm() const { return *algorithm_; }
  const CollectiveCall& current() const { return call_; }

  /// Every message that some rank sends is received with the same bytes by its partner, for any number of ranks:
  /// compares sums over the messages. Gives the messages per rank.
  std::vector<std::uint32_t> match_sends_with_receives() const {
    const std::uint32_t ranks = communicator_.size();
    std::vector<std::uint32_t> messages(ranks);
    std::uint64_t sends_hash = 0;
    std::uint64_t receives_hash = 0;
    for (std::uint32_t index = 0; index < ranks; ++index) {
      const auto stream = algorithm_->steps(call_, index, 0);
      for (Step step; stream->next(step);) {
        if (sends(step.primitive)) sends_hash += hash(index, step.send_peer, step.bytes);
        if (receives(step.primitive)) receives_hash += hash(step.receive_peer, index, step.bytes);
        if (sends(step.primitive)) ++messages[index];
      }
    }
    EXPECT_EQ(sends_hash, receives_hash);
    return messages;
  }

 private:
  static std::uint64_t hash(std::uint64_t sender, std::uint64_t receiver, Bytes bytes) {
    std::uint64_t x = (sender << 32 | receiver) + static_cast<std::uint64_t>(bytes.count()) * 0x9e3779b97f4a7c15;
    for (int i = 0; i < 3; ++i) x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9;
    return x;
  }

  std::string name_;
  std::unique_ptr<CollectiveAlgorithm> algorithm_;
  Communicator communicator_{0, 1};
  CollectiveCall call_;
};

}  // namespace testing_steps
}  // namespace weft
