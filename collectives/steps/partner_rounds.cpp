// SPDX-License-Identifier: GPL-2.0-only
// Rounds into steps: folding, chunks, and the order of sends and receives.
#include "collectives/steps/partner_rounds.hpp"

#include <algorithm>
#include <bit>

#include "collectives/steps/nccl_sizes.hpp"
#include "support/basics/contract.hpp"

namespace weft {
namespace {

constexpr std::int64_t step_bytes = (std::int64_t{4} << 20) / nccl_steps;  ///< src/init.cc, DEFAULT_BUFFSIZE
constexpr std::int64_t chunk_steps = nccl_steps / 2;                       ///< src/include/collectives.h
constexpr std::uint32_t chunk_slices = 2;                                  ///< the same

class DoublingAllGather final : public RoundStream {
 public:
  DoublingAllGather(const CollectiveCall& call, std::uint32_t index, std::uint32_t channel)
      : RoundStream(call, index, BlockLayout::of_ranks(call, channel), Buffer::input) {}

 private:
  std::uint32_t rounds() const override { return fold().levels + 4 + packing_rounds(); }

  void fill(std::uint32_t number, Round& round) const override {
    const Buffer gathered = place_of(Buffer::output);
    round.source = round.target = gathered;
    if (number >= fold().levels + 4) {
      copy_part(number - fold().levels - 4, gathered, Buffer::output, round);
    } else if (number == 0) {
      round.source = Buffer::input;
      round.copy = {index(), index() + 1};
    } else if (number == 1) {
      if (paired()) {
        round.peer = pair();
        (sits_out() ? round.send : round.receive) = {index() & ~1U, index() | 1U};
      }
    } else if (number < fold().levels + 2) {
      if (!sits_out()) swap(number - 2, round);
    } else {
      // The blocks that the even rank lacks: all before its block, then all after it.
      const std::uint32_t even = index() & ~1U;
      fold_out(number == fold().levels + 2 ? BlockRange{0, even} : BlockRange{even + 1, ranks()}, gathered, round);
    }
  }

  void swap(std::uint32_t level, Round& round) const {
    const std::uint32_t partner = position() ^ (1U << level);
    round.peer = fold().rank_at(partner);
    round.send = held(position(), level);
    round.receive = held(partner, level);
  }
  BlockRange held(std::uint32_t position, std::uint32_t level) const {
    const std::uint32_t group = position >> level;
    return {fold().first_rank(group << level), fold().first_rank((group + 1) << level)};
  }
};

}  // namespace

ExchangeSizes::ExchangeSizes(const CollectiveCall& call) {
  chunk = call.tuning.chunk.count() != 0 ? call.tuning.chunk.count() : chunk_steps * step_bytes;
  slices = call.tuning.slices != 0 ? call.tuning.slices : chunk_slices;
  WEFT_EXPECT(chunk > 0, "chunk of {} bytes", chunk);
  const std::int64_t of_nccl = nccl_steps * slices / chunk_steps;
  credits = call.tuning.credits != 0 ? call.tuning.credits : static_cast<std::uint32_t>(of_nccl);
  // Both partners send before they receive: with fewer slots than a chunk has slices, they would wait for each other
  // for ever. These are enough, also while more chunks are sent ahead: if a rank waits for a slot, its partner is more
  // than `ahead` chunks behind it in receiving, so that it has something to receive, or waits for a slot itself; and
  // then the rank would be behind the partner as well. In different rounds, the rank in the earliest one goes on.
  credits = std::max(credits, slices);
  ahead = credits / slices;
}

std::int64_t ExchangeSizes::slice(std::int64_t bytes) const {
  const std::int64_t equal = align_up(divide_up(bytes, slices));
  const std::int64_t min = chunk / slices / 32;  // NCCL src/device/prims_simple.h, genericOp
  return std::min(bytes, std::max(equal, min));
}

Fold::Fold(std::uint32_t ranks)
    : levels(static_cast<std::uint32_t>(std::bit_width(ranks)) - 1), power(1U << levels), rest(ranks - power) {}

BlockLayout BlockLayout::of_ranks(const CollectiveCall& call, std::uint32_t channel) {
  BlockLayout layout;
  layout.end = call.size.count();
  layout.block = divide_up(layout.end, call.communicator->size());
  const std::int64_t part = align_up(divide_up(layout.block, call.tuning.channels));
  layout.low = std::min(layout.block, channel * part);
  layout.high = std::min(layout.block, layout.low + part);
  return layout;
}

BlockLayout BlockLayout::of_vector(const CollectiveCall& call, std::uint32_t channel, std::uint32_t blocks) {
  const std::int64_t size = call.size.count();
  const std::int64_t part = align_up(divide_up(size, call.tuning.channels));
  BlockLayout layout;
  layout.begin = std::min(size, channel * part);
  layout.end = std::min(size, layout.begin + part);
  layout.block = layout.high = align_up(divide_up(layout.end - layout.begin, blocks));
  return layout;
}

BlockLayout BlockLayout::packed() const {
  if (whole()) return *this;
  BlockLayout layout;
  layout.block = layout.high = high - low;
  // Blocks of which the channel has its whole part; of the next one, it has what the tail of the buffer leaves.
  const std::int64_t full = end < begin + high ? 0 : (end - begin - high) / block + 1;
  layout.end = full * layout.block + std::clamp(end - begin - full * block - low, std::int64_t{0}, layout.block);
  return layout;
}

ChunkCursor::ChunkCursor(const BlockLayout& layout, BlockRange blocks, std::int64_t chunk)
    : chunk_(chunk),
      begin_(layout.block_begin(blocks.begin)),
      end_(std::min(layout.end, layout.block_begin(blocks.end))) {}

std::int64_t ChunkCursor::bytes() const { return std::min(chunk_, end_ - begin_); }

RoundStream::RoundStream(const CollectiveCall& call, std::uint32_t index, const BlockLayout& layout,
                         std::optional<Buffer> own)
    : sizes_(call),
      buffers_(layout),
      layout_(layout.packed()),
      fold_(call.communicator->size()),
      index_(index),
      ranks_(call.communicator->size()),
      own_(own) {}

bool RoundStream::next(Step& step) {
  while (copies_.done() && sends_.done() && receives_.done())
    if (!start_round()) return false;
  step = Step{};
  step.source = round_.source;
  step.target = round_.target;
  step.send_peer = step.receive_peer = round_.peer;
  if (!copies_.done()) {
    step.primitive = Primitive::copy;
    step.instant = round_.instant;
    take(copies_, step);
  } else if (!sends_.done() && (receives_.done() || lead_ < sizes_.ahead)) {
    step.primitive = Primitive::send;
    take(sends_, step);
    ++lead_;
  } else {
    step.primitive = round_.reduces ? Primitive::recv_reduce_copy : Primitive::recv;
    take(receives_, step);
    lead_ -= std::min(lead_, 1U);
  }
  return true;
}

bool RoundStream::start_round() {
  if (number_ == rounds()) return false;
  round_ = Round{};
  fill(number_++, round_);
  copies_ = ChunkCursor(layout_, round_.copy, sizes_.chunk);
  sends_ = ChunkCursor(layout_, round_.send, sizes_.chunk);
  receives_ = ChunkCursor(layout_, round_.receive, sizes_.chunk);
  lead_ = 0;
  return true;
}

Bytes RoundStream::place(Buffer buffer, std::int64_t offset) const {
  if (buffer == own_) return Bytes(buffers_.low + offset - layout_.block_begin(index_));
  if (buffer == Buffer::scratch || !strided()) return Bytes(offset);
  const auto block = static_cast<std::uint32_t>(offset / layout_.block);
  return Bytes(buffers_.block_begin(block) + buffers_.low + offset - layout_.block_begin(block));
}

void RoundStream::take(ChunkCursor& chunks, Step& step) const {
  step.input_offset = place(step.source, chunks.offset());
  step.output_offset = place(step.target, chunks.offset());
  step.bytes = Bytes(chunks.bytes());
  step.slice = Bytes(sizes_.slice(chunks.bytes()));
  chunks.advance();
}

void RoundStream::copy_part(std::uint32_t block, Buffer source, Buffer target, Round& round) const {
  round.source = source;
  round.target = target;
  round.copy = {block, block + 1};
  round.instant = true;
}

void RoundStream::fold_in(BlockRange blocks, Round& round) const {
  if (!paired()) return;
  round.peer = pair();
  if (sits_out()) {
    round.source = place_of(Buffer::input);
    round.send = blocks;
  } else {
    reduce(true, round);
    round.receive = blocks;
  }
}

void RoundStream::fold_out(BlockRange blocks, Buffer source, Round& round) const {
  if (!paired()) return;
  round.peer = pair();
  round.source = source;
  (sits_out() ? round.receive : round.send) = blocks;
}

void RoundStream::reduce(bool first, Round& round) const {
  round.reduces = true;
  round.source = first ? place_of(Buffer::input) : Buffer::scratch;
  round.target = Buffer::scratch;
}

void FoldedAllReduce::fill(std::uint32_t number, Round& round) const {
  if (number == 0) {
    fold_in(all_, round);
  } else if (number <= exchanges()) {
    if (!sits_out()) exchange(number - 1, round);
  } else {
    fold_out(all_, Buffer::output, round);
  }
}

void HalvingAllReduce::exchange(std::uint32_t number, Round& round) const {
  const std::uint32_t levels = fold().levels;
  const bool scatters = number < levels;
  const std::uint32_t level = scatters ? number : 2 * levels - 1 - number;
  const std::uint32_t other = partner(position(), level);
  round.peer = fold().rank_at(other);
  // Of the half that both hold before round `level` of the scattering, each keeps one half.
  round.send = kept(scatters ? other : position(), level);
  round.receive = kept(scatters ? position() : other, level);
  if (!scatters) return;
  reduce(number == 0 && !paired(), round);
  if (level + 1 == levels) round.target = Buffer::output;
}

BlockRange HalvingAllReduce::kept(std::uint32_t position, std::uint32_t level) const {
  BlockRange range = all();
  for (std::uint32_t k = 0; k <= level; ++k) {
    const std::uint32_t middle = (range.begin + range.end) / 2;
    (keeps_upper(position, k) ? range.begin : range.end) = middle;
  }
  return range;
}

std::unique_ptr<StepStream> doubling_all_gather(const CollectiveCall& call, std::uint32_t index,
                                                std::uint32_t channel) {
  return std::make_unique<DoublingAllGather>(call, index, channel);
}

void expect_valid(const CollectiveCall& call, std::uint32_t index, std::uint32_t channel) {
  WEFT_EXPECT(index < call.communicator->size(), "index {} of {} ranks", index, call.communicator->size());
  WEFT_EXPECT(channel < call.tuning.channels, "channel {} of {}", channel, call.tuning.channels);
  WEFT_EXPECT(call.size.count() >= 0, "{} bytes", call.size.count());
}

}  // namespace weft
