// SPDX-License-Identifier: GPL-2.0-only
// What the collectives share that go through a grid of ranks dimension by dimension (by_dimension.cpp).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "collectives/steps/exchange.hpp"
#include "collectives/steps/torus_phases.hpp"
#include "schedule/collective/step_generator.hpp"

namespace weft::by_dimension {

/// The dimensions in which something moves, with the algorithm of each, and the place of a rank in them.
struct DimensionPlan {
  CollectiveCall call;
  Grid grid;
  std::array<DimensionAlgorithm, Grid::max_dimensions> algorithms{};
  std::array<std::uint32_t, Grid::max_dimensions> windows{};  ///< of direct; 0: all at once
  std::uint32_t index = 0;

  /// Those of the tuning; a communicator that is not the whole grid is one ring.
  DimensionPlan(const CollectiveCall& call, std::uint32_t index);
  std::uint32_t ranks() const { return call.communicator->size(); }
  std::uint32_t size(std::uint32_t dimension) const { return grid.sizes[dimension]; }
  std::uint32_t coordinate(std::uint32_t dimension) const { return grid.coordinate(index, dimension); }
  std::uint32_t peer(std::uint32_t dimension, std::uint32_t coordinate) const {
    return grid.moved(index, dimension, coordinate + size(dimension) - this->coordinate(dimension));
  }
  /// Dimensions of a single rank are not there.
  bool active(std::uint32_t dimension) const { return size(dimension) > 1; }
  /// The nearest active one below and above, or grid.count.
  std::uint32_t below(std::uint32_t dimension) const;
  std::uint32_t above(std::uint32_t dimension) const;

  /// Into how many parts the bytes are cut that go through the dimensions by themselves.
  std::uint32_t parts() const { return std::max(call.tuning.splits, call.tuning.channels); }
  ChannelShare part(std::uint32_t number) const { return {parts(), number}; }
  std::uint32_t lane(std::uint32_t dimension, std::uint32_t part) const {
    return dimension * call.tuning.channels + part % call.tuning.channels;
  }
};

/// Messages are whole, whatever their size.
inline Step whole_message(Primitive primitive, std::uint32_t peer, Buffer source, std::int64_t from, Buffer target,
                          std::int64_t to, std::int64_t bytes) {
  Step step = local_copy(source, from, target, to, bytes);
  step.primitive = primitive;
  step.send_peer = step.receive_peer = peer;
  return step;
}

/// What costs nothing: that ranks know where blocks lie, and when.
inline Step instantly(Step step) {
  step.instant = true;
  return step;
}
inline Step reordered(Buffer source, std::int64_t from, Buffer target, std::int64_t to, std::int64_t bytes) {
  return instantly(local_copy(source, from, target, to, bytes));
}
inline Step waiting(std::uint32_t lane, std::uint64_t count) { return instantly(waits_for(lane, count)); }
inline Step marked() { return instantly(marks()); }

/// All-to-all of a rank: the steps of one dimension for all parts of a channel.
StepGenerator all_to_all_lane(DimensionPlan plan, std::uint32_t dimension, std::uint32_t channel);

}  // namespace weft::by_dimension
