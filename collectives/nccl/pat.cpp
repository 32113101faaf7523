// SPDX-License-Identifier: GPL-2.0-only
// PAT (parallel aggregated trees), NCCL's all-gather and reduce-scatter in a logarithmic number of rounds.
//
// S. Jeaugey, "PAT: a new algorithm for all-gather and reduce-scatter operations at scale", 2025, arXiv:2506.20252;
// NCCL src/include/collectives.h (PatAGAlgorithm, PatRSAlgorithm). all_gather works from the largest distance to the
// smallest: in the round of distance d = 2^k each rank sends all its blocks to the rank d before it, so that few bytes
// go far and many go near. reduce_scatter is the mirror image. The blocks of a round go aggregated into messages of at
// most a chunk: 512 KiB, halved as long as it exceeds 64 KiB and S < channels x chunk x 32 (16 for reduce_scatter), as
// src/enqueue.cc has it. NCCL interleaves the rounds of several trees when there are many messages; here rounds follow
// each other.
#include <algorithm>
#include <bit>

#include "collectives/steps/exchange.hpp"
#include "collectives/steps/nccl_sizes.hpp"
#include "schedule/collective/step_generator.hpp"

namespace weft {
namespace {

MessageSizes pat_sizes(const CollectiveCall& call) {
  MessageSizes sizes = MessageSizes::nccl_step(call);
  if (call.tuning.chunk.count() != 0) return sizes;
  sizes.chunk = pat_chunk(call.kind, call.size.count(), call.tuning.channels, sizes.chunk);
  return sizes;
}

/// The blocks of one round: those at the odd multiples of a distance. Packed into messages of at most a chunk.
struct PatBlocks {
  CollectiveCall call;
  ChannelShare share;
  std::uint32_t ranks = 0;
  Piece of(std::uint32_t rank) const {
    return share.of(block_begin(call, rank % ranks), block_bytes(call, rank % ranks));
  }
};

/// Consecutive blocks of a round that share a message, or part of one block.
struct PatMessage {
  std::uint32_t first = 0;  ///< number of the block within the round
  std::uint32_t count = 0;
  std::int64_t skipped = 0;  ///< bytes of the first block that went before
  std::int64_t bytes = 0;
};

/// The message that follows; `base` + number * step is the rank whose block it is.
PatMessage next_message(const PatBlocks& blocks, std::uint32_t base, std::uint32_t step, std::uint32_t total,
                        PatMessage last, std::int64_t chunk) {
  PatMessage message;
  message.first = last.first + last.count;
  const auto bytes_of = [&](std::uint32_t number) { return blocks.of(base + number * step).bytes; };
  if (last.count == 1 && last.skipped + last.bytes < bytes_of(last.first)) {
    message.first = last.first;
    message.skipped = last.skipped + last.bytes;
  }
  while (message.first + message.count < total) {
    const std::int64_t more = bytes_of(message.first + message.count) - (message.count == 0 ? message.skipped : 0);
    if (message.count > 0 && message.bytes + more > chunk) break;
    message.bytes += std::min(more, chunk);
    ++message.count;
    if (more > chunk) break;
  }
  return message;
}

/// Scratch after all blocks: outgoing and incoming messages, packed.
std::int64_t packed_place(const PatBlocks& blocks, std::int64_t chunk, bool incoming) {
  return blocks.call.size.count() + (incoming ? chunk : 0);
}

/// Packs blocks into a message at `place` of scratch, or unpacks them from there.
StepGenerator move_blocks(PatBlocks blocks, std::uint32_t base, std::uint32_t step, PatMessage message, Buffer buffer,
                          std::int64_t place, bool pack) {
  std::int64_t at = place;
  for (std::uint32_t i = 0; i < message.count; ++i) {
    Piece block = blocks.of(base + (message.first + i) * step);
    const std::int64_t skip = i == 0 ? message.skipped : 0;
    const std::int64_t bytes = std::min(block.bytes - skip, place + message.bytes - at);
    Step copy = pack ? local_copy(buffer, block.offset + skip, Buffer::scratch, at, bytes)
                     : local_copy(Buffer::scratch, at, buffer, block.offset + skip, bytes);
    if (bytes > 0) co_yield copy;
    at += bytes;
  }
}

StepGenerator all_gather(PatBlocks blocks, std::uint32_t index, MessageSizes sizes) {
  const std::uint32_t n = blocks.ranks;
  const Piece own = blocks.of(index);
  Step copy =
      local_copy(Buffer::input, own.offset - block_begin(blocks.call, index), Buffer::output, own.offset, own.bytes);
  if (own.bytes > 0) co_yield copy;
  const std::int64_t out_place = packed_place(blocks, sizes.chunk, false);
  const std::int64_t in_place = packed_place(blocks, sizes.chunk, true);
  for (std::uint32_t d = std::bit_ceil(n) / 2; d > 0; d /= 2) {
    // Own blocks: at the distances 0, 2d, 4d, ... They are the peer's at d, 3d, 5d, ...
    const std::uint32_t total = (n - d + 2 * d - 1) / (2 * d);
    PatMessage out;
    PatMessage in;
    for (;;) {
      out = next_message(blocks, index, 2 * d, total, out, sizes.chunk);
      in = next_message(blocks, index + d, 2 * d, total, in, sizes.chunk);
      if (out.count == 0 && in.count == 0) break;
      StepGenerator packing = move_blocks(blocks, index, 2 * d, out, Buffer::output, out_place, true);
      for (Step step; packing.next(step);) co_yield step;
      Exchange exchange(sizes);
      exchange.send((index + n - d) % n, Buffer::scratch, one_piece({out_place, out.bytes}));
      exchange.receive((index + d) % n, Buffer::scratch, one_piece({in_place, in.bytes}));
      for (Step step; exchange.next(step);) co_yield step;
      StepGenerator unpacking = move_blocks(blocks, index + d, 2 * d, in, Buffer::output, in_place, false);
      for (Step step; unpacking.next(step);) co_yield step;
    }
  }
}

StepGenerator reduce_scatter(PatBlocks blocks, std::uint32_t index, MessageSizes sizes) {
  const std::uint32_t n = blocks.ranks;
  const std::int64_t out_place = packed_place(blocks, sizes.chunk, false);
  const std::int64_t in_place = packed_place(blocks, sizes.chunk, true);
  const Piece own = blocks.of(index);
  for (std::uint32_t d = 1; d < n; d *= 2) {
    const std::uint32_t total = (n - d + 2 * d - 1) / (2 * d);
    // Partial sums of the blocks at the distances d, 3d, ... go to the rank at d, for which they are at 0, 2d, ...
    // Those at 0, 2d, ... have received data in the round before, except the last one if no rank is beyond it.
    const auto summed = [n](std::uint32_t distance, std::uint32_t limit) {
      for (std::uint32_t round = 1; round < limit; round *= 2)
        if (distance % (2 * round) == 0 && distance + round < n) return true;
      return false;
    };
    PatMessage out;
    PatMessage in;
    for (;;) {
      out = next_message(blocks, index + d, 2 * d, total, out, sizes.chunk);
      in = next_message(blocks, index, 2 * d, total, in, sizes.chunk);
      if (out.count == 0 && in.count == 0) break;
      std::int64_t to = out_place;
      for (std::uint32_t i = 0; i < out.count; ++i) {
        const std::uint32_t distance = d + (out.first + i) * 2 * d;
        const Piece block = blocks.of(index + distance);
        const std::int64_t skip = i == 0 ? out.skipped : 0;
        const std::int64_t bytes = std::min(block.bytes - skip, out_place + out.bytes - to);
        Step copy = local_copy(summed(distance, d) ? Buffer::scratch : Buffer::input, block.offset + skip,
                               Buffer::scratch, to, bytes);
        if (bytes > 0) co_yield copy;
        to += bytes;
      }
      Exchange exchange(sizes);
      exchange.send((index + d) % n, Buffer::scratch, one_piece({out_place, out.bytes}));
      exchange.receive((index + n - d) % n, Buffer::scratch, one_piece({in_place, in.bytes}));
      for (Step step; exchange.next(step);) co_yield step;
      std::int64_t at = in_place;
      for (std::uint32_t i = 0; i < in.count; ++i) {
        const std::uint32_t distance = (in.first + i) * 2 * d;
        const Piece block = blocks.of(index + distance);
        const std::int64_t skip = i == 0 ? in.skipped : 0;
        const std::int64_t bytes = std::min(block.bytes - skip, in_place + in.bytes - at);
        Step add = local_copy(Buffer::scratch, at, Buffer::scratch, block.offset + skip, bytes);
        at += bytes;
        if (bytes == 0) continue;
        if (!summed(distance, d)) {
          Step first = local_copy(Buffer::input, block.offset + skip, Buffer::scratch, block.offset + skip, bytes);
          co_yield first;
        }
        add.primitive = Primitive::reduce;
        co_yield add;
      }
    }
  }
  Step copy =
      local_copy(Buffer::scratch, own.offset, Buffer::output, own.offset - block_begin(blocks.call, index), own.bytes);
  if (own.bytes > 0) co_yield copy;
}

class Pat final : public CollectiveAlgorithm {
 public:
  bool supports(CollectiveKind kind) const override {
    return kind == CollectiveKind::all_gather || kind == CollectiveKind::reduce_scatter;
  }
  bool takes_block_tables(CollectiveKind) const override { return true; }
  std::uint32_t credits(const CollectiveCall& call) const override { return pat_sizes(call).credits; }

  std::unique_ptr<StepStream> steps(const CollectiveCall& call, std::uint32_t index,
                                    std::uint32_t lane) const override {
    expect_valid_lane(*this, call, index, lane);
    const std::uint32_t n = call.communicator->size();
    if (n == 1) return lone_stream(call, lane);
    const PatBlocks blocks{call, {call.tuning.channels, lane}, n};
    if (call.kind == CollectiveKind::all_gather) return stream_of(all_gather(blocks, index, pat_sizes(call)));
    return stream_of(reduce_scatter(blocks, index, pat_sizes(call)));
  }
};

const Registration<CollectiveAlgorithm, Pat> pat_registration("pat",
                                                              "NCCL's aggregated trees: log P rounds, far ones short");

}  // namespace
}  // namespace weft
