// SPDX-License-Identifier: GPL-2.0-only
// What the algorithms share that work in rounds, in each of which a rank exchanges bytes with one partner.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "schedule/collective/collective.hpp"

namespace weft {

/// Sizes of the messages of one call. They are those of the ring's connections, for the rounds use the same transport:
/// NCCL's protocol Simple, 4 MiB of slots per connection, a chunk being half of them and a slice half of a chunk.
///
/// A rank sends up to `ahead` chunks before it waits for the first one from its partner, as many as the slots of the
/// connection hold. Two keep the wire busy as long as a round trip is shorter than a chunk: one is on its way while the
/// other is answered. One slice per chunk and a chunk that is larger than any round make each round one message, as in
/// MPI libraries.
struct ExchangeSizes {
  std::int64_t chunk = 0;     ///< bytes of a full chunk
  std::uint32_t slices = 0;   ///< of a full chunk
  std::uint32_t credits = 0;  ///< slices in flight per connection, in each direction; at least those of a chunk
  std::uint32_t ahead = 0;    ///< chunks

  explicit ExchangeSizes(const CollectiveCall& call);
  /// Slice length of a chunk, in bytes.
  std::int64_t slice(std::int64_t bytes) const;
};

/// The nearest lower power of two, and how ranks that are too many are folded into it: of the first 2*rest ranks each
/// even one gives its data to the odd one after it, sits out, and gets the result in the end. R. Thakur, R.
/// Rabenseifner, W. Gropp, "Optimization of Collective Communication Operations in MPICH", International Journal of
/// High Performance Computing Applications 19(1), 2005, doi:10.1177/1094342005051521.
struct Fold {
  std::uint32_t levels = 0;  ///< log2(power)
  std::uint32_t power = 1;   ///< positions in the rounds
  std::uint32_t rest = 0;    ///< ranks - power

  explicit Fold(std::uint32_t ranks);
  bool paired(std::uint32_t rank) const { return rank < 2 * rest; }
  bool sits_out(std::uint32_t rank) const { return paired(rank) && rank % 2 == 0; }
  std::uint32_t position(std::uint32_t rank) const { return paired(rank) ? rank / 2 : rank - rest; }
  std::uint32_t rank_at(std::uint32_t position) const { return first_rank(position) + (position < rest ? 1 : 0); }
  /// Each position represents consecutive ranks: those from here up to the first rank of the next position (excluded).
  std::uint32_t first_rank(std::uint32_t position) const { return position + (position < rest ? position : rest); }
};

/// Consecutive blocks of a buffer: begin to end - 1.
struct BlockRange {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
};

/// How a channel's bytes lie in a buffer of equal blocks but for a shorter tail. With several channels each has the
/// same range of every block (as NCCL has it), so that its bytes of several blocks are not consecutive there.
struct BlockLayout {
  std::int64_t begin = 0;  ///< of block 0
  std::int64_t end = 0;    ///< of the buffer
  std::int64_t block = 0;  ///< bytes
  std::int64_t low = 0;    ///< the channel's bytes in each block: low to high - 1
  std::int64_t high = 0;

  std::int64_t block_begin(std::uint32_t number) const { return begin + number * block; }
  bool whole() const { return low == 0 && high == block; }
  /// The channel's bytes alone, one after another.
  BlockLayout packed() const;
  /// Block b belongs to rank b.
  static BlockLayout of_ranks(const CollectiveCall& call, std::uint32_t channel);
  /// The channel's part of a vector, in so many blocks. Their borders are aligned: no element is cut.
  static BlockLayout of_vector(const CollectiveCall& call, std::uint32_t channel, std::uint32_t blocks);
};

/// One after another the chunks of some blocks whose bytes are consecutive.
class ChunkCursor {
 public:
  ChunkCursor() = default;
  ChunkCursor(const BlockLayout& layout, BlockRange blocks, std::int64_t chunk);
  bool done() const { return begin_ >= end_; }
  std::int64_t offset() const { return begin_; }
  std::int64_t bytes() const;
  void advance() { begin_ += bytes(); }

 private:
  std::int64_t chunk_ = 0;
  std::int64_t begin_ = 0;  ///< what is left
  std::int64_t end_ = 0;
};

/// One round of a rank. What it sends and what it takes have the same place in the buffers of both partners.
struct Round {
  std::uint32_t peer = 0;
  BlockRange copy;       ///< from source to target, before anything else
  BlockRange send;       ///< from source
  BlockRange receive;    ///< to target
  bool reduces = false;  ///< what comes in with source
  bool instant = false;  ///< the copy: Step::instant
  Buffer source = Buffer::output;
  Buffer target = Buffer::output;
};

/// Steps of a rank and channel, made of rounds one after another.
///
/// A channel that has a part of every block works in scratch, where its parts follow each other, so that each round is
/// still one message and not one per block. Rounds of their own copy the parts from the input or into the output; they
/// take no time, for a library sends and receives such parts from where they are (MPI's derived datatypes).
class RoundStream : public StepStream {
 public:
  /// `own` is the buffer that holds only the block of the rank, if there is one.
  RoundStream(const CollectiveCall& call, std::uint32_t index, const BlockLayout& layout,
              std::optional<Buffer> own = std::nullopt);
  bool next(Step& step) final;

 protected:
  virtual std::uint32_t rounds() const = 0;
  virtual void fill(std::uint32_t number, Round& round) const = 0;

  const Fold& fold() const { return fold_; }
  std::uint32_t index() const { return index_; }
  std::uint32_t ranks() const { return ranks_; }
  bool paired() const { return fold_.paired(index_); }
  bool sits_out() const { return fold_.sits_out(index_); }
  std::uint32_t position() const { return fold_.position(index_); }
  /// The other one of the pair.
  std::uint32_t pair() const { return index_ ^ 1; }
  /// The channel has a part of every block.
  bool strided() const { return !buffers_.whole(); }
  /// Where the data of the rounds are that would be in `buffer` if the channel had whole blocks.
  Buffer place_of(Buffer buffer) const { return strided() ? Buffer::scratch : buffer; }
  /// Rounds that copy the parts of all blocks one by one, and such a round.
  std::uint32_t packing_rounds() const { return strided() ? ranks_ : 0; }
  void copy_part(std::uint32_t block, Buffer source, Buffer target, Round& round) const;
  /// Even ranks of pairs send all `blocks` of their input, which the odd ones reduce with theirs.
  void fold_in(BlockRange blocks, Round& round) const;
  /// The even rank of a pair gets `blocks` of the result from `source` of the odd one.
  void fold_out(BlockRange blocks, Buffer source, Round& round) const;
  /// Reduces with the data so far: the input until something was reduced into scratch.
  void reduce(bool first, Round& round) const;

 private:
  bool start_round();
  Bytes place(Buffer buffer, std::int64_t offset) const;
  void take(ChunkCursor& chunks, Step& step) const;

  ExchangeSizes sizes_;
  BlockLayout buffers_;  ///< input and output
  BlockLayout layout_;   ///< the same without what other channels have, as in scratch
  Fold fold_;
  std::uint32_t index_;
  std::uint32_t ranks_;
  std::optional<Buffer> own_;
  std::uint32_t number_ = 0;
  Round round_;
  ChunkCursor copies_;
  ChunkCursor sends_;
  ChunkCursor receives_;
  std::uint32_t lead_ = 0;  ///< chunks sent beyond those received
};

/// all_reduce in rounds among a power of two of positions, with the folding before and after.
class FoldedAllReduce : public RoundStream {
 public:
  /// The channel's part of the vector is cut into so many blocks.
  FoldedAllReduce(const CollectiveCall& call, std::uint32_t index, std::uint32_t channel, std::uint32_t blocks)
      : RoundStream(call, index, BlockLayout::of_vector(call, channel, blocks)), all_{0, blocks} {}

 protected:
  virtual std::uint32_t exchanges() const = 0;
  /// Round `number` of a rank that does not sit out.
  virtual void exchange(std::uint32_t number, Round& round) const = 0;
  BlockRange all() const { return all_; }

 private:
  std::uint32_t rounds() const final { return exchanges() + 2; }
  void fill(std::uint32_t number, Round& round) const final;

  BlockRange all_;
};

/// all_reduce as a reduce-scatter, in each of whose rounds partners halve what both hold, and its mirror image.
class HalvingAllReduce : public FoldedAllReduce {
 public:
  HalvingAllReduce(const CollectiveCall& call, std::uint32_t index, std::uint32_t channel)
      : FoldedAllReduce(call, index, channel, Fold(call.communicator->size()).power) {}

 protected:
  /// The position with which one exchanges in round `level` of the reduce-scatter, and which of them keeps the upper
  /// half then.
  virtual std::uint32_t partner(std::uint32_t position, std::uint32_t level) const = 0;
  virtual bool keeps_upper(std::uint32_t position, std::uint32_t level) const = 0;

 private:
  std::uint32_t exchanges() const final { return 2 * fold().levels; }
  void exchange(std::uint32_t number, Round& round) const final;
  /// What a position keeps in round `level`.
  BlockRange kept(std::uint32_t position, std::uint32_t level) const;
};

/// all_gather: in each round partners swap all that they have, so that it doubles (Thakur et al. 2005). For other
/// numbers of ranks, the odd one of a pair takes the even one's block along, and gives it all the others at the end;
/// the blocks that a position represents are consecutive.
std::unique_ptr<StepStream> doubling_all_gather(const CollectiveCall& call, std::uint32_t index, std::uint32_t channel);

/// Contract of CollectiveAlgorithm::steps.
void expect_valid(const CollectiveCall& call, std::uint32_t index, std::uint32_t channel);

}  // namespace weft
