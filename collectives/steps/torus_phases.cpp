// SPDX-License-Identifier: GPL-2.0-only
#include "collectives/steps/torus_phases.hpp"

#include <algorithm>

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

/// The blocks of those members that share the coordinates of the phases before `phase` with `index`, and have `x` in
/// it: runs of consecutive ones as one piece where the channel has whole blocks.
Pieces blocks_of(const CollectiveCall& call, const Grid& grid, const PhaseOrder& order, std::uint32_t index,
                 std::uint32_t phase, std::uint32_t x, ChannelShare share) {
  std::uint32_t fixed = 0;  // bit set of dimensions
  std::uint32_t base = 0;
  for (std::uint32_t p = 0; p <= phase; ++p) {
    const std::uint32_t dimension = order.dimensions[p];
    fixed |= 1U << dimension;
    base += (p == phase ? x : grid.coordinate(index, dimension)) * grid.stride(dimension);
  }
  std::uint32_t run = 1;
  if (share.channels == 1)
    for (std::uint32_t d = 0; d < grid.count && (fixed >> d & 1U) == 0; ++d) run *= grid.sizes[d];
  return [&call, grid, fixed, base, run, share](std::uint32_t number) -> std::optional<Piece> {
    std::uint32_t member = base;
    std::uint64_t rest = std::uint64_t{number} * run;
    for (std::uint32_t d = 0; d < grid.count; ++d) {
      if ((fixed >> d & 1U) != 0) continue;
      member += static_cast<std::uint32_t>(rest % grid.sizes[d]) * grid.stride(d);
      rest /= grid.sizes[d];
    }
    if (rest > 0) return std::nullopt;
    if (run == 1) return share.of(block_begin(call, member), block_bytes(call, member));
    const std::int64_t begin = block_begin(call, member);
    return Piece{begin, block_begin(call, member + run - 1) + block_bytes(call, member + run - 1) - begin};
  };
}

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
  const Piece own = share.of(0, block_bytes(call, index));
  Step copy = local_copy(Buffer::input, own.offset, Buffer::output, block_begin(call, index) + own.offset, own.bytes);
  if (own.bytes > 0) co_yield copy;
  for (std::uint32_t phase = grid.count; phase-- > 0;) {
    const GridRing ring(grid, order, index, phase);
    for (std::uint32_t step = 0; step + 1 < ring.size; ++step) {
      Exchange exchange(sizes);
      exchange.send(ring.next, Buffer::output, blocks_of(call, grid, order, index, phase, ring.before(step), share));
      exchange.receive(ring.previous, Buffer::output,
                       blocks_of(call, grid, order, index, phase, ring.before(step + 1), share));
      for (Step one; exchange.next(one);) co_yield one;
    }
  }
}

StepGenerator block_reduce_scatter(CollectiveCall call, Grid grid, PhaseOrder order, std::uint32_t index,
                                   MessageSizes sizes, ChannelShare share) {
  for (std::uint32_t phase = 0; phase < grid.count; ++phase) {
    const GridRing ring(grid, order, index, phase);
    const Buffer local = phase == first_active(grid, order) ? Buffer::input : Buffer::scratch;
    for (std::uint32_t step = 1; step < ring.size; ++step) {
      Exchange exchange(sizes);
      exchange.send(ring.next, step == 1 ? local : Buffer::scratch,
                    blocks_of(call, grid, order, index, phase, ring.before(step), share));
      if (phase == last_active(grid, order) && step + 1 == ring.size)
        exchange.reduce(ring.previous, local, block_begin(call, index), Buffer::output,
                        one_piece(share.of(0, block_bytes(call, index))));
      else
        exchange.reduce(ring.previous, local, 0, Buffer::scratch,
                        blocks_of(call, grid, order, index, phase, ring.before(step + 1), share));
      for (Step one; exchange.next(one);) co_yield one;
    }
  }
}

}  // namespace weft
