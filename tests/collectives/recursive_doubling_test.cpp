// SPDX-License-Identifier: GPL-2.0-only
// Recursive doubling: partners, sizes and order of each rank's steps, and volumes, by formula.
#include <algorithm>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "support/basics/error.hpp"
#include "tests/collectives/steps.hpp"

namespace weft::recursive_doubling_test {
namespace {

using testing_steps::copy;
using testing_steps::reduce;
using testing_steps::send;
using testing_steps::take;
using Kind = CollectiveKind;

class RecursiveDoubling : public testing_steps::AlgorithmTest {
 protected:
  RecursiveDoubling() : AlgorithmTest("recursive_doubling") {}
};

TEST_F(RecursiveDoubling, AllReduceOfEight) {
  // Round k: everything to and from rank XOR 2^k. The first sum is of inputs, the last one is the result.
  constexpr std::int64_t size = 100'001;
  whole(Kind::all_reduce, 8, size);
  for (std::uint32_t r = 0; r < 8; ++r) {
    EXPECT_EQ(steps(r), (std::vector<Step>{
                            send(r ^ 1, Buffer::input, 0, size),
                            reduce(r ^ 1, Buffer::input, Buffer::scratch, 0, size),
                            send(r ^ 2, Buffer::scratch, 0, size),
                            reduce(r ^ 2, Buffer::scratch, Buffer::scratch, 0, size),
                            send(r ^ 4, Buffer::scratch, 0, size),
                            reduce(r ^ 4, Buffer::scratch, Buffer::output, 0, size),
                        }))
        << "rank " << r;
  }
}

TEST_F(RecursiveDoubling, AllReduceOfSix) {
  // Of 0,1 and 2,3 the even ones sit out; 1, 3, 4, 5 take positions 0 to 3 of the rounds.
  constexpr std::int64_t size = 1000;
  const std::vector<std::vector<std::uint32_t>> partners = {{}, {3, 4}, {}, {1, 5}, {5, 1}, {4, 3}};
  whole(Kind::all_reduce, 6, size);
  for (const std::uint32_t even : {0U, 2U})
    EXPECT_EQ(steps(even),
              (std::vector<Step>{send(even + 1, Buffer::input, 0, size), take(even + 1, Buffer::output, 0, size)}));
  for (const std::uint32_t r : {1U, 3U, 4U, 5U}) {
    const bool paired = r < 4;
    const Buffer before = paired ? Buffer::scratch : Buffer::input;
    std::vector<Step> expected;
    if (paired) expected.push_back(reduce(r - 1, Buffer::input, Buffer::scratch, 0, size));
    expected.push_back(send(partners[r][0], before, 0, size));
    expected.push_back(reduce(partners[r][0], before, Buffer::scratch, 0, size));
    expected.push_back(send(partners[r][1], Buffer::scratch, 0, size));
    expected.push_back(reduce(partners[r][1], Buffer::scratch, Buffer::output, 0, size));
    if (paired) expected.push_back(send(r - 1, Buffer::output, 0, size));
    EXPECT_EQ(steps(r), expected) << "rank " << r;
  }
}

TEST_F(RecursiveDoubling, AllGatherOfEight) {
  // Before round k a rank has the 2^k blocks whose numbers agree with its own but for the k low bits. 799'997 bytes:
  // the last block is 3 bytes shorter.
  constexpr std::int64_t block = 100'000;
  constexpr std::int64_t size = 8 * block - 3;
  whole(Kind::all_gather, 8, size);
  for (std::uint32_t r = 0; r < 8; ++r) {
    const auto bytes = [&](std::int64_t first, std::int64_t blocks) {
      return std::min(size, (first + blocks) * block) - first * block;
    };
    std::vector<Step> expected = {copy(Buffer::input, 0, Buffer::output, r * block, bytes(r, 1))};
    for (std::uint32_t held = 1; held < 8; held *= 2) {
      const std::uint32_t partner = r ^ held;
      const std::int64_t mine = r / held * held;
      const std::int64_t its = partner / held * held;
      expected.push_back(send(partner, Buffer::output, mine * block, bytes(mine, held)));
      expected.push_back(take(partner, Buffer::output, its * block, bytes(its, held)));
    }
    EXPECT_EQ(steps(r), expected) << "rank " << r;
  }
}

TEST_F(RecursiveDoubling, AllGatherOfSix) {
  // Ranks 1, 3, 4, 5 at the positions 0 to 3 have blocks 01, 23, 4, 5; after the first round 0123 and 45.
  constexpr std::int64_t b = 48;
  constexpr Buffer out = Buffer::output;
  whole(Kind::all_gather, 6, 6 * b);
  EXPECT_EQ(steps(0),
            (std::vector<Step>{copy(Buffer::input, 0, out, 0, b), send(1, out, 0, b), take(1, out, b, 5 * b)}));
  EXPECT_EQ(steps(1), (std::vector<Step>{copy(Buffer::input, 0, out, b, b), take(0, out, 0, b), send(3, out, 0, 2 * b),
                                         take(3, out, 2 * b, 2 * b), send(4, out, 0, 4 * b), take(4, out, 4 * b, 2 * b),
                                         send(0, out, b, 5 * b)}));
  EXPECT_EQ(steps(2), (std::vector<Step>{copy(Buffer::input, 0, out, 2 * b, b), send(3, out, 2 * b, b),
                                         take(3, out, 0, 2 * b), take(3, out, 3 * b, 3 * b)}));
  EXPECT_EQ(steps(3),
            (std::vector<Step>{copy(Buffer::input, 0, out, 3 * b, b), take(2, out, 2 * b, b),
                               send(1, out, 2 * b, 2 * b), take(1, out, 0, 2 * b), send(5, out, 0, 4 * b),
                               take(5, out, 4 * b, 2 * b), send(2, out, 0, 2 * b), send(2, out, 3 * b, 3 * b)}));
  EXPECT_EQ(steps(4), (std::vector<Step>{copy(Buffer::input, 0, out, 4 * b, b), send(5, out, 4 * b, b),
                                         take(5, out, 5 * b, b), send(1, out, 4 * b, 2 * b), take(1, out, 0, 4 * b)}));
}

TEST_F(RecursiveDoubling, Volumes) {
  for (const std::int64_t size : {std::int64_t{1}, std::int64_t{1000}, std::int64_t{6'000'001}}) {
    // S log2 P each; ranks in pairs send S once more, the even ones nothing else.
    for (std::uint32_t levels = 1; levels <= 5; ++levels) {
      call(Kind::all_reduce, 1U << levels, size);
      EXPECT_EQ(sent(), std::vector<std::int64_t>(1U << levels, size * levels));
    }
    call(Kind::all_reduce, 6, size);
    EXPECT_EQ(sent(), (std::vector<std::int64_t>{size, 3 * size, size, 3 * size, 2 * size, 2 * size}));
    // No rank receives a byte twice.
    for (const std::uint32_t ranks : {2U, 6U, 7U, 8U, 17U}) {
      call(Kind::all_gather, ranks, size);
      EXPECT_EQ(replayed().total_sent(), min_bytes_sent(current()));
    }
  }
  constexpr std::int64_t block = 1000;
  call(Kind::all_gather, 16, 16 * block);
  EXPECT_EQ(sent(), std::vector<std::int64_t>(16, 15 * block));
}

TEST_F(RecursiveDoubling, ChunksAndSlicesAreThoseOfTheRing) {
  // NCCL_BUFFSIZE / NCCL_STEPS * *_CHUNKSTEPS, in two slices; two chunks are in flight.
  constexpr std::int64_t chunk = (4 << 20) / 8 * 4;
  constexpr std::int64_t tail = 1234;
  call(Kind::all_reduce, 2, 4 * chunk + tail);
  const auto numbered = [&](bool sends, std::int64_t number) {
    const std::int64_t bytes = number == 4 ? tail : chunk;
    Step step = sends ? send(1, Buffer::input, number * chunk, bytes)
                      : reduce(1, Buffer::input, Buffer::output, number * chunk, bytes);
    // prims_simple.h: max(half rounded up to 16, full slice / 32), but no more than there is.
    step.slice = Bytes(number == 4 ? std::min(tail, std::max<std::int64_t>(624, chunk / 2 / 32)) : chunk / 2);
    return step;
  };
  EXPECT_EQ(algorithm().credits(current()), 4u);
  EXPECT_EQ(steps(0), (std::vector<Step>{numbered(true, 0), numbered(true, 1), numbered(false, 0), numbered(true, 2),
                                         numbered(false, 1), numbered(true, 3), numbered(false, 2), numbered(true, 4),
                                         numbered(false, 3), numbered(false, 4)}));
}

TEST_F(RecursiveDoubling, CreditsAreNeverTooFewToEnd) {
  for (const auto kind : {Kind::all_reduce, Kind::all_gather})
    for (const std::uint32_t ranks : {4U, 6U}) expect_enough_credits(kind, ranks);
}

TEST_F(RecursiveDoubling, ManyRanks) {
  whole(Kind::all_reduce, 65'536, 1 << 20);
  EXPECT_EQ(match_sends_with_receives(), std::vector<std::uint32_t>(65'536, 16));
  whole(Kind::all_reduce, 65'535, 1 << 20);
  const std::vector<std::uint32_t> messages = match_sends_with_receives();
  EXPECT_EQ(messages[0], 1u);
  EXPECT_EQ(messages[1], 15u + 1);
  EXPECT_EQ(messages[65'534], 15u);
  whole(Kind::all_gather, 65'536, std::int64_t{1} << 40);
  EXPECT_EQ(match_sends_with_receives(), std::vector<std::uint32_t>(65'536, 16));
}

TEST_F(RecursiveDoubling, OneRankSendsNothing) {
  call(Kind::all_reduce, 1, 1000);
  EXPECT_TRUE(steps(0).empty());
  whole(Kind::all_gather, 1, 1000);
  EXPECT_EQ(steps(0), (std::vector<Step>{copy(Buffer::input, 0, Buffer::output, 0, 1000)}));
}

TEST_F(RecursiveDoubling, NoBytesAreNoSteps) {
  for (const auto kind : {Kind::all_reduce, Kind::all_gather}) {
    call(kind, 6, 0);
    for (std::uint32_t r = 0; r < 6; ++r) EXPECT_TRUE(steps(r).empty());
  }
}

TEST_F(RecursiveDoubling, KindsItHas) {
  for (const auto kind : {Kind::reduce_scatter, Kind::broadcast, Kind::reduce, Kind::all_to_all}) {
    EXPECT_FALSE(algorithm().supports(kind));
    call(kind, 4, 100);
    EXPECT_THROW(steps(0), InternalError);
  }
  for (const auto kind : {Kind::all_reduce, Kind::all_gather}) {
    EXPECT_TRUE(algorithm().supports(kind));
    call(kind, 4, 100);
    EXPECT_THROW(steps(4), InternalError);
    EXPECT_THROW(steps(0, 1), InternalError);
  }
}

}  // namespace
}  // namespace weft::recursive_doubling_test
