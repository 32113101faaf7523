// SPDX-License-Identifier: GPL-2.0-only
// P - 1 rounds, in each of which every rank sends to one rank and receives from one.
//
// R. Thakur, R. Rabenseifner, W. Gropp, IJHPCA 19(1), 2005, doi:10.1177/1094342005051521: all_to_all for long messages,
// reduce_scatter for long vectors. In round k rank r exchanges with r xor k if P is a power of two, else it sends to
// r + k and receives from r - k. (P - 1)(alpha + m beta) with m bytes per pair.
#include <bit>

#include "collectives/steps/exchange.hpp"
#include "schedule/collective/step_generator.hpp"

namespace weft {
namespace {

struct Peers {
  std::uint32_t to = 0;
  std::uint32_t from = 0;
};
Peers peers_in(std::uint32_t round, std::uint32_t index, std::uint32_t ranks) {
  if (std::has_single_bit(ranks)) return {index ^ round, index ^ round};
  return {(index + round) % ranks, (index + ranks - round) % ranks};
}

StepGenerator pairwise_all_to_all(CollectiveCall call, std::uint32_t index, MessageSizes sizes, ChannelShare share) {
  const std::uint32_t n = call.communicator->size();
  const Piece own = share.of(pair_input(call, index, index), pair_bytes(call, index, index));
  Step copy = local_copy(Buffer::input, own.offset, Buffer::output,
                         own.offset - pair_input(call, index, index) + pair_output(call, index, index), own.bytes);
  if (own.bytes > 0) co_yield copy;
  for (std::uint32_t round = 1; round < n; ++round) {
    const Peers peers = peers_in(round, index, n);
    Exchange exchange(sizes);
    exchange.send(peers.to, Buffer::input,
                  one_piece(share.of(pair_input(call, index, peers.to), pair_bytes(call, index, peers.to))));
    exchange.receive(peers.from, Buffer::output,
                     one_piece(share.of(pair_output(call, peers.from, index), pair_bytes(call, peers.from, index))));
    for (Step step; exchange.next(step);) co_yield step;
  }
}

/// Partial sums of the own block are in scratch until the last round.
StepGenerator reduce_scatter(CollectiveCall call, std::uint32_t index, MessageSizes sizes, ChannelShare share) {
  const std::uint32_t n = call.communicator->size();
  const Piece own = share.of(0, block_bytes(call, index));
  for (std::uint32_t round = 1; round < n; ++round) {
    const Peers peers = peers_in(round, index, n);
    Exchange exchange(sizes);
    exchange.send(peers.to, Buffer::input,
                  one_piece(share.of(block_begin(call, peers.to), block_bytes(call, peers.to))));
    exchange.reduce(peers.from, round == 1 ? Buffer::input : Buffer::scratch, round == 1 ? block_begin(call, index) : 0,
                    round + 1 == n ? Buffer::output : Buffer::scratch, one_piece(own));
    for (Step step; exchange.next(step);) co_yield step;
  }
}

StepGenerator pairwise_all_gather(CollectiveCall call, std::uint32_t index, MessageSizes sizes, ChannelShare share) {
  const std::uint32_t n = call.communicator->size();
  const Piece own = share.of(0, block_bytes(call, index));
  Step copy = local_copy(Buffer::input, own.offset, Buffer::output, block_begin(call, index) + own.offset, own.bytes);
  if (own.bytes > 0) co_yield copy;
  for (std::uint32_t round = 1; round < n; ++round) {
    const Peers peers = peers_in(round, index, n);
    Exchange exchange(sizes);
    exchange.send(peers.to, Buffer::input, one_piece(own));
    exchange.receive(peers.from, Buffer::output,
                     one_piece(share.of(block_begin(call, peers.from), block_bytes(call, peers.from))));
    for (Step step; exchange.next(step);) co_yield step;
  }
}

class Pairwise final : public CollectiveAlgorithm {
 public:
  bool supports(CollectiveKind kind) const override {
    return kind == CollectiveKind::all_to_all || kind == CollectiveKind::reduce_scatter ||
           kind == CollectiveKind::all_gather;
  }
  bool takes_block_tables(CollectiveKind) const override { return true; }
  std::uint32_t credits(const CollectiveCall& call) const override { return MessageSizes::whole(call).credits; }

  std::unique_ptr<StepStream> steps(const CollectiveCall& call, std::uint32_t index,
                                    std::uint32_t lane) const override {
    expect_valid_lane(*this, call, index, lane);
    if (call.communicator->size() == 1) return lone_stream(call, lane);
    const MessageSizes sizes = MessageSizes::whole(call);
    const ChannelShare share{call.tuning.channels, lane};
    if (call.kind == CollectiveKind::all_to_all) return stream_of(pairwise_all_to_all(call, index, sizes, share));
    if (call.kind == CollectiveKind::reduce_scatter) return stream_of(reduce_scatter(call, index, sizes, share));
    return stream_of(pairwise_all_gather(call, index, sizes, share));
  }
};

const Registration<CollectiveAlgorithm, Pairwise> pairwise_registration("pairwise",
                                                                        "P - 1 rounds, one partner to send to in each");

}  // namespace
}  // namespace weft
