// SPDX-License-Identifier: GPL-2.0-only
// What algorithms written as coroutines share: message sizes, pieces of buffers, exchanges and local copies.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "schedule/collective/collective.hpp"
#include "schedule/collective/step_generator.hpp"

namespace weft {

/// How a message is cut. Without a `chunk_size` in the tuning a message is whole, as MPI libraries send it, or cut into
/// NCCL's steps.
struct MessageSizes {
  std::int64_t chunk = 0;     ///< bytes of a full chunk
  std::uint32_t slices = 1;   ///< of a full chunk
  std::uint32_t credits = 0;  ///< slices in flight per connection, in each direction; at least those of a chunk
  std::uint32_t ahead = 1;    ///< chunks that an exchange sends before it waits for the first one of its peer

  /// Whole messages; 8 in flight per connection.
  static MessageSizes whole(const CollectiveCall& call);
  /// NCCL's protocol buffers cut into 8 steps (src/include/device.h, NCCL_STEPS), a chunk being one of them: Simple
  /// 512 KiB, LL 32 KiB of data, LL128 576,000 bytes of data.
  static MessageSizes nccl_step(const CollectiveCall& call);
  static std::int64_t nccl_step_bytes(Protocol protocol);
  /// The same of the call's or the machine's buffers, which are those of Simple.
  static std::int64_t nccl_step_bytes(const CollectiveCall& call);
  /// Slice length of a chunk, in bytes: aligned, near-equal (NCCL src/device/prims_simple.h, genericOp).
  std::int64_t slice(std::int64_t bytes) const;

 private:
  static MessageSizes of(const CollectiveCall& call, std::int64_t chunk);
};

/// Consecutive bytes of a buffer.
struct Piece {
  std::int64_t offset = 0;
  std::int64_t bytes = 0;
};

/// A channel's share of some bytes: near-equal and aligned to 16 bytes, as NCCL's (src/enqueue.cc).
struct ChannelShare {
  std::uint32_t channels = 1;
  std::uint32_t channel = 0;
  Piece of(std::int64_t begin, std::int64_t bytes) const;
};

/// Piece number i, or nothing after the last one.
using Pieces = std::function<std::optional<Piece>(std::uint32_t)>;
Pieces one_piece(Piece piece);

/// One after another the chunks of pieces, the empty ones left out.
class PieceCursor {
 public:
  PieceCursor() = default;
  PieceCursor(Pieces pieces, std::int64_t chunk);
  bool done() const { return left_.bytes == 0; }
  std::int64_t offset() const { return left_.offset; }
  std::int64_t bytes() const;
  void advance();

 private:
  void find_piece();
  Pieces pieces_;
  std::int64_t chunk_ = 0;
  std::uint32_t number_ = 0;
  Piece left_;  ///< of the current piece
};

/// A rank sends pieces to one peer and takes pieces from another (or the same) one: chunk by chunk, some of its own
/// sent ahead of those that it has received. It never deadlocks among ranks that all do so in a cycle, because `ahead`
/// is what fits into the slots of a connection.
class Exchange {
 public:
  explicit Exchange(const MessageSizes& sizes) : sizes_(sizes) {}
  Exchange& send(std::uint32_t peer, Buffer source, Pieces pieces);
  Exchange& receive(std::uint32_t peer, Buffer target, Pieces pieces);
  /// Arriving data are reduced with the bytes of `source` that lie `shift` bytes further than those of `target`.
  Exchange& reduce(std::uint32_t peer, Buffer source, std::int64_t shift, Buffer target, Pieces pieces);
  bool next(Step& step);

 private:
  void take(PieceCursor& chunks, Step& step) const;
  MessageSizes sizes_;
  PieceCursor sends_;
  PieceCursor receives_;
  std::uint32_t send_peer_ = 0;
  std::uint32_t receive_peer_ = 0;
  Buffer send_source_ = Buffer::input;
  Buffer source_ = Buffer::input;
  Buffer target_ = Buffer::output;
  std::int64_t shift_ = 0;
  bool reduces_ = false;
  std::uint32_t lead_ = 0;
};

/// A step within the rank; of 0 bytes if there is nothing to do.
Step local_copy(Buffer source, std::int64_t from, Buffer target, std::int64_t to, std::int64_t bytes);
Step waits_for(std::uint32_t lane, std::uint64_t marks);
Step marks();

/// The same step for each chunk of `part`, which has the same place in both buffers.
StepGenerator chunks_of(Step step, MessageSizes sizes, Piece part);

/// One rank alone: its block goes from input to output where these differ.
std::unique_ptr<StepStream> lone_stream(const CollectiveCall& call, std::uint32_t lane);

/// Contract of CollectiveAlgorithm::steps.
void expect_valid_lane(const CollectiveAlgorithm& algorithm, const CollectiveCall& call, std::uint32_t index,
                       std::uint32_t lane);

/// Prime factors dealt to two near-equal factors, the larger one first: the torus that is assumed where none is given.
std::vector<std::uint32_t> torus_dimensions(const CollectiveCall& call);
/// Members of a server: as the tuning says, or the largest divisor of the ranks up to 8.
std::uint32_t server_size(const CollectiveCall& call);
/// Why a call of servers of `server` ranks cannot be, if one of them is not whole; else an empty text.
std::string refuse_parts_of_servers(const CollectiveCall& call, std::uint32_t server);
constexpr std::int64_t ceil_divide(std::int64_t a, std::int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }
constexpr std::int64_t aligned(std::int64_t bytes) { return ceil_divide(bytes, 16) * 16; }

}  // namespace weft
