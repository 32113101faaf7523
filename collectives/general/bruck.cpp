// SPDX-License-Identifier: GPL-2.0-only
// Bruck's algorithms: ceil(log2 P) rounds for any number of ranks, for short messages.
//
// J. Bruck, C.-T. Ho, S. Kipnis, E. Upfal, D. Weathersby, "Efficient algorithms for all-to-all communications in
// multiport message-passing systems", IEEE Transactions on Parallel and Distributed Systems 8(11), 1997,
// doi:10.1109/71.642949; as MPI libraries use them: Thakur, Rabenseifner, Gropp 2005, doi:10.1177/1094342005051521.
// all_gather: in round k each rank has 2^k blocks and gets those of the rank 2^k further. all_to_all: blocks are
// ordered by distance, and those whose distance has bit k travel 2^k ranks in round k, packed into one message.
// barrier: the dissemination pattern, D. Hensgen, R. Finkel, U. Manber, "Two algorithms for barrier synchronization",
// International Journal of Parallel Programming 17(1), 1988, doi:10.1007/BF01379320.
#include <algorithm>
#include <bit>

#include "collectives/steps/exchange.hpp"
#include "schedule/collective/step_generator.hpp"

namespace weft {
namespace {

/// Blocks of the ranks from `index` on, one after another in scratch, and then put in order.
StepGenerator all_gather(CollectiveCall call, std::uint32_t index, MessageSizes sizes, ChannelShare share) {
  const std::uint32_t n = call.communicator->size();
  const auto block = [&call, &share, index, n](std::uint32_t distance) {
    const std::uint32_t rank = (index + distance) % n;
    return share.of(block_begin(call, rank), block_bytes(call, rank));
  };
  const auto bytes = [&block](std::uint32_t begin, std::uint32_t end) {
    std::int64_t sum = 0;
    for (std::uint32_t distance = begin; distance < end; ++distance) sum += block(distance).bytes;
    return sum;
  };
  const Piece own = block(0);
  Step copy = local_copy(Buffer::input, own.offset - block_begin(call, index), Buffer::scratch, 0, own.bytes);
  if (own.bytes > 0) co_yield copy;
  for (std::uint32_t have = 1; have < n; have *= 2) {
    const std::uint32_t count = std::min(have, n - have);
    Exchange exchange(sizes);
    exchange.send((index + n - have) % n, Buffer::scratch, one_piece({0, bytes(0, count)}));
    exchange.receive((index + have) % n, Buffer::scratch, one_piece({bytes(0, have), bytes(have, have + count)}));
    for (Step step; exchange.next(step);) co_yield step;
  }
  std::int64_t at = 0;
  for (std::uint32_t distance = 0; distance < n; ++distance) {
    const Piece place = block(distance);
    copy = local_copy(Buffer::scratch, at, Buffer::output, place.offset, place.bytes);
    if (place.bytes > 0) co_yield copy;
    at += place.bytes;
  }
}

/// Where blocks are at the start of a round: that of distance i has gone the part of i below 2^k.
class Travellers {
 public:
  Travellers(const CollectiveCall& call, std::uint32_t index, ChannelShare share)
      : call_(call), index_(index), share_(share), ranks_(call.communicator->size()) {
    for (std::uint32_t to = 0; to < ranks_; ++to) stride_ = std::max(stride_, pair_bytes(call, 0, to));
  }
  std::uint32_t source(std::uint32_t distance, std::uint32_t hop) const {
    return (index_ + ranks_ - distance % hop) % ranks_;
  }
  std::uint32_t destination(std::uint32_t distance, std::uint32_t hop) const {
    return (source(distance, hop) + distance) % ranks_;
  }
  /// Bytes that this rank holds under `distance` when blocks have gone the bits below `hop`.
  std::int64_t bytes(std::uint32_t distance, std::uint32_t hop) const {
    return share_.of(0, pair_bytes(call_, source(distance, hop), destination(distance, hop))).bytes;
  }
  std::int64_t place(std::uint32_t distance) const { return distance * stride_; }
  /// After all places: the packed outgoing data, and then the incoming data.
  std::int64_t packed(bool incoming) const { return stride_ * ranks_ * (incoming ? 2 : 1); }

 private:
  const CollectiveCall& call_;
  std::uint32_t index_;
  ChannelShare share_;
  std::uint32_t ranks_;
  std::int64_t stride_ = 0;
};

StepGenerator all_to_all(CollectiveCall call, std::uint32_t index, MessageSizes sizes, ChannelShare share) {
  const std::uint32_t n = call.communicator->size();
  const Travellers blocks(call, index, share);
  Step copy;
  for (std::uint32_t i = 0; i < n; ++i) {
    const std::uint32_t to = (index + i) % n;
    const Piece piece = share.of(pair_input(call, index, to), pair_bytes(call, index, to));
    copy = local_copy(Buffer::input, piece.offset, Buffer::scratch, blocks.place(i), piece.bytes);
    if (piece.bytes > 0) co_yield copy;
  }
  for (std::uint32_t hop = 1; hop < n; hop *= 2) {
    std::int64_t out = 0;
    std::int64_t in = 0;
    for (std::uint32_t i = hop; i < n; ++i) {
      if ((i & hop) == 0) continue;
      copy = local_copy(Buffer::scratch, blocks.place(i), Buffer::scratch, blocks.packed(false) + out,
                        blocks.bytes(i, hop));
      if (copy.bytes.count() > 0) co_yield copy;
      out += copy.bytes.count();
      in += blocks.bytes(i, 2 * hop);
    }
    Exchange exchange(sizes);
    exchange.send((index + hop) % n, Buffer::scratch, one_piece({blocks.packed(false), out}));
    exchange.receive((index + n - hop) % n, Buffer::scratch, one_piece({blocks.packed(true), in}));
    for (Step step; exchange.next(step);) co_yield step;
    in = 0;
    for (std::uint32_t i = hop; i < n; ++i) {
      if ((i & hop) == 0) continue;
      copy = local_copy(Buffer::scratch, blocks.packed(true) + in, Buffer::scratch, blocks.place(i),
                        blocks.bytes(i, 2 * hop));
      if (copy.bytes.count() > 0) co_yield copy;
      in += copy.bytes.count();
    }
  }
  for (std::uint32_t i = 0; i < n; ++i) {
    const std::uint32_t from = (index + n - i) % n;
    const Piece piece = share.of(pair_output(call, from, index), pair_bytes(call, from, index));
    copy = local_copy(Buffer::scratch, blocks.place(i), Buffer::output, piece.offset, piece.bytes);
    if (piece.bytes > 0) co_yield copy;
  }
}

/// In round k each rank passes all arrivals that it knows of to the rank 2^k further.
StepGenerator barrier(CollectiveCall call, std::uint32_t index, MessageSizes sizes, ChannelShare share) {
  const std::uint32_t n = call.communicator->size();
  const Piece token = share.of(0, call.size.count());
  Buffer have = Buffer::input;
  for (std::uint32_t hop = 1; hop < n; hop *= 2) {
    Exchange exchange(sizes);
    exchange.send((index + hop) % n, have, one_piece(token));
    exchange.reduce((index + n - hop) % n, have, 0, 2 * hop < n ? Buffer::scratch : Buffer::output, one_piece(token));
    for (Step step; exchange.next(step);) co_yield step;
    have = Buffer::scratch;
  }
}

class Bruck final : public CollectiveAlgorithm {
 public:
  bool supports(CollectiveKind kind) const override {
    return kind == CollectiveKind::all_gather || kind == CollectiveKind::all_to_all || kind == CollectiveKind::barrier;
  }
  bool takes_block_tables(CollectiveKind kind) const override { return kind == CollectiveKind::all_gather; }
  std::uint32_t credits(const CollectiveCall& call) const override { return MessageSizes::whole(call).credits; }

  std::unique_ptr<StepStream> steps(const CollectiveCall& call, std::uint32_t index,
                                    std::uint32_t lane) const override {
    expect_valid_lane(*this, call, index, lane);
    if (call.communicator->size() == 1) return lone_stream(call, lane);
    const MessageSizes sizes = MessageSizes::whole(call);
    const ChannelShare share{call.tuning.channels, lane};
    if (call.kind == CollectiveKind::barrier) return stream_of(barrier(call, index, sizes, share));
    if (call.kind == CollectiveKind::all_gather) return stream_of(all_gather(call, index, sizes, share));
    return stream_of(all_to_all(call, index, sizes, share));
  }
};

const Registration<CollectiveAlgorithm, Bruck> bruck_registration("bruck",
                                                                  "ceil(log2 P) rounds for any number of ranks");

}  // namespace
}  // namespace weft
