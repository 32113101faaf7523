// SPDX-License-Identifier: GPL-2.0-only
// Every rank with every other one at once: each block goes straight to its owner, and results straight to all.
//
// All pairs at once, for machines whose hosts are all linked to each other or to one switch: reduce_scatter and
// all_gather are one round of P - 1 messages of S/P each, all_reduce is both. The two lanes of a channel send and
// receive independently.
#include "collectives/steps/exchange.hpp"
#include "collectives/steps/kinds.hpp"
#include "schedule/collective/step_generator.hpp"

namespace weft {
namespace {

/// Blocks of the input to their owners.
StepGenerator scatter_out(CollectiveCall call, std::uint32_t index, MessageSizes sizes, ChannelShare share) {
  const std::uint32_t n = call.communicator->size();
  for (std::uint32_t i = 1; i < n; ++i) {
    const std::uint32_t peer = (index + i) % n;
    Exchange exchange(sizes);
    exchange.send(peer, Buffer::input, one_piece(share.of(block_begin(call, peer), block_bytes(call, peer))));
    for (Step step; exchange.next(step);) co_yield step;
  }
}

/// Sums up the own block; it is at `place` of the output. A mark at the end releases the lane that waits for the sum.
StepGenerator scatter_in(CollectiveCall call, std::uint32_t index, MessageSizes sizes, ChannelShare share,
                         std::int64_t place, bool marked) {
  const std::uint32_t n = call.communicator->size();
  const std::int64_t begin = block_begin(call, index);
  const Piece in_input = share.of(begin, block_bytes(call, index));
  for (std::uint32_t i = 1; i < n; ++i) {
    const std::int64_t shift = i == 1 ? begin - place : 0;
    Exchange exchange(sizes);
    exchange.reduce((index + n - i) % n, i == 1 ? Buffer::input : Buffer::scratch, shift,
                    i + 1 == n ? Buffer::output : Buffer::scratch,
                    one_piece({in_input.offset - begin + place, in_input.bytes}));
    for (Step step; exchange.next(step);) co_yield step;
  }
  if (marked) {
    const Step mark = marks();
    co_yield mark;
  }
}

/// The own block to all, from `place` of a buffer.
StepGenerator gather_out(CollectiveCall call, std::uint32_t index, MessageSizes sizes, ChannelShare share,
                         Buffer source, std::int64_t place) {
  const std::uint32_t n = call.communicator->size();
  for (std::uint32_t i = 1; i < n; ++i) {
    Exchange exchange(sizes);
    exchange.send((index + i) % n, source, one_piece(share.of(place, block_bytes(call, index))));
    for (Step step; exchange.next(step);) co_yield step;
  }
}

StepGenerator gather_in(CollectiveCall call, std::uint32_t index, MessageSizes sizes, ChannelShare share) {
  const std::uint32_t n = call.communicator->size();
  for (std::uint32_t i = 1; i < n; ++i) {
    const std::uint32_t peer = (index + n - i) % n;
    Exchange exchange(sizes);
    exchange.receive(peer, Buffer::output, one_piece(share.of(block_begin(call, peer), block_bytes(call, peer))));
    for (Step step; exchange.next(step);) co_yield step;
  }
}

StepGenerator all_gather_in(CollectiveCall call, std::uint32_t index, MessageSizes sizes, ChannelShare share) {
  const Piece own = share.of(0, block_bytes(call, index));
  Step copy = local_copy(Buffer::input, own.offset, Buffer::output, block_begin(call, index) + own.offset, own.bytes);
  if (own.bytes > 0) co_yield copy;
  StepGenerator rest = gather_in(call, index, sizes, share);
  for (Step step; rest.next(step);) co_yield step;
}

StepGenerator all_reduce_out(CollectiveCall call, std::uint32_t index, MessageSizes sizes, ChannelShare share,
                             std::uint32_t adding_lane) {
  StepGenerator first = scatter_out(call, index, sizes, share);
  for (Step step; first.next(step);) co_yield step;
  const Step wait = waits_for(adding_lane, 1);
  co_yield wait;
  StepGenerator second = gather_out(call, index, sizes, share, Buffer::output, block_begin(call, index));
  for (Step step; second.next(step);) co_yield step;
}

StepGenerator all_reduce_in(CollectiveCall call, std::uint32_t index, MessageSizes sizes, ChannelShare share) {
  StepGenerator first = scatter_in(call, index, sizes, share, block_begin(call, index), true);
  for (Step step; first.next(step);) co_yield step;
  StepGenerator second = gather_in(call, index, sizes, share);
  for (Step step; second.next(step);) co_yield step;
}

class Direct final : public CollectiveAlgorithm {
 public:
  bool supports(CollectiveKind kind) const override { return is_all_reduce_or_phase(kind); }
  bool takes_block_tables(CollectiveKind kind) const override { return kind != CollectiveKind::all_reduce; }
  std::uint32_t lanes(const CollectiveCall& call) const override { return 2 * call.tuning.channels; }
  std::uint32_t credits(const CollectiveCall& call) const override { return MessageSizes::whole(call).credits; }

  std::unique_ptr<StepStream> steps(const CollectiveCall& call, std::uint32_t index,
                                    std::uint32_t lane) const override {
    expect_valid_lane(*this, call, index, lane);
    if (call.communicator->size() == 1) return lone_stream(call, lane);
    const MessageSizes sizes = MessageSizes::whole(call);
    const std::uint32_t channels = call.tuning.channels;
    const ChannelShare share{channels, lane % channels};
    const bool in = lane >= channels;
    if (call.kind == CollectiveKind::all_gather)
      return stream_of(in ? all_gather_in(call, index, sizes, share)
                          : gather_out(call, index, sizes, share, Buffer::input, 0));
    if (call.kind == CollectiveKind::reduce_scatter)
      return stream_of(in ? scatter_in(call, index, sizes, share, 0, false) : scatter_out(call, index, sizes, share));
    return stream_of(in ? all_reduce_in(call, index, sizes, share)
                        : all_reduce_out(call, index, sizes, share, channels + share.channel));
  }
};

const Registration<CollectiveAlgorithm, Direct> direct_registration("direct", "all pairs at once, one or two rounds");

}  // namespace
}  // namespace weft
