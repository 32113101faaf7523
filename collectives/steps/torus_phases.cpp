// SPDX-License-Identifier: GPL-2.0-only
#include "collectives/steps/torus_phases.hpp"

#include <algorithm>
#include <utility>

#include "support/basics/contract.hpp"

namespace weft {

Grid::Grid(const std::vector<std::uint32_t>& dimensions) : count(static_cast<std::uint32_t>(dimensions.size())) {
  WEFT_EXPECT(count > 0 && count <= max_dimensions, "{} dimensions", dimensions.size());
  std::copy(dimensions.begin(), dimensions.end(), sizes.begin());
}

std::uint32_t Grid::stride(std::uint32_t dimension) const {
  std::uint32_t product = 1;
  for (std::uint32_t d = 0; d < dimension; ++d) product *= sizes[d];
  return product;
}

std::uint32_t Grid::coordinate(std::uint32_t member, std::uint32_t dimension) const {
  return member / stride(dimension) % sizes[dimension];
}

std::uint32_t Grid::moved(std::uint32_t member, std::uint32_t dimension, std::uint32_t steps) const {
  const std::uint32_t x = coordinate(member, dimension);
  return member - x * stride(dimension) + (x + steps) % sizes[dimension] * stride(dimension);
}

PhaseOrder PhaseOrder::from(const Grid& grid, std::uint32_t first, bool mirrored) {
  PhaseOrder order;
  for (std::uint32_t i = 0; i < grid.count; ++i) order.dimensions[i] = (first + i) % grid.count;
  order.mirrored = mirrored;
  return order;
}

namespace {

/// A ring in one dimension: the next rank, and the coordinate whose part moves in step s. A part ends at its owner.
struct GridRing {
  GridRing(const Grid& grid, const PhaseOrder& order, std::uint32_t index, std::uint32_t phase)
      : dimension(order.dimensions[phase]), size(grid.sizes[dimension]), x(grid.coordinate(index, dimension)) {
    const std::uint32_t forward = order.mirrored ? size - 1 : 1;
    next = grid.moved(index, dimension, forward);
    previous = grid.moved(index, dimension, size - forward);
    direction = forward;
  }
  /// Coordinate `steps` before this one in the ring's direction.
  std::uint32_t before(std::uint32_t steps) const { return (x + (size - direction) * steps) % size; }

  std::uint32_t dimension;
  std::uint32_t size;
  std::uint32_t x;
  std::uint32_t next = 0;
  std::uint32_t previous = 0;
  std::uint32_t direction = 1;
};

/// The part of a vector that a rank has before a phase, and the part of it that belongs to a coordinate of that phase.
Piece part_of(Piece whole, std::uint32_t number, std::uint32_t parts) {
  return ChannelShare{parts, number}.of(whole.offset, whole.bytes);
}
Piece before_phase(const Grid& grid, const PhaseOrder& order, std::uint32_t index, Piece whole, std::uint32_t phase) {
  for (std::uint32_t p = 0; p < phase; ++p) {
    const std::uint32_t dimension = order.dimensions[p];
    whole = part_of(whole, grid.coordinate(index, dimension), grid.sizes[dimension]);
  }
  return whole;
}

/// First and last phases in which something moves.
std::uint32_t first_active(const Grid& grid, const PhaseOrder& order) {
  std::uint32_t phase = 0;
  while (phase < grid.count && grid.sizes[order.dimensions[phase]] == 1) ++phase;
  return phase;
}
std::uint32_t last_active(const Grid& grid, const PhaseOrder& order) {
  std::uint32_t phase = grid.count;
  while (phase > 0 && grid.sizes[order.dimensions[phase - 1]] == 1) --phase;
  return phase == 0 ? grid.count : phase - 1;
}

/// A channel's share of all blocks, one after another in scratch in an order in which each message of a phase is one
/// piece: that of phase 0's coordinates first, then that of phase 1's, and so on.
class BlockImage {
 public:
  BlockImage(const CollectiveCall& call, const Grid& grid, const PhaseOrder& order, ChannelShare share)
      : call_(call), grid_(grid), order_(order), share_(share) {}

  /// Blocks of a piece in a phase.
  std::uint32_t blocks(std::uint32_t phase) const {
    std::uint32_t product = 1;
    while (++phase < grid_.count) product *= grid_.sizes[order_.dimensions[phase]];
    return product;
  }
  std::uint32_t leaf_of(std::uint32_t member) const {
    std::uint32_t leaf = 0;
    for (std::uint32_t p = 0; p < grid_.count; ++p)
      leaf = leaf * grid_.sizes[order_.dimensions[p]] + grid_.coordinate(member, order_.dimensions[p]);
    return leaf;
  }
  /// Bytes of leaves `begin` to `end` - 1.
  std::int64_t bytes(std::uint32_t begin, std::uint32_t end) const {
    std::int64_t sum = 0;
    for (std::uint32_t leaf = begin; leaf < end; ++leaf) sum += block(leaf).bytes;
    return sum;
  }
  /// Of the member's own block.
  Piece own(std::uint32_t index) const {
    const std::uint32_t leaf = leaf_of(index);
    return {bytes(0, leaf), block(leaf).bytes};
  }
  /// Steps between the blocks of `buffer`, at their places by rank, and the image. They take no time: a library sends
  /// and receives blocks from where they are as one message (MPI's derived datatypes), and the image stands for that.
  StepGenerator pack(Buffer buffer) const { return copies(*this, buffer, true); }
  StepGenerator unpack(Buffer buffer) const { return copies(*this, buffer, false); }

 private:
  static StepGenerator copies(BlockImage image, Buffer buffer, bool packs) {
    std::int64_t at = 0;
    for (std::uint32_t leaf = 0; leaf < image.call_.communicator->size(); ++leaf) {
      const Piece piece = image.block(leaf);
      Step copy = packs ? local_copy(buffer, piece.offset, Buffer::scratch, at, piece.bytes)
                        : local_copy(Buffer::scratch, at, buffer, piece.offset, piece.bytes);
      copy.instant = true;
      if (piece.bytes > 0) co_yield copy;
      at += piece.bytes;
    }
  }
  Piece block(std::uint32_t leaf) const {
    std::uint32_t member = 0;
    for (std::uint32_t p = grid_.count; p-- > 0;) {
      const std::uint32_t dimension = order_.dimensions[p];
      member += leaf % grid_.sizes[dimension] * grid_.stride(dimension);
      leaf /= grid_.sizes[dimension];
    }
    return share_.of(block_begin(call_, member), block_bytes(call_, member));
  }

  CollectiveCall call_;
  Grid grid_;
  PhaseOrder order_;
  ChannelShare share_;
};

/// The pieces of a ring in an image, from a rank's own one backwards. Memory does not grow with the ring.
class RingPieces {
 public:
  RingPieces(const BlockImage& image, const GridRing& ring, std::uint32_t index, std::uint32_t phase)
      : image_(image), size_(ring.size), blocks_(image.blocks(phase)), x_(ring.x), upwards_(ring.direction != 1) {
    const std::uint32_t leaf = image.leaf_of(index);
    first_ = leaf - leaf % (blocks_ * size_);
    begin_ = image.bytes(0, first_);
    end_ = begin_ + image.bytes(first_, first_ + blocks_ * size_);
    piece_ = {begin_ + image.bytes(first_, first_ + x_ * blocks_), bytes(x_)};
  }
  /// That of coordinate GridRing::before(number of calls before this one).
  Piece take() {
    const Piece taken = piece_;
    upwards_ ? move_up() : move_down();
    return taken;
  }

 private:
  std::int64_t bytes(std::uint32_t x) const { return image_.bytes(first_ + x * blocks_, first_ + (x + 1) * blocks_); }
  void move_up() {
    const bool wraps = ++x_ == size_;
    if (wraps) x_ = 0;
    piece_ = {wraps ? begin_ : piece_.offset + piece_.bytes, bytes(x_)};
  }
  void move_down() {
    const std::int64_t end = x_ == 0 ? end_ : piece_.offset;
    x_ = (x_ == 0 ? size_ : x_) - 1;
    piece_.bytes = bytes(x_);
    piece_.offset = end - piece_.bytes;
  }

  const BlockImage& image_;
  std::uint32_t size_;
  std::uint32_t blocks_;
  std::uint32_t x_;
  bool upwards_;
  std::uint32_t first_ = 0;  // leaf
  std::int64_t begin_ = 0;
  std::int64_t end_ = 0;
  Piece piece_;
};

}  // namespace

StepGenerator vector_reduce_scatter(Grid grid, PhaseOrder order, std::uint32_t index, MessageSizes sizes, Piece part,
                                    std::uint32_t begin, std::uint32_t end) {
  for (std::uint32_t phase = begin; phase < end; ++phase) {
    const GridRing ring(grid, order, index, phase);
    const Piece whole = before_phase(grid, order, index, part, phase);
    const Buffer local = phase == first_active(grid, order) ? Buffer::input : Buffer::scratch;
    const bool last = phase == last_active(grid, order);
    for (std::uint32_t step = 1; step < ring.size; ++step) {
      Exchange exchange(sizes);
      exchange.send(ring.next, step == 1 ? local : Buffer::scratch,
                    one_piece(part_of(whole, ring.before(step), ring.size)));
      exchange.reduce(ring.previous, local, 0, last && step + 1 == ring.size ? Buffer::output : Buffer::scratch,
                      one_piece(part_of(whole, ring.before(step + 1), ring.size)));
      for (Step one; exchange.next(one);) co_yield one;
    }
  }
}

StepGenerator vector_all_gather(Grid grid, PhaseOrder order, std::uint32_t index, MessageSizes sizes, Piece part,
                                std::uint32_t begin, std::uint32_t end) {
  for (std::uint32_t phase = end; phase-- > begin;) {
    const GridRing ring(grid, order, index, phase);
    const Piece whole = before_phase(grid, order, index, part, phase);
    for (std::uint32_t step = 0; step + 1 < ring.size; ++step) {
      Exchange exchange(sizes);
      exchange.send(ring.next, Buffer::output, one_piece(part_of(whole, ring.before(step), ring.size)));
      exchange.receive(ring.previous, Buffer::output, one_piece(part_of(whole, ring.before(step + 1), ring.size)));
      for (Step one; exchange.next(one);) co_yield one;
    }
  }
}

StepGenerator block_all_gather(CollectiveCall call, Grid grid, PhaseOrder order, std::uint32_t index,
                               MessageSizes sizes, ChannelShare share) {
  const BlockImage image(call, grid, order, share);
  const Piece place = image.own(index);
  Step copy = local_copy(Buffer::input, share.of(0, block_bytes(call, index)).offset, Buffer::scratch, place.offset,
                         place.bytes);
  if (place.bytes > 0) co_yield copy;
  for (std::uint32_t phase = grid.count; phase-- > 0;) {
    const GridRing ring(grid, order, index, phase);
    if (ring.size == 1) continue;
    RingPieces pieces(image, ring, index, phase);
    Piece arriving = pieces.take();
    for (std::uint32_t step = 0; step + 1 < ring.size; ++step) {
      const Piece sent = std::exchange(arriving, pieces.take());
      Exchange exchange(sizes);
      exchange.send(ring.next, Buffer::scratch, one_piece(sent));
      exchange.receive(ring.previous, Buffer::scratch, one_piece(arriving));
      for (Step one; exchange.next(one);) co_yield one;
    }
  }
  StepGenerator unpacking = image.unpack(Buffer::output);
  for (Step one; unpacking.next(one);) co_yield one;
}

StepGenerator block_reduce_scatter(CollectiveCall call, Grid grid, PhaseOrder order, std::uint32_t index,
                                   MessageSizes sizes, ChannelShare share) {
  const BlockImage image(call, grid, order, share);
  StepGenerator packing = image.pack(Buffer::input);
  for (Step one; packing.next(one);) co_yield one;
  for (std::uint32_t phase = 0; phase < grid.count; ++phase) {
    const GridRing ring(grid, order, index, phase);
    if (ring.size == 1) continue;
    RingPieces pieces(image, ring, index, phase);
    pieces.take();
    Piece arriving = pieces.take();
    for (std::uint32_t step = 1; step < ring.size; ++step) {
      const Piece sent = std::exchange(arriving, pieces.take());
      Exchange exchange(sizes);
      exchange.send(ring.next, Buffer::scratch, one_piece(sent));
      if (phase == last_active(grid, order) && step + 1 == ring.size) {
        const Piece own = share.of(0, block_bytes(call, index));
        exchange.reduce(ring.previous, Buffer::scratch, image.own(index).offset - own.offset, Buffer::output,
                        one_piece(own));
      } else {
        exchange.reduce(ring.previous, Buffer::scratch, 0, Buffer::scratch, one_piece(arriving));
      }
      for (Step one; exchange.next(one);) co_yield one;
    }
  }
}

}  // namespace weft
