// SPDX-License-Identifier: GPL-2.0-only
// Recursive halving and doubling: partners, sizes and order of each rank's steps, and volumes, by formula.
#include <algorithm>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "support/basics/error.hpp"
#include "tests/collectives/steps.hpp"

namespace weft::halving_doubling_test {
namespace {

using testing_steps::copy;
using testing_steps::reduce;
using testing_steps::send;
using testing_steps::take;
using Kind = CollectiveKind;

/// The `bits` low bits of a number in the opposite order.
std::uint32_t reversed(std::uint32_t number, std::uint32_t bits) {
  std::uint32_t result = 0;
  for (std::uint32_t k = 0; k < bits; ++k) result |= ((number >> k) & 1U) << (bits - 1 - k);
  return result;
}

class HalvingDoubling : public testing_steps::AlgorithmTest {
 protected:
  HalvingDoubling() : AlgorithmTest("halving_doubling") {}
};

TEST_F(HalvingDoubling, AllReduceOfEight) {
  // Halving at distances 1, 2, 4 leaves rank r with the block whose number is r with its bits reversed; in between it
  // has the 4, 2 blocks around that one. Then the same backwards.
  constexpr std::int64_t block = 16 * 1000;
  whole(Kind::all_reduce, 8, 8 * block);
  for (std::uint32_t r = 0; r < 8; ++r) {
    const auto kept = [&](std::uint32_t rank, std::uint32_t blocks) {
      return reversed(rank, 3) / blocks * blocks * block;
    };
    std::vector<Step> expected;
    for (const std::uint32_t distance : {1U, 2U, 4U}) {
      const std::uint32_t partner = r ^ distance;
      const std::uint32_t blocks = 4 / distance;
      const Buffer before = distance == 1 ? Buffer::input : Buffer::scratch;
      const Buffer after = distance == 4 ? Buffer::output : Buffer::scratch;
      expected.push_back(send(partner, before, kept(partner, blocks), blocks * block));
      expected.push_back(reduce(partner, before, after, kept(r, blocks), blocks * block));
    }
    for (const std::uint32_t distance : {4U, 2U, 1U}) {
      const std::uint32_t partner = r ^ distance;
      const std::uint32_t blocks = 4 / distance;
      expected.push_back(send(partner, Buffer::output, kept(r, blocks), blocks * block));
      expected.push_back(take(partner, Buffer::output, kept(partner, blocks), blocks * block));
    }
    EXPECT_EQ(steps(r), expected) << "rank " << r;
  }
}

TEST_F(HalvingDoubling, AllReduceOfSix) {
  // Of 0,1 and 2,3 the even ones sit out; 1, 3, 4, 5 take positions 0 to 3, and quarters q of the vector.
  constexpr std::int64_t q = 160;
  constexpr Buffer in = Buffer::input;
  constexpr Buffer mid = Buffer::scratch;
  constexpr Buffer out = Buffer::output;
  whole(Kind::all_reduce, 6, 4 * q);
  for (const std::uint32_t even : {0U, 2U})
    EXPECT_EQ(steps(even), (std::vector<Step>{send(even + 1, in, 0, 4 * q), take(even + 1, out, 0, 4 * q)}));
  EXPECT_EQ(steps(1),
            (std::vector<Step>{reduce(0, in, mid, 0, 4 * q), send(3, mid, 2 * q, 2 * q), reduce(3, mid, mid, 0, 2 * q),
                               send(4, mid, q, q), reduce(4, mid, out, 0, q), send(4, out, 0, q), take(4, out, q, q),
                               send(3, out, 0, 2 * q), take(3, out, 2 * q, 2 * q), send(0, out, 0, 4 * q)}));
  EXPECT_EQ(steps(3), (std::vector<Step>{reduce(2, in, mid, 0, 4 * q), send(1, mid, 0, 2 * q),
                                         reduce(1, mid, mid, 2 * q, 2 * q), send(5, mid, 3 * q, q),
                                         reduce(5, mid, out, 2 * q, q), send(5, out, 2 * q, q), take(5, out, 3 * q, q),
                                         send(1, out, 2 * q, 2 * q), take(1, out, 0, 2 * q), send(2, out, 0, 4 * q)}));
  EXPECT_EQ(steps(4), (std::vector<Step>{send(5, in, 2 * q, 2 * q), reduce(5, in, mid, 0, 2 * q), send(1, mid, 0, q),
                                         reduce(1, mid, out, q, q), send(1, out, q, q), take(1, out, 0, q),
                                         send(5, out, 0, 2 * q), take(5, out, 2 * q, 2 * q)}));
  EXPECT_EQ(steps(5), (std::vector<Step>{send(4, in, 0, 2 * q), reduce(4, in, mid, 2 * q, 2 * q),
                                         send(3, mid, 2 * q, q), reduce(3, mid, out, 3 * q, q), send(3, out, 3 * q, q),
                                         take(3, out, 2 * q, q), send(4, out, 2 * q, 2 * q), take(4, out, 0, 2 * q)}));
}

TEST_F(HalvingDoubling, ReduceScatterOfEight) {
  // Distances 4, 2, 1, so that the own block is left: around it 4 and 2 blocks before. The last block is 3 bytes
  // shorter.
  constexpr std::int64_t block = 1000;
  constexpr std::int64_t size = 8 * block - 3;
  whole(Kind::reduce_scatter, 8, size);
  for (std::uint32_t r = 0; r < 8; ++r) {
    std::vector<Step> expected;
    for (const std::uint32_t distance : {4U, 2U, 1U}) {
      const std::uint32_t partner = r ^ distance;
      const Buffer before = distance == 4 ? Buffer::input : Buffer::scratch;
      const auto begin = [&](std::uint32_t rank) { return rank / distance * distance * block; };
      const auto bytes = [&](std::uint32_t rank) {
        return std::min(size, begin(rank) + distance * block) - begin(rank);
      };
      expected.push_back(send(partner, before, begin(partner), bytes(partner)));
      expected.push_back(reduce(partner, before, Buffer::scratch, begin(r), bytes(r)));
    }
    expected.back().target = Buffer::output;
    expected.back().output_offset = Bytes(0);
    EXPECT_EQ(steps(r), expected) << "rank " << r;
  }
}

TEST_F(HalvingDoubling, ReduceScatterOfSix) {
  // Ranks 1, 3, 4, 5 represent the blocks 01, 23, 4, 5: first they divide into 0123 and 45.
  constexpr std::int64_t b = 100;
  constexpr Buffer in = Buffer::input;
  constexpr Buffer mid = Buffer::scratch;
  constexpr Buffer out = Buffer::output;
  whole(Kind::reduce_scatter, 6, 6 * b);
  EXPECT_EQ(steps(0), (std::vector<Step>{send(1, in, 0, 6 * b), take(1, out, 0, b)}));
  EXPECT_EQ(steps(2), (std::vector<Step>{send(3, in, 0, 6 * b), take(3, out, 0, b)}));
  EXPECT_EQ(steps(1), (std::vector<Step>{reduce(0, in, mid, 0, 6 * b), send(4, mid, 4 * b, 2 * b),
                                         reduce(4, mid, mid, 0, 4 * b), send(3, mid, 2 * b, 2 * b),
                                         reduce(3, mid, mid, 0, 2 * b), copy(mid, b, out, 0, b), send(0, mid, 0, b)}));
  EXPECT_EQ(steps(3),
            (std::vector<Step>{reduce(2, in, mid, 0, 6 * b), send(5, mid, 4 * b, 2 * b), reduce(5, mid, mid, 0, 4 * b),
                               send(1, mid, 0, 2 * b), reduce(1, mid, mid, 2 * b, 2 * b), copy(mid, 3 * b, out, 0, b),
                               send(2, mid, 2 * b, b)}));
  Step last = reduce(5, mid, out, 4 * b, b);
  last.output_offset = Bytes(0);
  EXPECT_EQ(steps(4),
            (std::vector<Step>{send(1, in, 0, 4 * b), reduce(1, in, mid, 4 * b, 2 * b), send(5, mid, 5 * b, b), last}));
}

TEST_F(HalvingDoubling, AllGatherIsRecursiveDoubling) {
  const auto doubling = CollectiveRegistry::instance().find("recursive_doubling")->make();
  for (const std::uint32_t ranks : {1U, 6U, 8U, 13U}) {
    call(Kind::all_gather, ranks, 1'000'003);
    for (std::uint32_t r = 0; r < ranks; ++r) {
      std::vector<Step> expected;
      const auto stream = doubling->steps(current(), r, 0);
      for (Step step; stream->next(step);) expected.push_back(step);
      EXPECT_EQ(steps(r), expected);
    }
  }
}

TEST_F(HalvingDoubling, SizesThatDoNotDivide) {
  // 100 bytes in 4 blocks of ceil(100/4) rounded up to 16, for no element may be cut: 32, 32, 32, 4.
  constexpr Buffer in = Buffer::input;
  constexpr Buffer mid = Buffer::scratch;
  constexpr Buffer out = Buffer::output;
  whole(Kind::all_reduce, 4, 100);
  EXPECT_EQ(steps(3), (std::vector<Step>{send(2, in, 0, 64), reduce(2, in, mid, 64, 36), send(1, mid, 64, 32),
                                         reduce(1, mid, out, 96, 4), send(1, out, 96, 4), take(1, out, 64, 32),
                                         send(2, out, 64, 36), take(2, out, 0, 64)}));
  // 17 bytes: blocks of 16 and 1, the others empty: no steps.
  whole(Kind::all_reduce, 4, 17);
  EXPECT_EQ(steps(2), (std::vector<Step>{reduce(3, in, mid, 0, 17), send(0, mid, 0, 16), reduce(0, mid, out, 16, 1),
                                         send(0, out, 16, 1), take(0, out, 0, 16), send(3, out, 0, 17)}));
  EXPECT_EQ(steps(1), (std::vector<Step>{send(0, in, 0, 17), take(0, out, 0, 17)}));
}

TEST_F(HalvingDoubling, ChannelsHaveTheSamePartOfEachBlock) {
  // Blocks of 40 bytes, halves of 20 rounded up to 32: the second channel has bytes 32 to 39 of each. In scratch they
  // follow each other, and each round is one message.
  CollectiveCall& shared = whole(Kind::reduce_scatter, 4, 160);
  shared.tuning.channels = 2;
  std::vector<Step> expected;
  for (std::int64_t block = 0; block < 4; ++block) {
    expected.push_back(copy(Buffer::input, 40 * block + 32, Buffer::scratch, 8 * block, 8));
    expected.back().instant = true;
  }
  Step last = reduce(3, Buffer::scratch, Buffer::output, 16, 8);
  last.output_offset = Bytes(32);
  expected.insert(expected.end(), {send(0, Buffer::scratch, 0, 16), reduce(0, Buffer::scratch, Buffer::scratch, 16, 16),
                                   send(3, Buffer::scratch, 24, 8), last});
  EXPECT_EQ(steps(2, 1), expected);
  EXPECT_TRUE(replayed().violations.empty());
}

TEST_F(HalvingDoubling, RoundsAreOneMessageOnEachChannel) {
  // 1 B to blocks of 5 kB in up to 3 channels, tails and channels without bytes included: a rank sends log2 P messages
  // (Thakur et al. 2005) on each channel that has bytes.
  for (const auto kind : {Kind::all_gather, Kind::reduce_scatter}) {
    for (std::uint32_t channels = 2; channels <= 3; ++channels) {
      whole(kind, 16, std::int64_t{16} * 5000).tuning.channels = channels;
      EXPECT_EQ(match_sends_with_receives(), std::vector<std::uint32_t>(16, 4));  // channel 0's
      for (const std::int64_t size : {1, 100, 16 * 40 - 1, 16 * 48 - 17, 16 * 5000 - 4999}) {
        whole(kind, 16, size).tuning.channels = channels;
        EXPECT_TRUE(replayed().violations.empty()) << size << " B in " << channels << " channels";
      }
    }
  }
}

TEST_F(HalvingDoubling, Volumes) {
  // 2 S (P-1)/P of each rank.
  for (const std::uint32_t ranks : {2U, 4U, 8U, 16U, 32U}) {
    const std::int64_t size = std::int64_t{ranks} * 16 * 1000;
    call(Kind::all_reduce, ranks, size);
    EXPECT_EQ(sent(), std::vector<std::int64_t>(ranks, 2 * size * (ranks - 1) / ranks));
    call(Kind::reduce_scatter, ranks, size);
    EXPECT_EQ(sent(), std::vector<std::int64_t>(ranks, size * (ranks - 1) / ranks));
    call(Kind::all_gather, ranks, size);
    EXPECT_EQ(sent(), std::vector<std::int64_t>(ranks, size * (ranks - 1) / ranks));
  }
  // For any size, not more bytes in all than needed; for other P, each rank that sits out costs 2 S instead.
  for (const std::int64_t size : {std::int64_t{1}, std::int64_t{1000}, std::int64_t{12'000'007}}) {
    for (const std::uint32_t ranks : {2U, 8U, 16U}) {
      call(Kind::all_reduce, ranks, size);
      EXPECT_EQ(replayed().total_sent(), min_bytes_sent(current()));
      call(Kind::reduce_scatter, ranks, size);
      EXPECT_EQ(replayed().total_sent(), min_bytes_sent(current()));
    }
    for (const std::uint32_t ranks : {3U, 6U, 15U}) {
      call(Kind::all_reduce, ranks, size);
      EXPECT_EQ(replayed().total_sent(), min_bytes_sent(current()));
    }
  }
  // S = 4 * 160: in pairs, the even one sends S, the odd one 2 S 3/4 and the result.
  constexpr std::int64_t size = 640;
  call(Kind::all_reduce, 6, size);
  EXPECT_EQ(sent(), (std::vector<std::int64_t>{size, 2 * size * 3 / 4 + size, size, 2 * size * 3 / 4 + size,
                                               2 * size * 3 / 4, 2 * size * 3 / 4}));
}

TEST_F(HalvingDoubling, CreditsAreNeverTooFewToEnd) {
  for (const auto kind : {Kind::all_reduce, Kind::all_gather, Kind::reduce_scatter})
    for (const std::uint32_t ranks : {4U, 6U, 13U}) expect_enough_credits(kind, ranks);
}

TEST_F(HalvingDoubling, ManyRanks) {
  whole(Kind::all_reduce, 65'536, 1 << 20);
  EXPECT_EQ(match_sends_with_receives(), std::vector<std::uint32_t>(65'536, 32));
  whole(Kind::all_reduce, 40'000, std::int64_t{1} << 40);
  const std::vector<std::uint32_t> messages = match_sends_with_receives();
  EXPECT_EQ(messages[0], 1u);
  EXPECT_EQ(messages[1], 30u + 1);
  EXPECT_EQ(messages[39'999], 30u);
  whole(Kind::reduce_scatter, 65'536, std::int64_t{1} << 40);
  EXPECT_EQ(match_sends_with_receives(), std::vector<std::uint32_t>(65'536, 16));
}

TEST_F(HalvingDoubling, MoreBytesThanFitIn32Bits) {
  constexpr std::int64_t size = (std::int64_t{1} << 50) + 16 * 4096;
  call(Kind::all_reduce, 4096, size).tuning.chunk = Bytes(std::int64_t{1} << 44);
  std::int64_t bytes = 0;
  for (const Step& step : steps(4095)) {
    if (sends(step.primitive)) bytes += step.bytes.count();
    ASSERT_LE(step.input_offset.count() + step.bytes.count(), size);
  }
  EXPECT_EQ(bytes, size / 4096 * 4095 * 2);
}

TEST_F(HalvingDoubling, OneRankSendsNothing) {
  call(Kind::all_reduce, 1, 1000);
  EXPECT_TRUE(steps(0).empty());
  for (const auto kind : {Kind::all_gather, Kind::reduce_scatter}) {
    whole(kind, 1, 1000);
    EXPECT_EQ(steps(0), (std::vector<Step>{copy(Buffer::input, 0, Buffer::output, 0, 1000)}));
    whole(kind, 1, 0);
    EXPECT_TRUE(steps(0).empty());
  }
}

TEST_F(HalvingDoubling, KindsItHas) {
  for (const auto kind : {Kind::broadcast, Kind::reduce, Kind::all_to_all}) {
    EXPECT_FALSE(algorithm().supports(kind));
    call(kind, 4, 100);
    EXPECT_THROW(steps(0), InternalError);
  }
  for (const auto kind : {Kind::all_reduce, Kind::all_gather, Kind::reduce_scatter}) {
    EXPECT_TRUE(algorithm().supports(kind));
    call(kind, 4, 100);
    EXPECT_THROW(steps(4), InternalError);
    EXPECT_THROW(steps(0, 1), InternalError);
  }
}

}  // namespace
}  // namespace weft::halving_doubling_test
