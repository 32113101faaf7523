// SPDX-License-Identifier: GPL-2.0-only
// NCCL's ring collectives: all_reduce, all_gather, reduce_scatter, broadcast and reduce as pipelined chains, send_recv.
//
// Step order: NCCL src/device/{all_reduce,all_gather,reduce_scatter,broadcast}.h (runRing). Sizes: protocol Simple,
// with NCCL_STEPS 8 (src/include/device.h), NCCL_BUFFSIZE 4 MiB (src/init.cc, DEFAULT_BUFFSIZE) and *_CHUNKSTEPS,
// *_SLICESTEPS (src/include/collectives.h). Two differences: elements are single bytes, and a chunk of 0 bytes is no
// step, whereas NCCL posts it without data. Protocols LL and LL128 have their own step sizes, one step per chunk.
//
// bidirectional_ring: the same with half of the channels the other way round, which NCCL does not do; at least two.
#include <algorithm>
#include <memory>

#include "collectives/steps/exchange.hpp"
#include "collectives/steps/kinds.hpp"
#include "collectives/steps/nccl_sizes.hpp"
#include "schedule/collective/collective.hpp"
#include "support/basics/contract.hpp"

namespace weft {
namespace {

/// Sizes of one call: NCCL's own unless the tuning says otherwise.
struct Sizes {
  std::int64_t chunk = 0;     ///< bytes of a full chunk
  std::uint32_t slices = 0;   ///< of a full chunk
  std::uint32_t credits = 0;  ///< slices in flight per connection

  explicit Sizes(const CollectiveCall& call) {
    const bool chain = call.kind == CollectiveKind::broadcast || call.kind == CollectiveKind::reduce;
    const bool single = chain || call.tuning.protocol != Protocol::simple || call.kind == CollectiveKind::send_recv;
    const std::int64_t chunk_steps = single ? 1 : nccl_steps / 2;
    const std::int64_t step = MessageSizes::nccl_step_bytes(call);
    chunk = call.tuning.chunk.count() != 0 ? call.tuning.chunk.count() : chunk_steps * step;
    slices = call.tuning.slices != 0 ? call.tuning.slices : (single ? 1 : 2);
    WEFT_EXPECT(chunk > 0, "chunk of {} bytes", chunk);
    // The buffer of a connection holds 8 steps, and a slice is chunk_steps / slices of them.
    credits = call.tuning.credits != 0
                  ? call.tuning.credits
                  : static_cast<std::uint32_t>(std::max<std::int64_t>(nccl_steps * slices / chunk_steps, 1));
    // A ring starts with a send of a whole chunk by every rank, and then each frees a slot only by filling another
    // one: with fewer slots than this all ranks would wait for each other for ever. A chain has no such cycle.
    if (!chain) credits = std::max(credits, slices + 1);
  }

  /// Slice length of a chunk, in bytes: src/device/prims_simple.h, genericOp.
  std::int64_t slice(std::int64_t bytes) const {
    const std::int64_t equal = align_up(divide_up(bytes, slices));
    const std::int64_t min = chunk / slices / 32;
    return std::min(bytes, std::max(equal, min));
  }
};

/// The owner of steps: a rank, a channel, and the direction of the channel's ring.
struct Place {
  std::uint32_t index = 0;
  std::uint32_t channel = 0;
  std::uint32_t channels = 1;
  bool backwards = false;
};

/// The order in which a channel's ring visits the members: that of the machine's graph, else that of their numbers.
class RingOrder {
 public:
  RingOrder(const CollectiveCall& call, const Place& place)
      : ranks_(call.communicator->size()), channel_(place.channel), backwards_(place.backwards) {
    // That of nccl-tests' send_recv is the ranks' own.
    if (call.kind != CollectiveKind::send_recv) graph_ = call.graph;
  }
  std::uint32_t ranks() const { return ranks_; }
  std::uint32_t position(std::uint32_t member) const {
    const std::uint32_t forwards = graph_ ? graph_->ring_position(channel_, member) : member;
    return backwards_ ? ranks_ - 1 - forwards : forwards;
  }
  std::uint32_t member(std::uint64_t position) const {
    const auto at = static_cast<std::uint32_t>(position % ranks_);
    const std::uint32_t forwards = backwards_ ? ranks_ - 1 - at : at;
    return graph_ ? graph_->ring_member(channel_, forwards) : forwards;
  }

 private:
  std::shared_ptr<const ChannelGraph> graph_;
  std::uint32_t ranks_;
  std::uint32_t channel_;
  bool backwards_;
};

/// The steps of one rank on one channel: loops over the channel's part of the bytes, each of the same few positions.
class RingStream : public StepStream {
 public:
  /// The channel's part of `total` bytes: near-equal and aligned, as NCCL's continuous-byte distribution
  /// (src/enqueue.cc).
  RingStream(const CollectiveCall& call, const Place& place, std::int64_t total, std::uint64_t positions)
      : sizes_(call),
        order_(call, place),
        ranks_(order_.ranks()),
        index_(order_.position(place.index)),
        next_(order_.member(index_ + 1)),
        previous_(order_.member(index_ + ranks_ - 1)),
        positions_(positions) {
    const std::uint32_t channel = place.channel;
    const std::int64_t part = align_up(divide_up(total, place.channels));
    loop_begin_ = std::min(total, channel * part);
    part_end_ = std::min(total, loop_begin_ + part);
  }

  bool next(Step& step) final {
    while (loop_begin_ < part_end_) {
      while (position_ < positions_) {
        step = Step{};
        fill(position_++, step);
        if (step.bytes.count() > 0) {
          step.send_peer = next_;
          step.receive_peer = previous_;
          step.slice = Bytes(sizes_.slice(step.bytes.count()));
          return true;
        }
      }
      position_ = 0;
      loop_begin_ += loop_bytes();
    }
    return false;
  }

 protected:
  /// The step at a position of the current loop, with 0 bytes if its chunk is empty. Peers and slice are set later.
  virtual void fill(std::uint64_t position, Step& step) const = 0;
  /// Bytes of the channel's part that the current loop covers (the last one perhaps beyond the end).
  virtual std::int64_t loop_bytes() const = 0;

  std::uint32_t at(std::uint64_t position_in_ring) const {
    return static_cast<std::uint32_t>(position_in_ring % ranks_);
  }
  /// The rank there.
  std::uint32_t rank_at(std::uint64_t position_in_ring) const { return order_.member(position_in_ring); }
  std::uint32_t position_of(std::uint32_t rank) const { return order_.position(rank); }
  std::uint64_t ranks() const { return ranks_; }
  std::uint64_t index() const { return index_; }
  std::int64_t loop_begin() const { return loop_begin_; }
  std::int64_t part_end() const { return part_end_; }
  std::int64_t full_chunk() const { return sizes_.chunk; }

 private:
  Sizes sizes_;
  RingOrder order_;
  std::uint64_t ranks_;
  std::uint64_t index_;      ///< in the ring
  std::uint32_t next_;       ///< member
  std::uint32_t previous_;   ///< member
  std::uint64_t positions_;  ///< per loop
  std::int64_t loop_begin_ = 0;
  std::int64_t part_end_ = 0;
  std::uint64_t position_ = 0;
};

/// A loop covers n consecutive chunks of the buffer; chunk c is reduced along the ring until it reaches rank c.
class RingAllReduceStream final : public RingStream {
 public:
  RingAllReduceStream(const CollectiveCall& call, const Place& place)
      : RingStream(call, place, call.size.count(), 2 * std::uint64_t{call.communicator->size()} - 1) {}

 private:
  /// src/device/all_reduce.h: all ranks share what remains in the last loop.
  std::int64_t chunk() const {
    const std::int64_t remaining = part_end() - loop_begin();
    return std::min(full_chunk(), align_up(divide_up(remaining, static_cast<std::int64_t>(ranks()))));
  }
  std::int64_t loop_bytes() const override { return chunk() * static_cast<std::int64_t>(ranks()); }

  void fill(std::uint64_t position, Step& step) const override {
    const std::uint64_t n = ranks();
    if (position == 0) {
      step.primitive = Primitive::send;
    } else if (position < n - 1) {
      step.primitive = Primitive::recv_reduce_send;
    } else if (position == n - 1) {
      step.primitive = Primitive::recv_reduce_copy_send;
    } else if (position < 2 * n - 2) {
      step.primitive = Primitive::recv_copy_send;
    } else {
      step.primitive = Primitive::recv;
    }
    // Chunk index-1 first, one less at every position.
    const std::int64_t offset = loop_begin() + chunk() * at(index() + 2 * n - 1 - position);
    step.input_offset = step.output_offset = Bytes(offset);
    step.bytes = Bytes(std::clamp<std::int64_t>(part_end() - offset, 0, chunk()));
  }
};

/// Bytes of the largest block.
std::int64_t largest_block(const CollectiveCall& call) {
  const std::uint32_t ranks = call.communicator->size();
  if (!call.blocks) return divide_up(call.size.count(), ranks);
  std::int64_t max = 0;
  for (std::uint32_t block = 0; block < ranks; ++block) max = std::max(max, block_bytes(call, block));
  return max;
}

/// Loops of the collectives whose buffer is n blocks: a loop covers the same range of every block.
class BlockStream : public RingStream {
 public:
  BlockStream(const CollectiveCall& call, const Place& place, std::uint64_t positions)
      : RingStream(call, place, largest_block(call), positions),
        blocks_(call.blocks),
        size_(call.size.count()),
        block_(divide_up(size_, call.communicator->size())) {}

 protected:
  std::int64_t loop_bytes() const final { return std::min(full_chunk(), part_end() - loop_begin()); }
  std::int64_t begin_of(std::uint32_t block) const {
    return blocks_ ? blocks_->input_offset(0, block) : block * block_;
  }
  /// Bytes of `block` in this loop: blocks at the end of the buffer are shorter or empty.
  Bytes chunk_of(std::uint32_t block) const {
    const std::int64_t block_bytes =
        blocks_ ? blocks_->bytes(0, block) : std::clamp<std::int64_t>(size_ - begin_of(block), 0, block_);
    return Bytes(std::clamp<std::int64_t>(std::min(part_end(), block_bytes) - loop_begin(), 0, full_chunk()));
  }

 private:
  std::shared_ptr<const BlockTable> blocks_;
  std::int64_t size_;
  std::int64_t block_;
};

/// Each rank puts its block into the ring; blocks are copied on until they reach the rank before their own.
class AllGatherStream final : public BlockStream {
 public:
  AllGatherStream(const CollectiveCall& call, const Place& place)
      : BlockStream(call, place, std::uint64_t{call.communicator->size()} + 1) {}

 private:
  void fill(std::uint64_t position, Step& step) const override {
    const std::uint64_t n = ranks();
    // NCCL's first step is copySend: here a copy and a send.
    const std::uint32_t block = rank_at(position == 0 ? index() : index() + n + 1 - position);
    if (position == 0) {
      step.primitive = Primitive::copy;
    } else if (position == 1) {
      step.primitive = Primitive::send;
    } else if (position < n) {
      step.primitive = Primitive::recv_copy_send;
    } else {
      step.primitive = Primitive::recv;
    }
    step.input_offset = Bytes(loop_begin());
    step.output_offset = Bytes(begin_of(block) + loop_begin());
    step.bytes = chunk_of(block);
  }
};

/// Block b starts at the rank after b and is reduced along the ring until it reaches rank b.
class RingReduceScatterStream final : public BlockStream {
 public:
  RingReduceScatterStream(const CollectiveCall& call, const Place& place)
      : BlockStream(call, place, call.communicator->size()) {}

 private:
  void fill(std::uint64_t position, Step& step) const override {
    const std::uint64_t n = ranks();
    const std::uint32_t block = rank_at(index() + n - 1 - position);
    if (position == 0) {
      step.primitive = Primitive::send;
    } else if (position < n - 1) {
      step.primitive = Primitive::recv_reduce_send;
    } else {
      step.primitive = Primitive::recv_reduce_copy;
    }
    step.input_offset = Bytes(begin_of(block) + loop_begin());
    step.output_offset = Bytes(loop_begin());
    step.bytes = chunk_of(block);
  }
};

/// The same step for each chunk: along the chain from the root to the rank before it, or from the rank after the root
/// to the root.
class ChainStream final : public RingStream {
 public:
  ChainStream(const CollectiveCall& call, const Place& place) : RingStream(call, place, call.size.count(), 1) {
    const std::uint64_t n = ranks();
    const bool reduces = call.kind == CollectiveKind::reduce;
    const std::uint64_t root = position_of(call.root);
    const std::uint64_t from_first = (index() + 2 * n - root - (reduces ? 1 : 0)) % n;
    if (from_first == 0)
      primitive_ = Primitive::send;
    else if (from_first + 1 == n)
      primitive_ = reduces ? Primitive::recv_reduce_copy : Primitive::recv;
    else
      primitive_ = reduces ? Primitive::recv_reduce_send : Primitive::recv_copy_send;
  }

 private:
  std::int64_t loop_bytes() const override { return std::min(full_chunk(), part_end() - loop_begin()); }

  void fill(std::uint64_t /*position*/, Step& step) const override {
    step.primitive = primitive_;
    step.input_offset = step.output_offset = Bytes(loop_begin());
    step.bytes = Bytes(loop_bytes());
  }

  Primitive primitive_ = Primitive::send;
};

/// Each rank's buffer to the next one.
class ShiftStream final : public RingStream {
 public:
  ShiftStream(const CollectiveCall& call, const Place& place) : RingStream(call, place, call.size.count(), 2) {}

 private:
  std::int64_t loop_bytes() const override { return std::min(full_chunk(), part_end() - loop_begin()); }

  void fill(std::uint64_t position, Step& step) const override {
    step.primitive = position == 0 ? Primitive::send : Primitive::recv;
    step.input_offset = step.output_offset = Bytes(loop_begin());
    step.bytes = Bytes(loop_bytes());
  }
};

class Ring : public CollectiveAlgorithm {
 public:
  bool supports(CollectiveKind kind) const override {
    return is_all_reduce_or_phase(kind) || kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce ||
           kind == CollectiveKind::send_recv;
  }
  bool takes_block_tables(CollectiveKind kind) const override {
    return kind == CollectiveKind::all_gather || kind == CollectiveKind::reduce_scatter;
  }
  std::uint32_t credits(const CollectiveCall& call) const override { return Sizes(call).credits; }
  std::uint32_t usual_channels(const CollectiveCall& call) const override { return nccl_channels(call); }

  std::unique_ptr<StepStream> steps(const CollectiveCall& call, std::uint32_t index,
                                    std::uint32_t channel) const override {
    expect_valid_lane(*this, call, index, channel);
    if (call.communicator->size() == 1) return lone_stream(call, channel);
    const Place place{index, channel, channels(call), backwards(channel)};
    switch (call.kind) {
      case CollectiveKind::all_reduce:
        return std::make_unique<RingAllReduceStream>(call, place);
      case CollectiveKind::all_gather:
        return std::make_unique<AllGatherStream>(call, place);
      case CollectiveKind::reduce_scatter:
        return std::make_unique<RingReduceScatterStream>(call, place);
      case CollectiveKind::send_recv:
        return std::make_unique<ShiftStream>(call, place);
      default:
        return std::make_unique<ChainStream>(call, place);
    }
  }

 private:
  virtual bool backwards(std::uint32_t /*channel*/) const { return false; }
};

class BidirectionalRing final : public Ring {
 public:
  bool supports(CollectiveKind kind) const override { return is_all_reduce_or_phase(kind); }
  std::uint32_t channels(const CollectiveCall& call) const override { return std::max(2U, call.tuning.channels); }

 private:
  bool backwards(std::uint32_t channel) const override { return channel % 2 == 1; }
};

const Registration<CollectiveAlgorithm, Ring> ring_registration("ring", "NCCL's ring: chunked, sliced, pipelined");
const Registration<CollectiveAlgorithm, BidirectionalRing> both_ways(
    "bidirectional_ring", "rings whose channels go round in both directions");

}  // namespace
}  // namespace weft
