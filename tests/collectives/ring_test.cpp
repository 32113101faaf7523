// SPDX-License-Identifier: GPL-2.0-only
// The ring's steps against NCCL's published order and sizes.
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "tests/collectives/steps.hpp"

namespace weft::ring_test {
namespace {

using P = Primitive;
constexpr std::int64_t step_bytes = (4 << 20) / 8;   // NCCL_BUFFSIZE / NCCL_STEPS
constexpr std::int64_t ring_chunk = 4 * step_bytes;  // ALLREDUCE_CHUNKSTEPS
constexpr std::int64_t ring_slice = 2 * step_bytes;  // ALLREDUCE_SLICESTEPS
constexpr std::int64_t min_slice = ring_slice / 32;  // prims_simple.h: sliceSize / 32

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
std::int64_t align_up(std::int64_t a) { return divide_up(a, 16) * 16; }

class Ring : public testing_steps::AlgorithmTest {
 protected:
  Ring() : AlgorithmTest("ring") {}
  std::uint32_t credits() const { return algorithm().credits(current()); }
  bool supports(CollectiveKind kind) const { return algorithm().supports(kind); }
};

/// A step between ring neighbours of rank `index` of `n`, the same offset in both buffers.
Step step_of(P primitive, std::uint32_t index, std::uint32_t n, std::int64_t input, std::int64_t output,
             std::int64_t bytes, std::int64_t slice) {
  Step step;
  step.primitive = primitive;
  step.send_peer = (index + 1) % n;
  step.receive_peer = (index + n - 1) % n;
  step.input_offset = Bytes(input);
  step.output_offset = Bytes(output);
  step.bytes = Bytes(bytes);
  step.slice = Bytes(slice);
  return step;
}

TEST_F(Ring, AllReduceOfFourInTheOrderOfNccl) {
  // all_reduce.h, ring index i: send i-1; recvReduceSend i-2, i-3; recvReduceCopySend i; recvCopySend i-1, i-2; recv
  // i+1.
  struct Move {
    P primitive;
    std::uint32_t chunk;
  };
  const std::vector<std::vector<Move>> published = {
      {{P::send, 3},
       {P::recv_reduce_send, 2},
       {P::recv_reduce_send, 1},
       {P::recv_reduce_copy_send, 0},
       {P::recv_copy_send, 3},
       {P::recv_copy_send, 2},
       {P::recv, 1}},
      {{P::send, 0},
       {P::recv_reduce_send, 3},
       {P::recv_reduce_send, 2},
       {P::recv_reduce_copy_send, 1},
       {P::recv_copy_send, 0},
       {P::recv_copy_send, 3},
       {P::recv, 2}},
      {{P::send, 1},
       {P::recv_reduce_send, 0},
       {P::recv_reduce_send, 3},
       {P::recv_reduce_copy_send, 2},
       {P::recv_copy_send, 1},
       {P::recv_copy_send, 0},
       {P::recv, 3}},
      {{P::send, 2},
       {P::recv_reduce_send, 1},
       {P::recv_reduce_send, 0},
       {P::recv_reduce_copy_send, 3},
       {P::recv_copy_send, 2},
       {P::recv_copy_send, 1},
       {P::recv, 0}},
  };
  constexpr std::uint32_t n = 4;
  constexpr std::int64_t tail = 1'000'001;
  call(CollectiveKind::all_reduce, n, n * ring_chunk + tail);
  const std::int64_t last_chunk = align_up(divide_up(tail, n));  // all ranks share what remains
  for (std::uint32_t index = 0; index < n; ++index) {
    std::vector<Step> expected;
    for (const Move& move : published[index]) {
      const std::int64_t offset = move.chunk * ring_chunk;
      expected.push_back(step_of(move.primitive, index, n, offset, offset, ring_chunk, ring_slice));
    }
    for (const Move& move : published[index]) {
      const std::int64_t in_tail = move.chunk * last_chunk;
      const std::int64_t bytes = std::min(last_chunk, tail - in_tail);
      const std::int64_t offset = n * ring_chunk + in_tail;
      expected.push_back(step_of(move.primitive, index, n, offset, offset, bytes, align_up(divide_up(bytes, 2))));
    }
    EXPECT_EQ(steps(index), expected) << "rank " << index;
  }
}

TEST_F(Ring, AllGatherOfFourInTheOrderOfNccl) {
  // all_gather.h: (copy and) send the own block; recvCopySend i-1, i-2; recv i+1. The last block is shorter.
  constexpr std::uint32_t n = 4;
  constexpr std::int64_t size = 399'997;
  constexpr std::int64_t block = 100'000;
  call(CollectiveKind::all_gather, n, size);
  for (std::uint32_t index = 0; index < n; ++index) {
    std::vector<Step> expected;
    const auto add = [&](P primitive, std::uint32_t b) {
      const std::int64_t bytes = std::min(block, size - b * block);
      expected.push_back(step_of(primitive, index, n, 0, b * block, bytes, align_up(divide_up(bytes, 2))));
    };
    add(P::copy, index);
    add(P::send, index);
    add(P::recv_copy_send, (index + 3) % n);
    add(P::recv_copy_send, (index + 2) % n);
    add(P::recv, (index + 1) % n);
    EXPECT_EQ(steps(index), expected) << "rank " << index;
  }
}

TEST_F(Ring, ReduceScatterOfFourInTheOrderOfNccl) {
  // reduce_scatter.h: send block i-1; recvReduceSend i-2, i-3; recvReduceCopy the own one. Two loops per block.
  constexpr std::uint32_t n = 4;
  constexpr std::int64_t tail = 160;
  constexpr std::int64_t block = ring_chunk + tail;
  call(CollectiveKind::reduce_scatter, n, n * block);
  for (std::uint32_t index = 0; index < n; ++index) {
    std::vector<Step> expected;
    for (const std::int64_t begin : {std::int64_t{0}, ring_chunk}) {
      const std::int64_t bytes = begin == 0 ? ring_chunk : tail;
      const std::int64_t slice = begin == 0 ? ring_slice : tail;  // below min_slice: one slice
      const auto add = [&](P primitive, std::uint32_t b) {
        expected.push_back(step_of(primitive, index, n, b * block + begin, begin, bytes, slice));
      };
      add(P::send, (index + 3) % n);
      add(P::recv_reduce_send, (index + 2) % n);
      add(P::recv_reduce_send, (index + 1) % n);
      add(P::recv_reduce_copy, index);
    }
    EXPECT_EQ(steps(index), expected) << "rank " << index;
  }
}

TEST_F(Ring, BroadcastIsAChainFromTheRoot) {
  // broadcast.h: the root sends, the rank before it receives, the others pass on; BROADCAST_CHUNKSTEPS 1.
  constexpr std::uint32_t n = 4;
  constexpr std::int64_t tail = 1234;
  for (std::uint32_t root = 0; root < n; ++root) {
    call(CollectiveKind::broadcast, n, 2 * step_bytes + tail).root = root;
    for (std::uint32_t hop = 0; hop < n; ++hop) {
      const std::uint32_t index = (root + hop) % n;
      const P primitive = hop == 0 ? P::send : hop == n - 1 ? P::recv : P::recv_copy_send;
      const std::vector<Step> expected = {
          step_of(primitive, index, n, 0, 0, step_bytes, step_bytes),
          step_of(primitive, index, n, step_bytes, step_bytes, step_bytes, step_bytes),
          step_of(primitive, index, n, 2 * step_bytes, 2 * step_bytes, tail,
                  std::min(tail, std::max(align_up(tail), step_bytes / 32))),
      };
      EXPECT_EQ(steps(index), expected) << "root " << root << ", rank " << index;
    }
  }
}

TEST_F(Ring, TwoRanks) {
  call(CollectiveKind::all_reduce, 2, 64);
  EXPECT_EQ(steps(0), (std::vector<Step>{step_of(P::send, 0, 2, 32, 32, 32, 32),
                                         step_of(P::recv_reduce_copy_send, 0, 2, 0, 0, 32, 32),
                                         step_of(P::recv, 0, 2, 32, 32, 32, 32)}));
  call(CollectiveKind::all_gather, 2, 64);
  EXPECT_EQ(steps(1), (std::vector<Step>{step_of(P::copy, 1, 2, 0, 32, 32, 32), step_of(P::send, 1, 2, 0, 32, 32, 32),
                                         step_of(P::recv, 1, 2, 0, 0, 32, 32)}));
  call(CollectiveKind::reduce_scatter, 2, 64);
  EXPECT_EQ(steps(0), (std::vector<Step>{step_of(P::send, 0, 2, 32, 0, 32, 32),
                                         step_of(P::recv_reduce_copy, 0, 2, 0, 0, 32, 32)}));
}

TEST_F(Ring, OneRankSendsNothing) {
  for (const std::uint32_t channels : {1u, 3u}) {
    for (const auto kind : {CollectiveKind::all_reduce, CollectiveKind::broadcast}) {
      call(kind, 1, 1000).tuning.channels = channels;
      for (std::uint32_t channel = 0; channel < channels; ++channel) EXPECT_TRUE(steps(0, channel).empty());
    }
    for (const auto kind : {CollectiveKind::all_gather, CollectiveKind::reduce_scatter}) {
      call(kind, 1, 1000).tuning.channels = channels;
      EXPECT_EQ(steps(0, 0), (std::vector<Step>{step_of(P::copy, 0, 1, 0, 0, 1000, 1000)}));
      for (std::uint32_t channel = 1; channel < channels; ++channel) EXPECT_TRUE(steps(0, channel).empty());
      call(kind, 1, 0);
      EXPECT_TRUE(steps(0).empty());
    }
  }
}

TEST_F(Ring, EmptyChunksAreNoSteps) {
  // 17 bytes over 4 ranks: chunks of align_up(ceil(17/4)) = 16 bytes, so chunk 0 has 16, chunk 1 has 1, the others
  // none.
  call(CollectiveKind::all_reduce, 4, 17);
  EXPECT_EQ(steps(0), (std::vector<Step>{step_of(P::recv_reduce_send, 0, 4, 16, 16, 1, 1),
                                         step_of(P::recv_reduce_copy_send, 0, 4, 0, 0, 16, 16),
                                         step_of(P::recv, 0, 4, 16, 16, 1, 1)}));
  for (const auto kind : {CollectiveKind::all_reduce, CollectiveKind::all_gather, CollectiveKind::reduce_scatter,
                          CollectiveKind::broadcast}) {
    call(kind, 4, 0);
    for (std::uint32_t index = 0; index < 4; ++index) EXPECT_TRUE(steps(index).empty());
  }
}

TEST_F(Ring, SlicesOfShortChunks) {
  // prims_simple.h: max(ceil(bytes/2) rounded up to 16, full slice / 32).
  constexpr std::uint32_t n = 4;
  for (const std::int64_t chunk : {std::int64_t{16}, std::int64_t{40'000}, min_slice, min_slice + 16,
                                   std::int64_t{100'000}, ring_chunk - 16, ring_chunk}) {
    call(CollectiveKind::all_reduce, n, n * chunk);
    const std::int64_t slice = std::min(chunk, std::max(align_up(divide_up(chunk, 2)), min_slice));
    for (const Step& step : steps(2)) {
      EXPECT_EQ(step.bytes.count(), chunk);
      EXPECT_EQ(step.slice.count(), slice);
    }
  }
}

TEST_F(Ring, WithoutPipeliningEachStepIsOneMessage) {
  constexpr std::uint32_t n = 4;
  constexpr std::int64_t size = 4'096'000;
  static_assert(size % (n * 16) == 0);
  CollectiveCall& whole = call(CollectiveKind::all_reduce, n, size);
  whole.tuning.chunk = Bytes(std::int64_t{1} << 30);
  whole.tuning.slices = 1;
  for (std::uint32_t index = 0; index < n; ++index) {
    const std::vector<Step> all = steps(index);
    ASSERT_EQ(all.size(), 2 * n - 1);
    for (const Step& step : all) {
      EXPECT_EQ(step.bytes.count(), size / n);
      EXPECT_EQ(step.slice.count(), size / n);
    }
  }
  EXPECT_EQ(replayed().messages, n * 2 * (n - 1));
}

TEST_F(Ring, ChannelsShareTheBytes) {
  constexpr std::uint32_t channels = 3;
  constexpr std::int64_t size = 1000;
  const std::int64_t part = align_up(divide_up(size, channels));
  CollectiveCall& shared = call(CollectiveKind::broadcast, 3, size);
  shared.tuning.channels = channels;
  for (std::uint32_t channel = 0; channel < channels; ++channel) {
    const std::int64_t begin = channel * part;
    const std::int64_t bytes = std::min(part, size - begin);
    EXPECT_EQ(steps(0, channel), (std::vector<Step>{step_of(P::send, 0, 3, begin, begin, bytes, bytes)}));
  }
  // Fewer bytes than channels: the later ones have none.
  call(CollectiveKind::broadcast, 3, 17).tuning.channels = channels;
  EXPECT_EQ(steps(0, 0).size(), 1u);
  EXPECT_EQ(steps(0, 1), (std::vector<Step>{step_of(P::send, 0, 3, 16, 16, 1, 1)}));
  EXPECT_TRUE(steps(0, 2).empty());
}

TEST_F(Ring, CreditsOfNccl) {
  constexpr std::uint32_t nccl_steps = 8;
  call(CollectiveKind::all_reduce, 4, 1000);
  EXPECT_EQ(credits(), nccl_steps / 2);  // slices of 2 steps
  call(CollectiveKind::broadcast, 4, 1000);
  EXPECT_EQ(credits(), nccl_steps / 1);
  call(CollectiveKind::all_gather, 4, 1000).tuning.slices = 1;
  EXPECT_EQ(credits(), nccl_steps / 4);
  call(CollectiveKind::reduce_scatter, 4, 1000).tuning.credits = 7;
  EXPECT_EQ(credits(), 7u);
}

TEST_F(Ring, CreditsAreNeverTooFewToEnd) {
  for (const auto kind : {CollectiveKind::all_reduce, CollectiveKind::all_gather, CollectiveKind::reduce_scatter}) {
    for (const std::uint32_t slices : {1u, 2u, 4u}) {
      CollectiveCall& small = call(kind, 4, 4096);
      small.tuning.chunk = Bytes(256);
      small.tuning.slices = slices;
      small.tuning.credits = 1;
      EXPECT_EQ(credits(), slices + 1);
      EXPECT_TRUE(replayed().violations.empty());
      // One less, and all ranks wait for each other.
      EXPECT_FALSE(replay(testing_steps::Starved(algorithm(), slices), current()).violations.empty());
    }
  }
  call(CollectiveKind::broadcast, 4, 1 << 22).tuning.credits = 1;
  EXPECT_EQ(credits(), 1u);
  EXPECT_TRUE(replayed().violations.empty());
}

TEST_F(Ring, Volumes) {
  for (const std::uint32_t n : {2u, 3u, 8u, 17u}) {
    for (const std::int64_t size : {std::int64_t{1}, std::int64_t{1000}, n * ring_chunk + 4711}) {
      const std::int64_t block = divide_up(size, n);
      const auto block_bytes = [&](std::uint32_t b) {
        return std::clamp<std::int64_t>(size - b % n * block, 0, block);
      };
      for (const auto kind : {CollectiveKind::all_reduce, CollectiveKind::all_gather, CollectiveKind::reduce_scatter,
                              CollectiveKind::broadcast}) {
        call(kind, n, size).root = n - 1;
        const CollectiveReplay result = replayed();
        EXPECT_EQ(result.total_sent(), min_bytes_sent(current())) << to_text(kind) << " " << n << " " << size;
        for (std::uint32_t index = 0; index < n; ++index) {
          const std::int64_t sent = result.sent[index].count();
          // Blocks a rank does not send on: the one that ends at it.
          if (kind == CollectiveKind::all_gather) {
            EXPECT_EQ(sent, size - block_bytes(index + 1));
          }
          if (kind == CollectiveKind::reduce_scatter) {
            EXPECT_EQ(sent, size - block_bytes(index));
          }
          if (kind == CollectiveKind::broadcast) {
            EXPECT_EQ(sent, index == n - 2 ? 0 : size);
          }
        }
      }
    }
  }
  // all_reduce, n divides S: every rank sends 2(n-1)/n S.
  constexpr std::uint32_t n = 8;
  constexpr std::int64_t size = n * 16 * 1000;
  call(CollectiveKind::all_reduce, n, size);
  for (const Bytes sent : replayed().sent) EXPECT_EQ(sent.count(), 2 * (n - 1) * size / n);
}

TEST_F(Ring, MoreBytesThanFitIn32Bits) {
  constexpr std::uint32_t n = 4;
  for (const std::int64_t size : {(std::int64_t{1} << 36) + 4096, (std::int64_t{1} << 50) + 4096}) {
    CollectiveCall& large = call(CollectiveKind::all_reduce, n, size);
    if (size > std::int64_t{1} << 40) large.tuning.chunk = Bytes(std::int64_t{1} << 44);
    std::int64_t sent = 0;
    std::int64_t stored = 0;
    const auto stream = algorithm().steps(current(), 3, 0);
    for (Step step; stream->next(step);) {
      if (sends(step.primitive)) sent += step.bytes.count();
      if (stores(step.primitive)) stored += step.bytes.count();
      ASSERT_GT(step.bytes.count(), 0);
      ASSERT_LE(step.output_offset.count() + step.bytes.count(), size);
    }
    EXPECT_EQ(stored, size);
    EXPECT_EQ(sent, size / n * 2 * (n - 1));
  }
}

TEST_F(Ring, KindsItHas) {
  EXPECT_TRUE(supports(CollectiveKind::all_reduce));
  EXPECT_TRUE(supports(CollectiveKind::all_gather));
  EXPECT_TRUE(supports(CollectiveKind::reduce_scatter));
  EXPECT_TRUE(supports(CollectiveKind::broadcast));
  EXPECT_TRUE(supports(CollectiveKind::reduce));
  EXPECT_TRUE(supports(CollectiveKind::send_recv));
  EXPECT_FALSE(supports(CollectiveKind::all_to_all));
  call(CollectiveKind::all_to_all, 4, 100);
  EXPECT_THROW(steps(0), InternalError);
  call(CollectiveKind::all_reduce, 4, 100);
  EXPECT_THROW(steps(4), InternalError);
  EXPECT_THROW(steps(0, 1), InternalError);
  call(CollectiveKind::broadcast, 4, 100).root = 4;
  EXPECT_THROW(steps(0), InternalError);
}

}  // namespace
}  // namespace weft::ring_test
