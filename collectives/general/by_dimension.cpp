// SPDX-License-Identifier: GPL-2.0-only
// ASTRA-sim's hierarchical collectives: one algorithm for each dimension of a grid of ranks, dimension by dimension.
//
// Sys::generate_collective of ASTRA-sim (github.com/astra-sim/astra-sim, astra-sim/system/Sys.cc) cuts a collective
// into `preferred-dataset-splits` chunks, here `splits`. Each goes through phases: reduce-scatter in dimensions 0, 1,
// ..., all-reduce in the last one, all-gather back (localBWAware); with `each_dimension_whole` (baseline) an all-reduce
// of everything in each dimension in turn. In each dimension `active-chunks-per-dimension` chunks, here `channels`, are
// in flight at a time, first come first served; a lane for each dimension and channel waits for that before it. Since
// the chunks of a collective reach dimension 0 together, their reduce-scatters go before their all-gathers there, and
// so they do here in every dimension.
//
// In a dimension: ring, direct (all pairs at once), halving_doubling (distance 1 first, powers of two) and
// double_binary_tree (all-reduce of whole chunks, the trees taking turns) as in Ring.cc, AllToAll.cc,
// HalvingDoubling.cc, DoubleBinaryTreeAllReduce.cc and BinaryTree.cc of its native_collectives. All-reduce of S bytes
// on k_0 x k_1 x ...: 2 (1 - 1/P) S bytes per rank; 2 (k_d - 1) messages a chunk in a ring, 2 log2 k_d with halving.
#include "collectives/general/by_dimension.hpp"

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "collectives/steps/kinds.hpp"
#include "support/basics/contract.hpp"

namespace weft::by_dimension {
namespace {

std::uint64_t product_of(const std::vector<std::uint32_t>& sizes) {
  std::uint64_t product = 1;
  for (const std::uint32_t size : sizes) product *= size;
  return product;
}

/// The dimensions of the tuning, or two near-equal factors.
std::vector<std::uint32_t> dimensions_of(const CollectiveCall& call) {
  const std::uint32_t n = call.communicator->size();
  const auto& given = call.tuning.dimensions;
  const auto& algorithms = call.tuning.dimension_algorithms.of(call.kind);
  if (!algorithms.empty() && algorithms.front().algorithm >= DimensionAlgorithm::one_ring) return {n};
  if (!given.empty() && product_of(given) != n) return {n};
  return torus_dimensions(call);
}

std::uint32_t reversed_bits(std::uint32_t value, std::uint32_t count) {
  std::uint32_t out = 0;
  for (std::uint32_t bit = 0; bit < count; ++bit) out |= (value >> bit & 1U) << (count - 1 - bit);
  return out;
}

/// one_ring and the like in their one dimension.
DimensionAlgorithm within(DimensionAlgorithm algorithm) {
  switch (algorithm) {
    case DimensionAlgorithm::one_ring:
      return DimensionAlgorithm::ring;
    case DimensionAlgorithm::one_direct:
      return DimensionAlgorithm::direct;
    case DimensionAlgorithm::one_halving_doubling:
      return DimensionAlgorithm::halving_doubling;
    default:
      return algorithm;
  }
}

}  // namespace

DimensionPlan::DimensionPlan(const CollectiveCall& of, std::uint32_t member)
    : call(of), grid(dimensions_of(of)), index(member) {
  const auto& given = call.tuning.dimension_algorithms.of(call.kind);
  const bool whole = call.tuning.dimensions.empty() || product_of(call.tuning.dimensions) == call.communicator->size();
  for (std::uint32_t d = 0; d < grid.count; ++d)
    if (!given.empty() && whole) {
      const auto& entry = given[std::min<std::size_t>(d, given.size() - 1)];
      algorithms[d] = within(entry.algorithm);
      windows[d] = entry.window;
    }
}

std::uint32_t DimensionPlan::below(std::uint32_t dimension) const {
  while (dimension-- > 0)
    if (active(dimension)) return dimension;
  return grid.count;
}

std::uint32_t DimensionPlan::above(std::uint32_t dimension) const {
  while (++dimension < grid.count)
    if (active(dimension)) return dimension;
  return grid.count;
}

namespace {

/// The bytes of one part, as leaves in the order in which the dimensions divide them: that of dimension 0 slowest. A
/// leaf is what a rank has at the end of a reduce-scatter.
struct Leaves {
  std::int64_t begin = 0;   ///< of leaf 0 in its buffer
  std::int64_t stride = 0;  ///< from leaf to leaf
  std::int64_t unit = 0;    ///< bytes of a full leaf
  std::int64_t total = 0;   ///< of a vector; -1: leaves are blocks of ranks
  /// Leaves of blocks of ranks that are in the order of the dimensions lie one after another, so that each message is
  /// one piece also if the last blocks are short.
  bool gapless = false;
};

/// The steps of a rank for a part in one dimension: `size` pieces of `width` leaves from `first` on.
struct Phase {
  DimensionPlan plan;
  Leaves leaves;
  std::uint32_t dimension = 0;
  std::uint32_t first = 0;
  std::uint32_t width = 1;
  std::uint32_t part = 0;

  std::uint32_t size() const { return plan.size(dimension); }
  std::uint32_t self() const { return plan.coordinate(dimension); }
  std::uint32_t peer(std::uint32_t coordinate) const { return plan.peer(dimension, coordinate % size()); }
  bool halves() const { return plan.algorithms[dimension] == DimensionAlgorithm::halving_doubling; }
  /// Halving decides by the lowest bit first: pieces are in the order of the reversed bits.
  std::uint32_t slot(std::uint32_t dim, std::uint32_t coordinate) const {
    const std::uint32_t bits = static_cast<std::uint32_t>(std::countr_zero(plan.size(dim)));
    return plan.algorithms[dim] == DimensionAlgorithm::halving_doubling ? reversed_bits(coordinate, bits) : coordinate;
  }
  std::uint32_t member_of(std::uint32_t leaf) const;
  std::uint32_t leaf_of(std::uint32_t member) const;
  std::int64_t bytes_of(std::uint32_t leaf) const;
  std::int64_t bytes_of_member(std::uint32_t member) const;
  std::int64_t place_of(std::uint32_t leaf) const;
  /// Leaves `begin` to `end` - 1 as consecutive bytes.
  std::vector<Piece> pieces(std::uint32_t begin, std::uint32_t end) const;
  std::vector<Piece> piece_of(std::uint32_t coordinate) const {
    const std::uint32_t at = first + slot(dimension, coordinate % size()) * width;
    return pieces(at, at + width);
  }
};

std::uint32_t Phase::member_of(std::uint32_t leaf) const {
  std::uint32_t member = 0;
  for (std::uint32_t d = plan.grid.count; d-- > 0;) {
    member += slot(d, leaf % plan.size(d)) * plan.grid.stride(d);
    leaf /= plan.size(d);
  }
  return member;
}

std::uint32_t Phase::leaf_of(std::uint32_t member) const {
  std::uint32_t leaf = 0;
  for (std::uint32_t d = 0; d < plan.grid.count; ++d)
    leaf = leaf * plan.size(d) + slot(d, plan.grid.coordinate(member, d));
  return leaf;
}

std::int64_t Phase::bytes_of(std::uint32_t leaf) const {
  if (leaves.total >= 0) return std::clamp<std::int64_t>(leaves.total - leaf * leaves.unit, 0, leaves.unit);
  return bytes_of_member(member_of(leaf));
}

std::int64_t Phase::bytes_of_member(std::uint32_t member) const {
  const std::int64_t low = plan.part(part).of(0, block_bytes(plan.call, 0)).offset;
  return std::clamp<std::int64_t>(block_bytes(plan.call, member) - low, 0, leaves.unit);
}

// Full blocks come first, so that only the short ones, of the last ranks, have to be looked at.
std::int64_t Phase::place_of(std::uint32_t leaf) const {
  std::int64_t place = leaves.begin + leaf * leaves.stride;
  if (!leaves.gapless) return place;
  for (std::uint32_t member = plan.ranks(); member-- > 0;) {
    const std::int64_t lacking = leaves.unit - bytes_of_member(member);
    if (lacking == 0) break;
    if (leaf_of(member) < leaf) place -= lacking;
  }
  return place;
}

std::vector<Piece> Phase::pieces(std::uint32_t begin, std::uint32_t end) const {
  std::vector<Piece> all;
  if (leaves.total >= 0) {
    const std::int64_t low = std::min(leaves.total, begin * leaves.unit);
    all.push_back({leaves.begin + low, std::min(leaves.total, end * leaves.unit) - low});
  } else if (leaves.gapless) {
    const std::int64_t place = place_of(begin);
    all.push_back({place, place_of(end) - place});
  } else {
    for (std::uint32_t leaf = begin; leaf < end; ++leaf) all.push_back({place_of(leaf), bytes_of(leaf)});
  }
  std::erase_if(all, [](const Piece& piece) { return piece.bytes == 0; });
  return all;
}

/// Where a reduction reads its input and stores its result, `shift` bytes further.
struct Places {
  Buffer local = Buffer::input;     ///< own data before the phase
  Buffer result = Buffer::scratch;  ///< own piece at its end
  std::int64_t shift = 0;
};

/// A message to each of k - 1 others and one from each. With a window, a rank sends no more than so many messages
/// beyond those that have arrived (AllToAll::run of ASTRA-sim, astra-sim/system/collective/AllToAll.cc); without, all
/// at once.
template <class Out, class In>
void with_all_others(std::uint32_t k, std::uint32_t window, const Out& out, const In& in) {
  const std::uint32_t ahead = window == 0 ? k - 1 : std::min(window, k - 1);
  for (std::uint32_t i = 1; i <= ahead; ++i) out(i);
  for (std::uint32_t i = 1; i < k; ++i) {
    in(i);
    if (i + ahead < k) out(i + ahead);
  }
}

void add_sends(std::vector<Step>& steps, std::uint32_t peer, Buffer source, const std::vector<Piece>& pieces) {
  for (const Piece& p : pieces)
    steps.push_back(whole_message(Primitive::send, peer, source, p.offset, Buffer::scratch, 0, p.bytes));
}

void add_receives(std::vector<Step>& steps, std::uint32_t peer, Buffer target, const std::vector<Piece>& pieces) {
  for (const Piece& p : pieces)
    steps.push_back(whole_message(Primitive::recv, peer, Buffer::input, 0, target, p.offset, p.bytes));
}

void add_reductions(std::vector<Step>& steps, std::uint32_t peer, Buffer source, Buffer target, std::int64_t shift,
                    const std::vector<Piece>& pieces) {
  for (const Piece& p : pieces)
    steps.push_back(
        whole_message(Primitive::recv_reduce_copy, peer, source, p.offset, target, p.offset + shift, p.bytes));
}

/// Round `step` of a reduce-scatter, from 0 on.
void reduce_round(const Phase& phase, const Places& places, std::uint32_t step, std::vector<Step>& steps) {
  const std::uint32_t k = phase.size(), x = phase.self();
  const Buffer now = step == 0 ? places.local : Buffer::scratch;
  if (phase.plan.algorithms[phase.dimension] == DimensionAlgorithm::direct) {
    with_all_others(
        k, phase.plan.windows[phase.dimension],
        [&](std::uint32_t i) { add_sends(steps, phase.peer(x + i), places.local, phase.piece_of(x + i)); },
        [&](std::uint32_t i) {
          add_reductions(steps, phase.peer(x + k - i), i == 1 ? places.local : Buffer::scratch,
                         i + 1 == k ? places.result : Buffer::scratch, i + 1 == k ? places.shift : 0,
                         phase.piece_of(x));
        });
    return;
  }
  const bool last = step + 2 == k;
  add_sends(steps, phase.peer(x + 1), now, phase.piece_of(x + 2 * k - 1 - step));
  add_reductions(steps, phase.peer(x + k - 1), places.local, last ? places.result : Buffer::scratch,
                 last ? places.shift : 0, phase.piece_of(x + 2 * k - 2 - step));
}

/// The leaves that positions keep which agree with `x` in the lowest `bits` bits.
std::vector<Piece> kept(const Phase& phase, std::uint32_t x, std::uint32_t bits) {
  const std::uint32_t levels = static_cast<std::uint32_t>(std::countr_zero(phase.size()));
  const std::uint32_t slots = 1U << (levels - bits);
  const std::uint32_t at = phase.first + (phase.slot(phase.dimension, x) & ~(slots - 1)) * phase.width;
  return phase.pieces(at, at + slots * phase.width);
}

void halving_round(const Phase& phase, const Places& places, std::uint32_t step, std::vector<Step>& steps) {
  const std::uint32_t partner = phase.self() ^ (1U << step);
  const bool last = (2U << step) == phase.size();
  const Buffer now = step == 0 ? places.local : Buffer::scratch;
  add_sends(steps, phase.peer(partner), now, kept(phase, partner, step + 1));
  add_reductions(steps, phase.peer(partner), now, last ? places.result : Buffer::scratch, last ? places.shift : 0,
                 kept(phase, phase.self(), step + 1));
}

/// Round `step` of an all-gather in `buffer`.
void gather_round(const Phase& phase, Buffer buffer, std::uint32_t step, std::vector<Step>& steps) {
  const std::uint32_t k = phase.size(), x = phase.self();
  if (phase.halves()) {
    const std::uint32_t bit = static_cast<std::uint32_t>(std::countr_zero(k)) - 1 - step;
    add_sends(steps, phase.peer(x ^ (1U << bit)), buffer, kept(phase, x, bit + 1));
    add_receives(steps, phase.peer(x ^ (1U << bit)), buffer, kept(phase, x ^ (1U << bit), bit + 1));
  } else if (phase.plan.algorithms[phase.dimension] == DimensionAlgorithm::direct) {
    with_all_others(
        k, phase.plan.windows[phase.dimension],
        [&](std::uint32_t i) { add_sends(steps, phase.peer(x + i), buffer, phase.piece_of(x)); },
        [&](std::uint32_t i) { add_receives(steps, phase.peer(x + k - i), buffer, phase.piece_of(x + k - i)); });
  } else {
    add_sends(steps, phase.peer(x + 1), buffer, phase.piece_of(x + k - step));
    add_receives(steps, phase.peer(x + k - 1), buffer, phase.piece_of(x + 2 * k - 1 - step));
  }
}

std::uint32_t rounds(const Phase& phase) {
  if (phase.halves()) return static_cast<std::uint32_t>(std::countr_zero(phase.size()));
  return phase.plan.algorithms[phase.dimension] == DimensionAlgorithm::direct ? 1 : phase.size() - 1;
}

/// A position in one of the two trees of k = 2^m: a root, and below it a full tree of k - 1 in order. The root is the
/// highest in even chunks, the lowest in odd ones.
struct TreePlace {
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
  std::uint32_t parent = none;
  std::array<std::uint32_t, 2> children{none, none};

  TreePlace(std::uint32_t position, std::uint32_t k, bool lowest) {
    const std::uint32_t root = lowest ? 0 : k - 1, shift = lowest ? 0 : 1;
    if (position == root) {
      children[0] = k / 2 - shift;
      return;
    }
    const std::uint32_t node = position + shift, level = static_cast<std::uint32_t>(std::countr_zero(node));
    const std::uint32_t above = (node & ~(1U << level)) | (2U << level);
    parent = above >= k ? root : above - shift;
    if (level == 0) return;
    children = {node - (1U << (level - 1)) - shift, node + (1U << (level - 1)) - shift};
  }
};

void tree(const Phase& phase, const Places& places, std::vector<Step>& steps) {
  const TreePlace place(phase.self(), phase.size(), phase.part % 2 == 1);
  const auto all = phase.pieces(phase.first, phase.first + phase.size() * phase.width);
  const bool root = place.parent == TreePlace::none;
  Buffer now = places.local;
  for (const std::uint32_t child : place.children) {
    if (child == TreePlace::none) continue;
    add_reductions(steps, phase.peer(child), now, root ? places.result : Buffer::scratch, 0, all);
    now = Buffer::scratch;
  }
  if (!root) {
    add_sends(steps, phase.peer(place.parent), now, all);
    add_receives(steps, phase.peer(place.parent), places.result, all);
  }
  for (const std::uint32_t child : place.children)
    if (child != TreePlace::none) add_sends(steps, phase.peer(child), places.result, all);
}

/// Rounds of a phase, one after another.
StepGenerator scatter_phase(Phase phase, Places places) {
  for (std::uint32_t step = 0; step < rounds(phase); ++step) {
    std::vector<Step> steps;
    phase.halves() ? halving_round(phase, places, step, steps) : reduce_round(phase, places, step, steps);
    for (const Step& one : steps) co_yield one;
  }
}

StepGenerator gather_phase(Phase phase, Buffer buffer) {
  for (std::uint32_t step = 0; step < rounds(phase); ++step) {
    std::vector<Step> steps;
    gather_round(phase, buffer, step, steps);
    for (const Step& one : steps) co_yield one;
  }
}

/// All-reduce in one dimension of the bytes at `places`.
StepGenerator reduce_phase(Phase phase, Places places) {
  if (phase.plan.algorithms[phase.dimension] == DimensionAlgorithm::double_binary_tree) {
    std::vector<Step> steps;
    tree(phase, places, steps);
    for (const Step& one : steps) co_yield one;
    co_return;
  }
  StepGenerator scattering = scatter_phase(phase, places);
  for (Step step; scattering.next(step);) co_yield step;
  StepGenerator gathering = gather_phase(phase, places.result);
  for (Step step; gathering.next(step);) co_yield step;
}

/// Leaves are stored in the order of the ranks.
bool in_order(const DimensionPlan& plan) {
  std::uint32_t many = 0;
  for (std::uint32_t d = 0; d < plan.grid.count; ++d)
    if (plan.active(d) && (++many > 1 || plan.algorithms[d] == DimensionAlgorithm::halving_doubling)) return false;
  return true;
}

/// The phase of part `part` in dimension `dimension`, after the dimensions below it.
Phase phase_of(const DimensionPlan& plan, std::uint32_t dimension, std::uint32_t part) {
  Phase phase{plan, {}, dimension, 0, plan.ranks(), part};
  const std::int64_t size = plan.call.size.count();
  if (plan.call.kind == CollectiveKind::all_reduce) {
    const Piece piece = plan.part(part).of(0, size);
    const std::uint32_t leaves = plan.call.tuning.each_dimension_whole ? plan.size(dimension) : plan.ranks();
    phase.leaves = {piece.offset, 0, ceil_divide(piece.bytes, leaves), piece.bytes};
    if (plan.call.tuning.each_dimension_whole) {
      phase.width = 1;
      return phase;
    }
  } else {
    const Piece piece = plan.part(part).of(0, block_bytes(plan.call, 0));
    phase.leaves = {piece.offset, block_bytes(plan.call, 0), piece.bytes, -1, false};
    if (!in_order(plan)) phase.leaves = {piece.offset * plan.ranks(), piece.bytes, piece.bytes, -1, true};
  }
  for (std::uint32_t d = 0; d < plan.grid.count && d <= dimension; ++d) {
    phase.width /= plan.size(d);
    if (d < dimension) phase.first += phase.slot(d, plan.coordinate(d)) * phase.width;
  }
  return phase;
}

/// Copies between the order of ranks, in input or output, and that of leaves, in scratch.
StepGenerator reorder(Phase phase, Buffer ranks_buffer, bool to_leaves) {
  const std::int64_t low = phase.plan.part(phase.part).of(0, block_bytes(phase.plan.call, 0)).offset;
  std::int64_t place = phase.leaves.begin;
  for (std::uint32_t leaf = 0; leaf < phase.plan.ranks(); ++leaf) {
    const std::int64_t bytes = phase.bytes_of(leaf);
    const std::int64_t of_rank = block_begin(phase.plan.call, phase.member_of(leaf)) + low;
    const std::int64_t of_leaf = std::exchange(place, place + bytes);
    if (bytes == 0) continue;
    const Step step = to_leaves ? reordered(ranks_buffer, of_rank, Buffer::scratch, of_leaf, bytes)
                                : reordered(Buffer::scratch, of_leaf, ranks_buffer, of_rank, bytes);
    co_yield step;
  }
}

StepGenerator reduce_scatter_lane(DimensionPlan plan, std::uint32_t dimension, std::uint32_t channel) {
  const std::uint32_t below = plan.below(dimension);
  const bool first = below == plan.grid.count, last = plan.above(dimension) == plan.grid.count;
  std::uint64_t done = 0;
  for (std::uint32_t part = channel; part < plan.parts(); part += plan.call.tuning.channels, ++done) {
    const Phase phase = phase_of(plan, dimension, part);
    const bool ordered = in_order(plan);
    const Step wait = first ? Step{} : waiting(plan.lane(below, part), done + 1);
    if (!first) co_yield wait;
    if (first && !ordered) {
      StepGenerator copies = reorder(phase, Buffer::input, true);
      for (Step step; copies.next(step);) co_yield step;
    }
    Places places{first && ordered ? Buffer::input : Buffer::scratch, last ? Buffer::output : Buffer::scratch, 0};
    const std::int64_t low = plan.part(part).of(0, block_bytes(plan.call, 0)).offset;
    const std::uint32_t own = phase.first + phase.slot(dimension, phase.self()) * phase.width;
    if (last) places.shift = low - phase.place_of(own);
    StepGenerator steps = scatter_phase(phase, places);
    for (Step step; steps.next(step);) co_yield step;
    const Step mark = marked();
    co_yield mark;
  }
}

/// The own block to where it is gathered.
Step own_block(const Phase& phase, Buffer buffer) {
  const std::uint32_t leaf = phase.leaf_of(phase.plan.index);
  const std::int64_t low = phase.plan.part(phase.part).of(0, block_bytes(phase.plan.call, 0)).offset;
  return reordered(Buffer::input, low, buffer, phase.place_of(leaf), phase.bytes_of(leaf));
}

StepGenerator all_gather_lane(DimensionPlan plan, std::uint32_t dimension, std::uint32_t channel) {
  const std::uint32_t above = plan.above(dimension);
  const bool first = above == plan.grid.count, last = plan.below(dimension) == plan.grid.count;
  const Buffer buffer = in_order(plan) ? Buffer::output : Buffer::scratch;
  std::uint64_t done = 0;
  for (std::uint32_t part = channel; part < plan.parts(); part += plan.call.tuning.channels, ++done) {
    const Phase phase = phase_of(plan, dimension, part);
    const Step before = first ? own_block(phase, buffer) : waiting(plan.lane(above, part), done + 1);
    if (!first || before.bytes > Bytes(0)) co_yield before;
    StepGenerator steps = gather_phase(phase, buffer);
    for (Step step; steps.next(step);) co_yield step;
    if (last && buffer == Buffer::scratch) {
      StepGenerator copies = reorder(phase, Buffer::output, false);
      for (Step step; copies.next(step);) co_yield step;
    }
    const Step mark = marked();
    co_yield mark;
  }
}

/// Reduce-scatters of all parts, then their all-gathers; in the last dimension both at once.
StepGenerator all_reduce_lane(DimensionPlan plan, std::uint32_t dimension, std::uint32_t channel) {
  const std::uint32_t below = plan.below(dimension), above = plan.above(dimension), step = plan.call.tuning.channels;
  const bool first = below == plan.grid.count, last = above == plan.grid.count;
  const bool whole = plan.call.tuning.each_dimension_whole || last;
  std::uint64_t own = 0;
  for (std::uint32_t part = channel; part < plan.parts(); part += step, ++own) {
    const Step wait = first ? Step{} : waiting(plan.lane(below, part), own + 1);
    if (!first) co_yield wait;
    const Places places{first ? Buffer::input : Buffer::scratch, last ? Buffer::output : Buffer::scratch, 0};
    const Phase phase = phase_of(plan, dimension, part);
    StepGenerator steps = whole ? reduce_phase(phase, places) : scatter_phase(phase, places);
    for (Step one; steps.next(one);) co_yield one;
    const Step mark = marked();
    co_yield mark;
  }
  if (whole) co_return;
  // Those of the dimension above follow its own reduce-scatters, unless it is the last one.
  const std::uint64_t ahead = plan.above(above) == plan.grid.count ? 0 : own;
  std::uint64_t done = 0;
  for (std::uint32_t part = channel; part < plan.parts(); part += step, ++done) {
    const Step wait = waiting(plan.lane(above, part), ahead + done + 1);
    co_yield wait;
    StepGenerator steps = gather_phase(phase_of(plan, dimension, part), Buffer::output);
    for (Step one; steps.next(one);) co_yield one;
    const Step mark = marked();
    co_yield mark;
  }
}

std::string refuse_algorithm(const DimensionPlan& plan, std::uint32_t dimension) {
  const std::uint32_t size = plan.size(dimension);
  const bool tree = plan.algorithms[dimension] == DimensionAlgorithm::double_binary_tree;
  const bool halving = plan.algorithms[dimension] == DimensionAlgorithm::halving_doubling;
  const CollectiveKind kind = plan.call.kind;
  if ((tree || halving) && !std::has_single_bit(size))
    return fmt::format("dimension {} has {} ranks, and {} needs a power of two", dimension, size,
                       to_text(plan.algorithms[dimension]));
  const bool whole = plan.above(dimension) == plan.grid.count || plan.call.tuning.each_dimension_whole;
  if (tree && plan.active(dimension) && (kind != CollectiveKind::all_reduce || !whole))
    return fmt::format(
        "double_binary_tree in dimension {} is for all_reduce, in the last dimension or with "
        "each_dimension_whole",
        dimension);
  if (halving && plan.active(dimension) && kind == CollectiveKind::all_to_all)
    return fmt::format("halving_doubling in dimension {} has no all_to_all", dimension);
  return {};
}

class ByDimension final : public CollectiveAlgorithm {
 public:
  bool supports(CollectiveKind kind) const override {
    return is_all_reduce_or_phase(kind) || kind == CollectiveKind::all_to_all;
  }
  std::uint32_t lanes(const CollectiveCall& call) const override {
    return static_cast<std::uint32_t>(dimensions_of(call).size()) * call.tuning.channels;
  }
  /// As many as a message may have pieces: a started message is sent to its end.
  std::uint32_t credits(const CollectiveCall& call) const override {
    return std::max({call.communicator->size(), call.tuning.credits, 8U});
  }
  std::string refuses(const CollectiveCall& call) const override {
    const auto& dimensions = call.tuning.dimensions;
    if (dimensions.size() > Grid::max_dimensions)
      return fmt::format("{} dimensions; at most {}", dimensions.size(), Grid::max_dimensions);
    const std::size_t named = call.tuning.dimension_algorithms.of(call.kind).size();
    if (named > std::max<std::size_t>(dimensions.size(), 1))
      return fmt::format("{} dimension_algorithms for {} dimensions", named, dimensions.size());
    const DimensionPlan plan(call, 0);
    for (std::uint32_t d = 0; d < plan.grid.count; ++d)
      if (const std::string reason = refuse_algorithm(plan, d); !reason.empty()) return reason;
    return CollectiveAlgorithm::refuses(call);
  }

  std::unique_ptr<StepStream> steps(const CollectiveCall& call, std::uint32_t index,
                                    std::uint32_t lane) const override {
    expect_valid_lane(*this, call, index, lane);
    if (call.communicator->size() == 1) return lone_stream(call, lane);
    const DimensionPlan plan(call, index);
    const std::uint32_t dimension = lane / call.tuning.channels, channel = lane % call.tuning.channels;
    if (!plan.active(dimension) || call.size == Bytes(0)) return stream_of(no_steps());
    if (call.kind == CollectiveKind::all_reduce) return stream_of(all_reduce_lane(plan, dimension, channel));
    if (call.kind == CollectiveKind::all_gather) return stream_of(all_gather_lane(plan, dimension, channel));
    if (call.kind == CollectiveKind::all_to_all) return stream_of(all_to_all_lane(plan, dimension, channel));
    return stream_of(reduce_scatter_lane(plan, dimension, channel));
  }
};

const Registration<CollectiveAlgorithm, ByDimension> by_dimension_registration(
    "by_dimension", "ASTRA-sim's: an algorithm for each dimension of a grid, chunks one after another");

}  // namespace
}  // namespace weft::by_dimension
