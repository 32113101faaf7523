// SPDX-License-Identifier: GPL-2.0-only
// All-to-all dimension by dimension: in each, blocks go to the rank that has their destination's coordinate there.
//
// As in ASTRA-sim (Sys::generate_collective: an all-to-all of all bytes in each dimension in turn): in dimension d of
// k_d ranks a rank sends k_d - 1 bundles of S / k_d bytes. direct: straight to their destination; ring: from neighbour
// to neighbour, k_d (k_d - 1) / 2 bundles by each (Ring.cc, stream_count). Bundles are packed, so that each is one
// message.
#include <algorithm>

#include "collectives/general/by_dimension.hpp"

namespace weft::by_dimension {
namespace {

/// One block, with its source and destination.
struct Block {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
};

/// Bundles of a part, and where a rank keeps them. Before dimension d a rank has the blocks of all sources that share
/// its coordinates in d and above, to all destinations that share those below d.
struct Bundles {
  DimensionPlan plan;
  std::uint32_t part = 0;

  const Grid& grid() const { return plan.grid; }
  Piece input(std::uint32_t from, std::uint32_t to) const {
    return plan.part(part).of(pair_input(plan.call, from, to), pair_bytes(plan.call, from, to));
  }
  std::int64_t bytes(const Block& block) const { return input(block.from, block.to).bytes; }
  std::int64_t unit() const {  ///< of the largest block
    return plan.part(part).of(0, pair_bytes(plan.call, 0, 0)).bytes;
  }
  /// Blocks of a bundle in `dimension`.
  std::uint32_t count(std::uint32_t dimension) const { return plan.ranks() / plan.size(dimension); }

  /// Block `number` of the bundle from coordinate `from` to `to` of `dimension`, as this rank or those in line with it
  /// in that dimension know it.
  Block block(std::uint32_t dimension, std::uint32_t from, std::uint32_t to, std::uint32_t number) const {
    Block found{plan.peer(dimension, from), plan.peer(dimension, to)};
    for (std::uint32_t d = grid().count; d-- > 0;) {
      if (d == dimension) continue;
      std::uint32_t& member = d > dimension ? found.to : found.from;
      member = grid().moved(member, d, number % plan.size(d) + plan.size(d) - grid().coordinate(member, d));
      number /= plan.size(d);
    }
    return found;
  }
  std::uint32_t number_of(std::uint32_t dimension, const Block& block) const {
    std::uint32_t number = 0;
    for (std::uint32_t d = 0; d < grid().count; ++d)
      if (d != dimension) number = number * plan.size(d) + grid().coordinate(d > dimension ? block.to : block.from, d);
    return number;
  }
  std::int64_t bundle_bytes(std::uint32_t dimension, std::uint32_t from, std::uint32_t to,
                            std::uint32_t before = no_lane) const {
    const std::uint32_t end = std::min(before, count(dimension));
    if (plan.call.size.count() % plan.ranks() == 0) return std::int64_t{end} * unit();
    std::int64_t sum = 0;
    for (std::uint32_t i = 0; i < end; ++i) sum += bytes(block(dimension, from, to, i));
    return sum;
  }

  /// Scratch: for each dimension and part, bundles by their two coordinates.
  std::int64_t area(std::uint32_t dimension, std::uint32_t from, std::uint32_t to) const {
    const std::int64_t room = std::int64_t{count(dimension)} * plan.part(0).of(0, pair_bytes(plan.call, 0, 0)).bytes;
    std::int64_t at = 0;
    for (std::uint32_t d = 0; d < dimension; ++d)
      at += std::int64_t{plan.size(d)} * plan.size(d) * count(d) *
            plan.part(0).of(0, pair_bytes(plan.call, 0, 0)).bytes * plan.parts();
    return at + ((std::int64_t{part} * plan.size(dimension) + from) * plan.size(dimension) + to) * room;
  }
  /// The place of a block before `dimension`: where a bundle with it was received, or in the input.
  std::pair<Buffer, std::int64_t> place(std::uint32_t dimension, const Block& block) const {
    for (std::uint32_t d = dimension; d-- > 0;) {
      const std::uint32_t from = grid().coordinate(block.from, d), self = plan.coordinate(d);
      if (from == self) continue;
      return {Buffer::scratch, area(d, from, self) + bundle_bytes(d, from, self, number_of(d, block))};
    }
    return {Buffer::input, input(block.from, block.to).offset};
  }
};

/// Copies the blocks of a bundle together.
StepGenerator pack(Bundles bundles, std::uint32_t dimension, std::uint32_t to) {
  const std::uint32_t self = bundles.plan.coordinate(dimension);
  std::int64_t at = bundles.area(dimension, self, to);
  for (std::uint32_t i = 0; i < bundles.count(dimension); ++i) {
    const Block block = bundles.block(dimension, self, to, i);
    const auto [buffer, from] = bundles.place(dimension, block);
    const Step copy = reordered(buffer, from, Buffer::scratch, at, bundles.bytes(block));
    at += bundles.bytes(block);
    if (copy.bytes > Bytes(0)) co_yield copy;
  }
}

StepGenerator pack_all(Bundles bundles, std::uint32_t dimension) {
  const std::uint32_t k = bundles.plan.size(dimension), self = bundles.plan.coordinate(dimension);
  for (std::uint32_t i = 1; i < k; ++i) {
    StepGenerator one = pack(bundles, dimension, (self + i) % k);
    for (Step step; one.next(step);) co_yield step;
  }
}

Step bundle_step(const Bundles& bundles, std::uint32_t dimension, Primitive primitive, std::uint32_t peer,
                 std::uint32_t from, std::uint32_t to) {
  const std::int64_t at = bundles.area(dimension, from, to);
  return whole_message(primitive, bundles.plan.peer(dimension, peer), Buffer::scratch, at, Buffer::scratch, at,
                       bundles.bundle_bytes(dimension, from, to));
}

/// In the order of with_all_others() of by_dimension.cpp.
StepGenerator exchange_direct(Bundles bundles, std::uint32_t dimension) {
  const std::uint32_t k = bundles.plan.size(dimension), self = bundles.plan.coordinate(dimension);
  const std::uint32_t window = bundles.plan.windows[dimension];
  const std::uint32_t ahead = window == 0 ? k - 1 : std::min(window, k - 1);
  for (std::uint32_t place = 0; place < k - 1 + ahead; ++place)
    for (const Primitive primitive : {Primitive::recv, Primitive::send}) {
      const bool out = primitive == Primitive::send;
      if (out ? place >= k - 1 : place < ahead) continue;
      const std::uint32_t i = out ? place + 1 : place - ahead + 1;
      const std::uint32_t other = (self + (out ? i : k - i)) % k;
      const Step step = bundle_step(bundles, dimension, primitive, other, out ? self : other, out ? other : self);
      if (step.bytes > Bytes(0)) co_yield step;
    }
}

/// In round r bundles move on that have r hops or more to go.
StepGenerator exchange_ring(Bundles bundles, std::uint32_t dimension) {
  const std::uint32_t k = bundles.plan.size(dimension), self = bundles.plan.coordinate(dimension);
  for (std::uint32_t round = 1; round < k; ++round)
    for (std::uint32_t distance = round; distance < k; ++distance)
      for (const Primitive primitive : {Primitive::send, Primitive::recv}) {
        const bool out = primitive == Primitive::send;
        const std::uint32_t from = (self + 2 * k - round + (out ? 1 : 0)) % k;
        const Step step =
            bundle_step(bundles, dimension, primitive, (self + (out ? 1 : k - 1)) % k, from, (from + distance) % k);
        if (step.bytes > Bytes(0)) co_yield step;
      }
}

/// All blocks to their places in the output.
StepGenerator unpack(Bundles bundles) {
  for (std::uint32_t from = 0; from < bundles.plan.ranks(); ++from) {
    const Block block{from, bundles.plan.index};
    const auto [buffer, at] = bundles.place(bundles.plan.grid.count, block);
    const std::int64_t low = bundles.input(from, block.to).offset - pair_input(bundles.plan.call, from, block.to);
    const Step copy = reordered(buffer, at, Buffer::output, pair_output(bundles.plan.call, from, block.to) + low,
                                bundles.bytes(block));
    if (copy.bytes > Bytes(0)) co_yield copy;
  }
}

}  // namespace

StepGenerator all_to_all_lane(DimensionPlan plan, std::uint32_t dimension, std::uint32_t channel) {
  const std::uint32_t below = plan.below(dimension);
  std::uint64_t done = 0;
  for (std::uint32_t part = channel; part < plan.parts(); part += plan.call.tuning.channels, ++done) {
    const Bundles bundles{plan, part};
    const Step wait = below == plan.grid.count ? Step{} : waiting(plan.lane(below, part), done + 1);
    if (below != plan.grid.count) co_yield wait;
    StepGenerator packing = pack_all(bundles, dimension);
    for (Step step; packing.next(step);) co_yield step;
    StepGenerator moving = plan.algorithms[dimension] == DimensionAlgorithm::direct
                               ? exchange_direct(bundles, dimension)
                               : exchange_ring(bundles, dimension);
    for (Step step; moving.next(step);) co_yield step;
    if (plan.above(dimension) == plan.grid.count) {
      StepGenerator unpacking = unpack(bundles);
      for (Step step; unpacking.next(step);) co_yield step;
    }
    const Step mark = marked();
    co_yield mark;
  }
}

}  // namespace weft::by_dimension
