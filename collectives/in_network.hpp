// SPDX-License-Identifier: GPL-2.0-only
// What collectives share whose data switches reduce and copy: shares of heads, sums of several peers, copies to them.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "collectives/exchange.hpp"
#include "schedule/step_generator.hpp"

namespace weft {

/// Who is responsible for which bytes: head h of a channel, of which there are several, chunk by chunk.
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

/// What comes from `peers` (one or more) is summed up, with the bytes at `own` if there are such, and goes to
/// `target`, or, if `to` is a peer, to it. At most three at a time (Step): further ones by further steps, with the
/// sum so far in `target`. The last step marks.
StepGenerator sum_of(std::vector<std::uint32_t> peers, MessageSizes sizes, std::int64_t bytes, std::optional<Place> own,
                     Place target, std::optional<std::uint32_t> to);

/// What is at `source` goes to each of `peers`, after the wait that `first` names.
StepGenerator send_to_all(std::vector<std::uint32_t> peers, MessageSizes sizes, std::int64_t bytes, Place source,
                          std::uint32_t wait_lane = no_lane, std::uint64_t wait_marks = 0);

/// What comes from `from` is stored at `target` and goes to each of `peers`.
StepGenerator copy_to_all(std::uint32_t from, std::vector<std::uint32_t> peers, MessageSizes sizes, std::int64_t bytes,
                          Place target);

/// Steps of one piece, with its slices.
Step step_of(Primitive primitive, const MessageSizes& sizes, std::int64_t bytes);

/// Bytes of a chunk unless the tuning says otherwise: NCCL src/enqueue.cc, for NCCL_ALGO_NVLS (128 KiB, less for small
/// calls: NCCL_NVLS_CHUNKSIZE in src/transport/nvls.cc).
MessageSizes nvls_sizes(const CollectiveCall& call, std::uint32_t heads);

inline StepGenerator no_steps() { co_return; }

}  // namespace weft
