// SPDX-License-Identifier: GPL-2.0-only
// NCCL's ring collectives: all_reduce, all_gather, reduce_scatter, and broadcast as a pipelined chain.
//
// Step order: NCCL src/device/{all_reduce,all_gather,reduce_scatter,broadcast}.h (runRing). Sizes: protocol Simple,
// with NCCL_STEPS 8 (src/include/device.h), NCCL_BUFFSIZE 4 MiB (src/init.cc, DEFAULT_BUFFSIZE) and *_CHUNKSTEPS,
// *_SLICESTEPS (src/include/collectives.h). Two differences: elements are single bytes, and a chunk of 0 bytes is no
// step, whereas NCCL posts it without data.
#include <algorithm>
#include <memory>

#include "schedule/collective.hpp"
#include "support/contract.hpp"

namespace weft {
namespace {

constexpr std::int64_t nccl_steps = 8;
constexpr std::int64_t step_bytes = (std::int64_t{4} << 20) / nccl_steps;
constexpr std::int64_t alignment = 16;  ///< bytes; NCCL aligns parts, last chunks and slices so (src/enqueue.cc)

constexpr std::int64_t divide_up(std::int64_t a, std::int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }
constexpr std::int64_t align_up(std::int64_t a) { return divide_up(a, alignment) * alignment; }

/// Sizes of one call: NCCL's own unless the tuning says otherwise.
struct Sizes {
  std::int64_t chunk = 0;     ///< bytes of a full chunk
  std::uint32_t slices = 0;   ///< of a full chunk
  std::uint32_t credits = 0;  ///< slices in flight per connection

  explicit Sizes(const CollectiveCall& call) {
    const bool chain = call.kind == CollectiveKind::broadcast;
    const std::int64_t chunk_steps = chain ? 1 : nccl_steps / 2;
    chunk = call.tuning.chunk.count() != 0 ? call.tuning.chunk.count() : chunk_steps * step_bytes;
    slices = call.tuning.slices != 0 ? call.tuning.slices : (chain ? 1 : 2);
    WEFT_EXPECT(chunk > 0, "chunk of {} bytes", chunk);
    // The buffer of a connection holds 8 steps, and a slice is chunk_steps / slices of them.
    credits = call.tuning.credits != 0
                  ? call.tuning.credits
                  : static_cast<std::uint32_t>(std::max<std::int64_t>(nccl_steps * slices / chunk_steps, 1));
    // A ring starts with a send of a whole chunk by every rank, and then each frees a slot only by filling another
    // one: with fewer slots than this all ranks would wait for each other for ever. A chain has no such circle.
    if (!chain) credits = std::max(credits, slices + 1);
  }

  /// Slice length of a chunk, in bytes: src/device/prims_simple.h, genericOp.
  std::int64_t slice(std::int64_t bytes) const {
    const std::int64_t equal = align_up(divide_up(bytes, slices));
    const std::int64_t least = chunk / slices / 32;
    return std::min(bytes, std::max(equal, least));
  }
};

/// What one rank does on one channel: loops over the channel's part of the bytes, each of the same few positions.
class RingStream : public StepStream {
 public:
  /// The channel's part of `total` bytes: near-equal and aligned, as NCCL's continuous-byte distribution
  /// (src/enqueue.cc).
  RingStream(const CollectiveCall& call, std::uint32_t index, std::uint32_t channel, std::int64_t total,
             std::uint64_t positions)
      : sizes_(call), ranks_(call.communicator->size()), index_(index), positions_(positions) {
    const std::int64_t part = align_up(divide_up(total, call.tuning.channels));
    loop_begin_ = std::min(total, channel * part);
    part_end_ = std::min(total, loop_begin_ + part);
  }

  bool next(Step& step) final {
    while (loop_begin_ < part_end_) {
      while (position_ < positions_) {
        step = Step{};
        fill(position_++, step);
        if (step.bytes.count() > 0) {
          step.send_peer = at(index_ + 1);
          step.receive_peer = at(index_ + ranks_ - 1);
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
  std::uint64_t ranks() const { return ranks_; }
  std::uint64_t index() const { return index_; }
  std::int64_t loop_begin() const { return loop_begin_; }
  std::int64_t part_end() const { return part_end_; }
  std::int64_t full_chunk() const { return sizes_.chunk; }

 private:
  Sizes sizes_;
  std::uint64_t ranks_;
  std::uint64_t index_;
  std::uint64_t positions_;  ///< per loop
  std::int64_t loop_begin_ = 0;
  std::int64_t part_end_ = 0;
  std::uint64_t position_ = 0;
};

/// A loop covers n consecutive chunks of the buffer; chunk c is reduced along the ring until it reaches rank c.
class AllReduceStream final : public RingStream {
 public:
  AllReduceStream(const CollectiveCall& call, std::uint32_t index, std::uint32_t channel)
      : RingStream(call, index, channel, call.size.count(), 2 * std::uint64_t{call.communicator->size()} - 1) {}

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

/// Loops of the collectives whose buffer is n blocks: a loop covers the same range of every block.
class BlockStream : public RingStream {
 public:
  BlockStream(const CollectiveCall& call, std::uint32_t index, std::uint32_t channel, std::uint64_t positions)
      : RingStream(call, index, channel, divide_up(call.size.count(), call.communicator->size()), positions),
        size_(call.size.count()),
        block_(divide_up(size_, call.communicator->size())) {}

 protected:
  std::int64_t loop_bytes() const final { return std::min(full_chunk(), part_end() - loop_begin()); }
  std::int64_t block_begin(std::uint32_t block) const { return block * block_; }
  /// Bytes of `block` in this loop: blocks at the end of the buffer are shorter or empty.
  Bytes chunk_of(std::uint32_t block) const {
    const std::int64_t block_bytes = std::clamp<std::int64_t>(size_ - block_begin(block), 0, block_);
    return Bytes(std::clamp<std::int64_t>(std::min(part_end(), block_bytes) - loop_begin(), 0, full_chunk()));
  }

 private:
  std::int64_t size_;
  std::int64_t block_;
};

/// Each rank puts its block into the ring; blocks are copied on until they reach the rank before their own.
class AllGatherStream final : public BlockStream {
 public:
  AllGatherStream(const CollectiveCall& call, std::uint32_t index, std::uint32_t channel)
      : BlockStream(call, index, channel, std::uint64_t{call.communicator->size()} + 1) {}

 private:
  void fill(std::uint64_t position, Step& step) const override {
    const std::uint64_t n = ranks();
    // NCCL's first step is copySend: here a copy and a send.
    const std::uint32_t block = at(position == 0 ? index() : index() + n + 1 - position);
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
    step.output_offset = Bytes(block_begin(block) + loop_begin());
    step.bytes = chunk_of(block);
  }
};

/// Block b starts at the rank after b and is reduced along the ring until it reaches rank b.
class ReduceScatterStream final : public BlockStream {
 public:
  ReduceScatterStream(const CollectiveCall& call, std::uint32_t index, std::uint32_t channel)
      : BlockStream(call, index, channel, call.communicator->size()) {}

 private:
  void fill(std::uint64_t position, Step& step) const override {
    const std::uint64_t n = ranks();
    const std::uint32_t block = at(index() + n - 1 - position);
    if (position == 0) {
      step.primitive = Primitive::send;
    } else if (position < n - 1) {
      step.primitive = Primitive::recv_reduce_send;
    } else {
      step.primitive = Primitive::recv_reduce_copy;
    }
    step.input_offset = Bytes(block_begin(block) + loop_begin());
    step.output_offset = Bytes(loop_begin());
    step.bytes = chunk_of(block);
  }
};

/// A chain from the root to the rank before it, chunk by chunk.
class BroadcastStream final : public RingStream {
 public:
  BroadcastStream(const CollectiveCall& call, std::uint32_t index, std::uint32_t channel)
      : RingStream(call, index, channel, call.size.count(), 1) {
    if (index == call.root) {
      primitive_ = Primitive::send;
    } else if (at(std::uint64_t{index} + 1) == call.root) {
      primitive_ = Primitive::recv;
    }
  }

 private:
  std::int64_t loop_bytes() const override { return std::min(full_chunk(), part_end() - loop_begin()); }

  void fill(std::uint64_t /*position*/, Step& step) const override {
    step.primitive = primitive_;
    step.input_offset = step.output_offset = Bytes(loop_begin());
    step.bytes = Bytes(loop_bytes());
  }

  Primitive primitive_ = Primitive::recv_copy_send;
};

/// One rank alone: nothing moves, but its block goes from input to output where these differ.
class LoneStream final : public StepStream {
 public:
  LoneStream(const CollectiveCall& call, std::uint32_t channel) {
    const bool copies = call.kind == CollectiveKind::all_gather || call.kind == CollectiveKind::reduce_scatter;
    if (copies && channel == 0) bytes_ = call.size;
  }
  bool next(Step& step) override {
    if (bytes_.count() == 0) return false;
    step = Step{};
    step.primitive = Primitive::copy;
    step.bytes = step.slice = bytes_;
    bytes_ = Bytes(0);
    return true;
  }

 private:
  Bytes bytes_;
};

class Ring final : public CollectiveAlgorithm {
 public:
  bool supports(CollectiveKind kind) const override {
    return kind == CollectiveKind::all_reduce || kind == CollectiveKind::all_gather ||
           kind == CollectiveKind::reduce_scatter || kind == CollectiveKind::broadcast;
  }

  std::uint32_t credits(const CollectiveCall& call) const override { return Sizes(call).credits; }

  std::unique_ptr<StepStream> steps(const CollectiveCall& call, std::uint32_t index,
                                    std::uint32_t channel) const override {
    const std::uint32_t ranks = call.communicator->size();
    WEFT_EXPECT(index < ranks, "index {} of {} ranks", index, ranks);
    WEFT_EXPECT(channel < call.tuning.channels, "channel {} of {}", channel, call.tuning.channels);
    WEFT_EXPECT(call.size.count() >= 0, "{} bytes", call.size.count());
    if (ranks == 1) return std::make_unique<LoneStream>(call, channel);
    switch (call.kind) {
      case CollectiveKind::all_reduce:
        return std::make_unique<AllReduceStream>(call, index, channel);
      case CollectiveKind::all_gather:
        return std::make_unique<AllGatherStream>(call, index, channel);
      case CollectiveKind::reduce_scatter:
        return std::make_unique<ReduceScatterStream>(call, index, channel);
      case CollectiveKind::broadcast:
        WEFT_EXPECT(call.root < ranks, "root {} of {} ranks", call.root, ranks);
        return std::make_unique<BroadcastStream>(call, index, channel);
      case CollectiveKind::reduce:
      case CollectiveKind::all_to_all:
        break;
    }
    WEFT_EXPECT(false, "the ring has no {}", to_text(call.kind));
    return nullptr;
  }
};

const Registration<CollectiveAlgorithm, Ring> registration("ring", "NCCL's ring: chunked, sliced, pipelined");

}  // namespace
}  // namespace weft
