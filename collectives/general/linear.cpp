// SPDX-License-Identifier: GPL-2.0-only
// Collectives without an algorithm: the root with each of the others in turn, or each rank with all others at once.
//
// As in Open MPI's basic component (ompi/mca/coll/base, names *_intra_basic_linear): the root posts all its messages at
// once, in the order of ranks; all_to_all posts all sends and receives, starting with the neighbour. all_reduce and
// barrier go through member 0.
#include <algorithm>

#include "collectives/steps/exchange.hpp"
#include "schedule/collective/step_generator.hpp"

namespace weft {
namespace {

/// Bytes of one message that the other rank receives or sends, seen from both sides.
struct Message {
  std::uint32_t peer = 0;
  Buffer buffer = Buffer::input;
  Piece piece;
};

StepGenerator send_to_all(CollectiveCall call, MessageSizes sizes, ChannelShare share, std::uint32_t root,
                          Buffer source) {
  const bool blocks = call.kind == CollectiveKind::scatter;
  const std::uint32_t n = call.communicator->size();
  for (std::uint32_t i = 1; i < n; ++i) {
    const std::uint32_t peer = (root + i) % n;
    const Piece piece =
        blocks ? share.of(block_begin(call, peer), block_bytes(call, peer)) : share.of(0, call.size.count());
    Exchange exchange(sizes);
    exchange.send(peer, source, one_piece(piece));
    for (Step step; exchange.next(step);) co_yield step;
  }
  if (!blocks) co_return;
  const Piece own = share.of(block_begin(call, root), block_bytes(call, root));
  Step copy = local_copy(Buffer::input, own.offset, Buffer::output, own.offset - block_begin(call, root), own.bytes);
  if (own.bytes > 0) co_yield copy;
}

StepGenerator gather_at_root(CollectiveCall call, MessageSizes sizes, ChannelShare share) {
  const std::uint32_t n = call.communicator->size();
  const Piece own = share.of(block_begin(call, call.root), block_bytes(call, call.root));
  Step copy =
      local_copy(Buffer::input, own.offset - block_begin(call, call.root), Buffer::output, own.offset, own.bytes);
  if (own.bytes > 0) co_yield copy;
  for (std::uint32_t i = 1; i < n; ++i) {
    const std::uint32_t peer = (call.root + i) % n;
    Exchange exchange(sizes);
    exchange.receive(peer, Buffer::output, one_piece(share.of(block_begin(call, peer), block_bytes(call, peer))));
    for (Step step; exchange.next(step);) co_yield step;
  }
}

StepGenerator reduce_at_root(CollectiveCall call, MessageSizes sizes, ChannelShare share, std::uint32_t root,
                             bool and_broadcast) {
  const std::uint32_t n = call.communicator->size();
  for (std::uint32_t i = 1; i < n; ++i) {
    Exchange exchange(sizes);
    exchange.reduce((root + i) % n, i == 1 ? Buffer::input : Buffer::scratch, 0,
                    i + 1 == n ? Buffer::output : Buffer::scratch, one_piece(share.of(0, call.size.count())));
    for (Step step; exchange.next(step);) co_yield step;
  }
  if (!and_broadcast) co_return;
  StepGenerator result = send_to_all(call, sizes, share, root, Buffer::output);
  for (Step step; result.next(step);) co_yield step;
}

/// The part of a member: one message to the root, one from it, or both.
StepGenerator one_by_one(MessageSizes sizes, Message out, Message in) {
  if (out.piece.bytes > 0) {
    Exchange exchange(sizes);
    exchange.send(out.peer, out.buffer, one_piece(out.piece));
    for (Step step; exchange.next(step);) co_yield step;
  }
  if (in.piece.bytes > 0) {
    Exchange exchange(sizes);
    exchange.receive(in.peer, in.buffer, one_piece(in.piece));
    for (Step step; exchange.next(step);) co_yield step;
  }
}

/// One of the two lanes of all_to_all: all sends, or the copy and all receives.
StepGenerator all_pairs(CollectiveCall call, std::uint32_t index, MessageSizes sizes, ChannelShare share, bool out) {
  const std::uint32_t n = call.communicator->size();
  for (std::uint32_t i = 0; i < n; ++i) {
    const std::uint32_t peer = out ? (index + i) % n : (index + n - i) % n;
    const std::uint32_t from = out ? index : peer;
    const std::uint32_t to = out ? peer : index;
    const Piece piece =
        share.of(out ? pair_input(call, from, to) : pair_output(call, from, to), pair_bytes(call, from, to));
    if (i == 0) {
      Step copy = local_copy(Buffer::input, pair_input(call, from, to) + piece.offset - pair_output(call, from, to),
                             Buffer::output, piece.offset, piece.bytes);
      if (!out && piece.bytes > 0) co_yield copy;
      continue;
    }
    Exchange exchange(sizes);
    if (out)
      exchange.send(peer, Buffer::input, one_piece(piece));
    else
      exchange.receive(peer, Buffer::output, one_piece(piece));
    for (Step step; exchange.next(step);) co_yield step;
  }
}

class Linear final : public CollectiveAlgorithm {
 public:
  bool supports(CollectiveKind kind) const override {
    return kind != CollectiveKind::all_gather && kind != CollectiveKind::reduce_scatter;
  }
  bool takes_block_tables(CollectiveKind kind) const override {
    return kind == CollectiveKind::all_to_all || kind == CollectiveKind::gather || kind == CollectiveKind::scatter;
  }
  std::uint32_t lanes(const CollectiveCall& call) const override {
    const bool both = call.kind == CollectiveKind::all_to_all || call.kind == CollectiveKind::send_recv;
    return call.tuning.channels * (both ? 2 : 1);
  }
  std::uint32_t credits(const CollectiveCall& call) const override { return MessageSizes::whole(call).credits; }

  std::unique_ptr<StepStream> steps(const CollectiveCall& call, std::uint32_t index,
                                    std::uint32_t lane) const override {
    expect_valid_lane(*this, call, index, lane);
    const std::uint32_t n = call.communicator->size();
    if (n == 1) return lone_stream(call, lane);
    const MessageSizes sizes = MessageSizes::whole(call);
    const ChannelShare share{call.tuning.channels, lane % call.tuning.channels};
    const bool second = lane >= call.tuning.channels;
    const std::uint32_t root = has_root(call.kind) ? call.root : 0;
    const Piece all = share.of(0, call.size.count());
    const Piece none;
    switch (call.kind) {
      case CollectiveKind::all_to_all:
        return stream_of(all_pairs(call, index, sizes, share, !second));
      case CollectiveKind::send_recv:
        return stream_of(one_by_one(sizes, {(index + 1) % n, Buffer::input, second ? none : all},
                                    {(index + n - 1) % n, Buffer::output, second ? all : none}));
      case CollectiveKind::broadcast:
        if (index == root) return stream_of(send_to_all(call, sizes, share, root, Buffer::input));
        return stream_of(one_by_one(sizes, {}, {root, Buffer::output, all}));
      case CollectiveKind::reduce:
        if (index == root) return stream_of(reduce_at_root(call, sizes, share, root, false));
        return stream_of(one_by_one(sizes, {root, Buffer::input, all}, {}));
      case CollectiveKind::scatter:
        if (index == root) return stream_of(send_to_all(call, sizes, share, root, Buffer::input));
        return stream_of(one_by_one(sizes, {}, {root, Buffer::output, share.of(0, block_bytes(call, index))}));
      case CollectiveKind::gather:
        if (index == root) return stream_of(gather_at_root(call, sizes, share));
        return stream_of(one_by_one(sizes, {root, Buffer::input, share.of(0, block_bytes(call, index))}, {}));
      default:
        if (index == root) return stream_of(reduce_at_root(call, sizes, share, root, true));
        return stream_of(one_by_one(sizes, {root, Buffer::input, all}, {root, Buffer::output, all}));
    }
  }
};

const Registration<CollectiveAlgorithm, Linear> linear_registration(
    "linear", "the root with each of the others, or every pair at once");

}  // namespace
}  // namespace weft
