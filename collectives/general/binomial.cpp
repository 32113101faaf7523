// SPDX-License-Identifier: GPL-2.0-only
// Binomial trees, as MPI libraries have them for short messages: ceil(log2 P) rounds.
//
// R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of Collective Communication Operations in MPICH", International
// Journal of High Performance Computing Applications 19(1), 2005, doi:10.1177/1094342005051521: broadcast, reduce,
// gather, scatter. Member v (counted from the root) has the parent v without its lowest bit; gather and scatter pass on
// the blocks of whole subtrees. all_reduce and barrier are a reduction to member 0 and a broadcast.
#include <algorithm>
#include <bit>

#include "collectives/steps/exchange.hpp"
#include "schedule/collective/step_generator.hpp"

namespace weft {
namespace {

/// Members counted from the root.
struct Tree {
  std::uint32_t ranks = 0;
  std::uint32_t root = 0;
  std::uint32_t self = 0;

  Tree(const CollectiveCall& call, std::uint32_t index)
      : ranks(call.communicator->size()),
        root(has_root(call.kind) ? call.root : 0),
        self((index + ranks - root) % ranks) {}
  std::uint32_t real(std::uint32_t member) const { return (member + root) % ranks; }
  std::uint32_t lowest_bit() const { return self == 0 ? std::bit_ceil(ranks) : self & (~self + 1); }
  std::uint32_t parent() const { return real(self & (self - 1)); }
  /// End of the members below `member`, whose lowest bit (or the tree's size) is `bit`.
  std::uint32_t end_of(std::uint32_t member, std::uint32_t bit) const { return std::min(ranks, member + bit); }
};

/// Chunk by chunk from the root down; the largest subtree first.
StepGenerator broadcast(Tree tree, MessageSizes sizes, Piece part, Buffer at_root) {
  for (std::int64_t at = 0; at < part.bytes; at += sizes.chunk) {
    Step step;
    step.bytes = Bytes(std::min(sizes.chunk, part.bytes - at));
    step.slice = Bytes(sizes.slice(step.bytes.count()));
    step.input_offset = step.output_offset = Bytes(part.offset + at);
    if (tree.self != 0) {
      step.primitive = Primitive::recv;
      step.receive_peer = tree.parent();
      co_yield step;
    }
    step.primitive = Primitive::send;
    step.source = tree.self == 0 ? at_root : Buffer::output;
    for (std::uint32_t bit = tree.lowest_bit() >> 1; bit > 0; bit >>= 1) {
      if (tree.self + bit >= tree.ranks) continue;
      step.send_peer = tree.real(tree.self + bit);
      co_yield step;
    }
  }
}

/// The same upwards; the smallest subtree first. Partial sums are in scratch.
StepGenerator reduce(Tree tree, MessageSizes sizes, Piece part) {
  for (std::int64_t at = 0; at < part.bytes; at += sizes.chunk) {
    Step step;
    step.bytes = Bytes(std::min(sizes.chunk, part.bytes - at));
    step.slice = Bytes(sizes.slice(step.bytes.count()));
    step.input_offset = step.output_offset = Bytes(part.offset + at);
    step.primitive = Primitive::recv_reduce_copy;
    step.target = Buffer::scratch;
    for (std::uint32_t bit = 1; bit < tree.lowest_bit() && tree.self + bit < tree.ranks; bit <<= 1) {
      step.receive_peer = tree.real(tree.self + bit);
      const bool last = tree.self == 0 && (bit << 1 >= tree.lowest_bit() || tree.self + (bit << 1) >= tree.ranks);
      if (last) step.target = Buffer::output;
      co_yield step;
      step.source = Buffer::scratch;
    }
    if (tree.self == 0) continue;
    step.primitive = Primitive::send;
    step.send_peer = tree.parent();
    co_yield step;
  }
}

StepGenerator reduce_and_broadcast(Tree tree, MessageSizes sizes, Piece part) {
  StepGenerator reduction = reduce(tree, sizes, part);
  for (Step step; reduction.next(step);) co_yield step;
  StepGenerator result = broadcast(tree, sizes, part, Buffer::output);
  for (Step step; result.next(step);) co_yield step;
}

/// Blocks of members, in their order counted from the root, as they are stored in scratch.
class Subtrees {
 public:
  Subtrees(const CollectiveCall& call, Tree tree, ChannelShare share) : call_(call), tree_(tree), share_(share) {}
  Piece block(std::uint32_t member) const {
    const std::uint32_t rank = tree_.real(member);
    return share_.of(block_begin(call_, rank), block_bytes(call_, rank));
  }
  std::int64_t bytes(std::uint32_t begin, std::uint32_t end) const {
    std::int64_t sum = 0;
    for (std::uint32_t member = begin; member < end; ++member) sum += block(member).bytes;
    return sum;
  }
  /// Members `begin` to `end` - 1 in the scratch of this member.
  Pieces pieces(std::uint32_t begin, std::uint32_t end) const {
    return one_piece({bytes(tree_.self, begin), bytes(begin, end)});
  }

 private:
  CollectiveCall call_;
  Tree tree_;
  ChannelShare share_;
};

StepGenerator gather(CollectiveCall call, Tree tree, MessageSizes sizes, ChannelShare share) {
  const Subtrees blocks(call, tree, share);
  const Piece own = blocks.block(tree.self);
  const std::int64_t in_input = own.offset - block_begin(call, tree.real(tree.self));
  Step copy = local_copy(Buffer::input, in_input, Buffer::scratch, 0, own.bytes);
  if (own.bytes > 0) co_yield copy;
  for (std::uint32_t bit = 1; bit < tree.lowest_bit() && tree.self + bit < tree.ranks; bit <<= 1) {
    const std::uint32_t child = tree.self + bit;
    Exchange exchange(sizes);
    exchange.receive(tree.real(child), Buffer::scratch, blocks.pieces(child, tree.end_of(child, bit)));
    for (Step step; exchange.next(step);) co_yield step;
  }
  if (tree.self != 0) {
    Exchange exchange(sizes);
    exchange.send(tree.parent(), Buffer::scratch, blocks.pieces(tree.self, tree.end_of(tree.self, tree.lowest_bit())));
    for (Step step; exchange.next(step);) co_yield step;
    co_return;
  }
  std::int64_t at = 0;
  for (std::uint32_t member = 0; member < tree.ranks; ++member) {
    const Piece block = blocks.block(member);
    copy = local_copy(Buffer::scratch, at, Buffer::output, block.offset, block.bytes);
    if (block.bytes > 0) co_yield copy;
    at += block.bytes;
  }
}

StepGenerator scatter(CollectiveCall call, Tree tree, MessageSizes sizes, ChannelShare share) {
  const Subtrees blocks(call, tree, share);
  Step copy;
  std::int64_t at = 0;
  for (std::uint32_t member = 0; tree.self == 0 && member < tree.ranks; ++member) {
    const Piece block = blocks.block(member);
    copy = local_copy(Buffer::input, block.offset, Buffer::scratch, at, block.bytes);
    if (block.bytes > 0) co_yield copy;
    at += block.bytes;
  }
  if (tree.self != 0) {
    Exchange exchange(sizes);
    exchange.receive(tree.parent(), Buffer::scratch,
                     blocks.pieces(tree.self, tree.end_of(tree.self, tree.lowest_bit())));
    for (Step step; exchange.next(step);) co_yield step;
  }
  for (std::uint32_t bit = tree.lowest_bit() >> 1; bit > 0; bit >>= 1) {
    const std::uint32_t child = tree.self + bit;
    if (child >= tree.ranks) continue;
    Exchange exchange(sizes);
    exchange.send(tree.real(child), Buffer::scratch, blocks.pieces(child, tree.end_of(child, bit)));
    for (Step step; exchange.next(step);) co_yield step;
  }
  const Piece own = blocks.block(tree.self);
  const std::int64_t in_output = own.offset - block_begin(call, tree.real(tree.self));
  copy = local_copy(Buffer::scratch, 0, Buffer::output, in_output, own.bytes);
  if (own.bytes > 0) co_yield copy;
}

class Binomial final : public CollectiveAlgorithm {
 public:
  bool supports(CollectiveKind kind) const override {
    return has_root(kind) || kind == CollectiveKind::all_reduce || kind == CollectiveKind::barrier;
  }
  bool takes_block_tables(CollectiveKind kind) const override {
    return kind == CollectiveKind::gather || kind == CollectiveKind::scatter;
  }
  std::uint32_t credits(const CollectiveCall& call) const override { return MessageSizes::whole(call).credits; }

  std::unique_ptr<StepStream> steps(const CollectiveCall& call, std::uint32_t index,
                                    std::uint32_t lane) const override {
    expect_valid_lane(*this, call, index, lane);
    if (call.communicator->size() == 1) return lone_stream(call, lane);
    const MessageSizes sizes = MessageSizes::whole(call);
    const ChannelShare share{call.tuning.channels, lane};
    const Tree tree(call, index);
    const Piece part = share.of(0, call.size.count());
    switch (call.kind) {
      case CollectiveKind::broadcast:
        return stream_of(broadcast(tree, sizes, part, Buffer::input));
      case CollectiveKind::reduce:
        return stream_of(reduce(tree, sizes, part));
      case CollectiveKind::gather:
        return stream_of(gather(call, tree, sizes, share));
      case CollectiveKind::scatter:
        return stream_of(scatter(call, tree, sizes, share));
      default:
        return stream_of(reduce_and_broadcast(tree, sizes, part));
    }
  }
};

const Registration<CollectiveAlgorithm, Binomial> binomial_registration("binomial",
                                                                        "binomial trees in ceil(log2 P) rounds");

}  // namespace
}  // namespace weft
