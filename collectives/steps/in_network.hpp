// SPDX-License-Identifier: GPL-2.0-only
// Code shared by collectives whose data switches reduce and copy: shares of heads, sums of several peers, copies to
// them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>

#include "collectives/steps/exchange.hpp"
#include "schedule/collective/step_generator.hpp"

namespace weft {

/// The bytes for which head h of a channel is responsible, chunk by chunk; a channel has several heads.
///
/// Of one vector (all_reduce): loop q covers the chunks q heads + h of the channel's part, as NCCL's runs do
/// (src/device/all_reduce.h, NCCL_ALGO_NVLS: gridOffset + (bid nHeads + headRank) chunkSize). Of blocks (all_gather,
/// reduce_scatter): head h has block h, and a loop the same range of each.
class HeadShares {
 public:
  static HeadShares of_vector(const CollectiveCall& call, ChannelShare share, std::uint32_t heads, std::int64_t chunk);
  static HeadShares of_blocks(const CollectiveCall& call, ChannelShare share, std::int64_t chunk);

  std::uint32_t heads() const { return heads_; }
  std::int64_t loops() const { return loops_; }
  /// Perhaps of 0 bytes.
  Piece at(std::int64_t loop, std::uint32_t head) const;
  /// Where that stands in the head's own block.
  std::int64_t in_block(std::int64_t loop, std::uint32_t head) const;
  /// Scratch for the chunk of one head in a loop; there is a place for each loop.
  std::int64_t scratch(std::int64_t loop) const { return loop * chunk_; }
  std::int64_t scratch_end() const { return loops_ * chunk_; }

 private:
  Piece range(std::uint32_t head) const;
  CollectiveCall call_;
  ChannelShare share_;
  Piece part_;  ///< of a vector
  bool blocks_ = false;
  std::uint32_t heads_ = 1;
  std::int64_t chunk_ = 1;
  std::int64_t loops_ = 0;
};

/// Where bytes are.
struct Place {
  Buffer buffer = Buffer::scratch;
  std::int64_t offset = 0;
};

/// Members in a fixed order, as a formula: base + (first + i stride) mod ring.
struct Peers {
  std::uint32_t base = 0;
  std::uint32_t first = 0;
  std::uint32_t stride = 1;
  std::uint32_t count = 0;
  std::uint64_t ring = std::uint64_t{1} << 32;

  static Peers only(std::uint32_t peer) { return pair(peer, peer + 1, 1); }
  /// The first `count` of any two members.
  static Peers pair(std::uint32_t one, std::uint32_t other, std::uint32_t count) {
    return {0, one, other - one, count};
  }
  static Peers range(std::uint32_t first, std::uint32_t count, std::uint32_t stride = 1) {
    return {0, first, stride, count};
  }
  std::uint32_t operator[](std::uint32_t i) const {
    return base + static_cast<std::uint32_t>((first + std::uint64_t{i} * stride) % ring);
  }
  Peers without_first(std::uint32_t number) const {
    return {base, (*this)[number] - base, stride, count - std::min(count, number), ring};
  }
};

/// Data from `peers` (one or more) are summed up, with the bytes at `own` if there are any, and go to `target`, or, if
/// `to` is a peer, to it. At most three at a time (Step): further ones by further steps, with the sum so far in
/// `target`. The last step marks.
StepGenerator sum_of(Peers peers, MessageSizes sizes, std::int64_t bytes, std::optional<Place> own, Place target,
                     std::optional<std::uint32_t> to);

/// What is at `source` goes to each of `peers`, after the wait that `wait_lane` names.
StepGenerator send_to_all(Peers peers, MessageSizes sizes, std::int64_t bytes, Place source,
                          std::uint32_t wait_lane = no_lane, std::uint64_t wait_marks = 0);

/// Data from `from` are stored at `target` and go to each of `peers`.
StepGenerator copy_to_all(std::uint32_t from, Peers peers, MessageSizes sizes, std::int64_t bytes, Place target);

/// The same steps, which are a part of another step to NCCL, or not (Step::joined).
StepGenerator joined(bool is_joined, StepGenerator steps);

/// Chunks of `heads`, loop by loop, without those of 0 bytes.
struct HeadChunk {
  std::int64_t loop = 0;
  std::uint32_t head = 0;
  std::int64_t offset = 0;
  std::int64_t bytes = 0;
  std::uint64_t number = 0;  ///< 1, 2, ...
};
StepGenerator of_chunks(HeadShares shares, Peers heads, std::function<StepGenerator(const HeadChunk&)> steps);

/// The GPUs of a server and the NVSwitch, each of the first GPUs head of the chunks of its place.
struct SwitchedServer {
  HeadShares shares;
  MessageSizes sizes;
  std::uint32_t aggregator = 0;
  Peers gpus;

  Peers heads() const { return Peers::range(0, shares.heads()); }
  bool is_head(std::uint32_t place) const { return place < shares.heads(); }
  /// A GPU's own data of every head, to the switch; and the result of every head from it. To NCCL these are the chunks
  /// of a loop in one step each (src/device/prims_simple.h, scatter and gather): a scatter begins with its first head,
  /// and a gather ends when the last one has arrived.
  StepGenerator contribute() const;
  StepGenerator take_all() const;
  /// The switch: the sum of all for each head, or what each head has for all; each has scratch of its own.
  StepGenerator sums_in_switch() const;
  StepGenerator copies_in_switch() const;
};

/// Steps of one piece, with its slices.
Step step_of(Primitive primitive, const MessageSizes& sizes, std::int64_t bytes);

/// Bytes of a chunk unless the tuning says otherwise: NCCL src/enqueue.cc, for NCCL_ALGO_NVLS (128 KiB, less for small
/// calls: NCCL_NVLS_CHUNKSIZE in src/transport/nvls.cc).
MessageSizes nvls_sizes(const CollectiveCall& call, std::uint32_t heads);
/// The same for NCCL_ALGO_NVLS_TREE (from four servers on no more than 64 KiB), and for NCCL_ALGO_COLLNET_DIRECT
/// (halves of a step, until there are enough chunks for what is in flight at once: two hops with neighbours in the
/// server).
MessageSizes nvls_tree_sizes(const CollectiveCall& call, std::uint32_t heads);
MessageSizes collnet_sizes(const CollectiveCall& call, std::uint32_t heads);

}  // namespace weft
